import { expect, test } from 'vitest'
import { bankDebit, MATCHER_VERSION, processedFrom } from '../../../../domain/banking/debits/bank-debit.ts'
import {
  BankDebitCreated,
  type BankDebitReported,
  type Confidence,
} from '../../../../domain/banking/debits/bank-debit-events.ts'
import { effectiveDateOf } from '../../../../domain/banking/debits/bank-debit-state.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import { upcast } from '../../../../domain/kernel/event-type.ts'
import { bankDebits } from '../../../../projections/banking/debits/bank-debits.ts'
import { createdDebit } from '../../../support/created-debits.ts'
import { decisions, eventsOf } from '../../../support/decider-spec.ts'
import { specifyProjection } from '../../../support/projection-spec.ts'

// each row reads given, when, then
const [ID, M1, M2] = ['a', '1', '2'].map((digit) => digit.repeat(24)) as [string, string, string]
/** A Tuesday noon in New York. */
const NOW = Date.parse('2026-11-24T17:00:00Z')
const DAY = 86_400_000
const at = isoTime(NOW)
const ofDebit = { leg_id: ID }

const event = eventsOf(bankDebit, { leg_id: ID, at })
const ofSession = { source: 'session', payment_session_id: ID, payment_purpose: 'down_payment' } as const
const created = event('BankDebitCreated', createdDebit(ID, at, ofSession))
const installment = event('BankDebitCreated', {
  ...created.data,
  source: 'instalment',
  installment_number: 1,
})
// Thanksgiving is the 26th
const scheduled = event('BankDebitScheduled', {
  batch_closes_at: '2026-11-24T22:00:00.000Z',
  effective_date: '2026-11-25',
})
const afterClose = event('BankDebitScheduled', {
  batch_closes_at: '2026-11-25T22:00:00.000Z',
  effective_date: '2026-11-27',
  at: '2026-11-24T22:00:00.000Z',
})
const batch = { ...ofDebit, batch_closes_at: '2026-11-24T22:00:00.000Z' }
const leftOut = event('BankDebitLeftOut', batch)
const heldUp = event('BankDebitHeldUp', { ...batch, since: isoTime(NOW) })
const leaveOut = { type: 'LeaveOut', note: 'disabled', at: NOW } as const
const submitted = event('BankDebitSubmitted', { effective_date: '2026-11-25' })
const word = { processor_status: null, transmission_date: null, effective_date: null }
const reported = (told: Partial<typeof reportedWith>) =>
  event('BankDebitReported', { ...reportedWith, ...told })
const reportedWith: ReturnType<typeof BankDebitReported.of>['data'] = {
  ...ofDebit,
  ...word,
  settled_on: '2026-11-24',
  at,
}
const PROCESSED = processedFrom('2026-11-25')
const processed = (time = PROCESSED) => event('BankDebitProcessed', { at: isoTime(time) })
const process = (time = PROCESSED) => ({ type: 'Process', at: time }) as const
const [inBatch, atBank] = [
  [created, scheduled],
  [created, scheduled, submitted],
]
const creditOf = { bank_date: '2026-11-30', matcher_version: MATCHER_VERSION }
const matched = (confidence: Confidence) =>
  event('BankDebitMatched', { ...creditOf, match_id: M1, bank_transaction_id: 'bt_1', confidence })
const matchedAnew = (confidence: Confidence) =>
  event('BankDebitMatched', { ...creditOf, match_id: M2, bank_transaction_id: 'bt_2', confidence })
const returned = event('BankDebitReturned', { return_code: 'R01' })

const schedule = (time = NOW) => ({ type: 'Schedule', at: time }) as const
const acknowledge = { type: 'Acknowledge', at: NOW } as const
const report = (
  told: { processor_status?: string; transmission_date?: string; effective_date?: string } = {},
) =>
  ({
    ...({ type: 'Report', processor_status: null, transmission_date: null, effective_date: null } as const),
    ...told,
    at: NOW,
  }) as const
const matchAnew = (confidence: Confidence, bankTransactionId = 'bt_2', matchId = M2) =>
  ({ type: 'Match', matchId, bankTransactionId, bankDate: '2026-11-30', confidence, at: NOW }) as const
const match = (confidence: Confidence) => matchAnew(confidence, 'bt_1', M1)
const comeBack = (return_code = 'R01') => ({ type: 'Return', return_code, at: NOW }) as const

const stop = { gate: 'anomaly', status: 'quarantined', reason: 'why' } as const
const gated = event('BankDebitGated', stop)
const gate = { type: 'Gate', stop, at: NOW } as const
const unlisted = { gate: 'account', status: 'quarantined', reason: 'account_not_listed' } as const
const gatedByAccount = event('BankDebitGated', unlisted)
const gateOfAccount = { type: 'Gate', stop: unlisted, at: NOW } as const
const outOfQuarantine = [
  ...[gatedByAccount, event('BankDebitReleased', { note: null })],
  event('BankDebitScheduled', { ...scheduled.data, effective_date: '2026-12-28' }),
]
const billing = { gate: 'billing', status: 'failed', reason: 'policy_inactive_blocked' } as const
const gatedByBilling = event('BankDebitGated', billing)
const collectedBefore = event('BankDebitGated', {
  ...({ gate: 'legacy', status: 'legacy_collected', reason: 'legacy_collected' } as const),
})
const gateOfBilling = { type: 'Gate', stop: billing, at: NOW } as const
const released = event('BankDebitReleased', { note: 'looked at' })
const rejected = event('BankDebitRejected', { note: null })
const release = { type: 'Release', note: 'looked at', at: NOW } as const
const refuse = { type: 'Reject', note: null, at: NOW } as const
const cancelled = event('BankDebitCancelled')
const cancel = (time = NOW) => ({ type: 'Cancel', at: time }) as const
const failed = event('BankDebitFailed', { note: 'disabled' })
const fail = { type: 'Fail', note: 'disabled', at: NOW } as const
const CLOSE = Date.parse('2026-11-24T22:00:00Z')
const inFile = event('BankDebitInFile', {
  file_id: M1,
  trace_number: '021000020000001',
  entry_date: '2026-11-25',
})
const ofBatch = '2026-11-24T22:00:00.000Z'
const putInFile = {
  ...({ type: 'PutInFile', fileId: M1, traceNumber: '021000020000001', entryDate: '2026-11-25' } as const),
  ofBatch,
  at: NOW,
}
const represented = (representment: number) =>
  event('BankDebitRepresented', {
    representment,
    batch_closes_at: '2026-11-24T22:00:00.000Z',
    effective_date: '2026-11-25',
    settlement_type: 'direct',
    note: null,
  })
const represent = (time = NOW) => ({ type: 'Represent', note: null, at: time }) as const
const askedFor = (effective_date: string) => event('BankDebitCreated', { ...created.data, effective_date })

const SETTLING = [
  ...['SB Remit', 'SBRemit', 'ServiceBureauOutboundFileSent', 'SendProcessComplete'],
  ...['FileTransmitted', 'File Transmitted'],
]

decisions(bankDebit, [
  ['is created', [], { type: 'Create', data: created.data }, created],
  ['is created once', [created], { type: 'Create', data: created.data }, 'debit_exists'],
  ['is not there before', [], acknowledge, 'debit_not_found'],
  ['goes with the next close', [created], schedule(), scheduled],
  [
    'goes with the close after a holiday',
    [created],
    schedule(Date.parse('2026-11-24T22:00:00Z')),
    afterClose,
  ],
  ['is scheduled once', [inBatch], schedule(NOW + DAY), []],
  ['is left out of its batch, which ends it', [inBatch], leaveOut, [leftOut, failed]],
  ['is left out once', [inBatch, leftOut, failed], leaveOut, []],
  ['ends where it was left out and waits still', [inBatch, leftOut], leaveOut, failed],
  ['is left out of no batch that the bank has', [atBank], leaveOut, []],
  ['is acknowledged', [inBatch], acknowledge, submitted],
  ['is acknowledged after an earlier release told that it waits', [inBatch, heldUp], acknowledge, submitted],
  ['is acknowledged once', [atBank], acknowledge, []],
  ['is not acknowledged before it is in a batch', [created], acknowledge, 'debit_pending'],

  ['settles without a word and a date on the day it is told', [atBank], report(), reported({})],
  [
    'settles on the effective date of the report',
    [atBank],
    report({ effective_date: '2026-11-27' }),
    reported({ effective_date: '2026-11-27', settled_on: '2026-11-27' }),
  ],
  [
    'settles on the transmission date before all',
    [atBank],
    report({ processor_status: 'SB Remit', transmission_date: '2026-11-24', effective_date: '2026-11-27' }),
    reported({
      processor_status: 'SB Remit',
      transmission_date: '2026-11-24',
      effective_date: '2026-11-27',
      settled_on: '2026-11-24',
    }),
  ],
  ...SETTLING.map(
    (processor_status) =>
      [
        `settles by the word ${processor_status}`,
        [atBank],
        report({ processor_status }),
        reported({ processor_status }),
      ] as const,
  ),
  ...['ServiceBureauProcessingIntoRemitFile', 'sb remit', 'SB  Remit', 'Settled'].map(
    (processor_status) =>
      [
        `does not settle by the word ${processor_status}`,
        [atBank],
        report({ processor_status }),
        reported({ processor_status, settled_on: null }),
      ] as const,
  ),
  ['settles once', [atBank, reported({})], report(), []],
  ['settles once, also by a word', [atBank, reported({})], report({ processor_status: 'SB Remit' }), []],
  ['settles after time has made it processed', [atBank, processed()], report(), reported({})],
  ['does not settle before it is submitted', [inBatch], report(), 'debit_scheduled'],
  ['does not settle when it came back', [atBank, returned], report(), 'debit_returned'],
  ['is processed in time', [atBank], process(), processed()],
  ['is not processed before', [atBank], process(PROCESSED - 1), []],
  ['is processed once', [atBank, processed()], process(), []],
  ['is not processed at the time of an earlier presentation', submittedAgain(), process(), []],
  [
    'is processed at the time of its own presentation',
    submittedAgain(),
    process(processedFrom('2026-11-27')),
    processed(processedFrom('2026-11-27')),
  ],

  ['is matched', [atBank], match('medium'), matched('medium')],
  ['is matched once by one credit', [atBank, matched('medium')], matchAnew('high', 'bt_1'), []],
  [
    'is matched anew by a credit that names it',
    [atBank, matched('medium')],
    matchAnew('high'),
    matchedAnew('high'),
  ],
  ['is not matched anew by an amount', [atBank, matched('medium')], matchAnew('medium'), 'debit_submitted'],
  [
    'stays with the first of two credits that name it',
    [atBank, matched('high')],
    matchAnew('high'),
    'debit_submitted',
  ],
  [
    'is matched anew by a credit that is surer',
    [atBank, matched('low')],
    matchAnew('medium'),
    matchedAnew('medium'),
  ],
  [
    'does not take back the credit that lost it',
    [atBank, matched('low'), matchedAnew('high')],
    match('high'),
    'debit_submitted',
  ],
  ['is not matched once it came back', [atBank, returned], match('high'), 'debit_returned'],
  ['is not matched before it is submitted', [created], match('high'), 'debit_pending'],

  ['comes back', [atBank, processed()], comeBack(), returned],
  ['comes back from a batch', [inBatch], comeBack(), returned],
  ['comes back once', [inBatch, returned], comeBack(), []],
  ['does not come back for another reason', [inBatch, returned], comeBack('R02'), 'debit_returned'],
  ['cannot come back before it went', [created], comeBack(), 'debit_pending'],

  ['is stopped by a gate', [created], gate, gated],
  ['is stopped by a gate in its batch', [inBatch], gateOfBilling, gatedByBilling],
  ['is stopped by no gate once it is in a file', [inBatch, inFile], gateOfBilling, []],
  ['is not quarantined in its batch', [inBatch], gate, []],
  ['is not quarantined again', [created, gated, released], gate, []],
  [
    'is quarantined for its amount when it was released for its account',
    [created, gatedByAccount, released],
    gate,
    gated,
  ],
  ['is not quarantined again for its account', [created, gatedByAccount, released], gateOfAccount, []],
  [
    'is quarantined for its account when it was released for its amount',
    [created, gated, released],
    gateOfAccount,
    gatedByAccount,
  ],
  [
    'is stopped by another gate when it was released',
    [created, gated, released],
    gateOfBilling,
    gatedByBilling,
  ],
  ['is stopped once', [created, gated], gate, []],
  ['is stopped by no gate when the bank has it', [atBank], gate, []],
  ['does not go while it is in quarantine', [created, gated], schedule(), []],
  ['is released', [created, gated], release, released],
  ['is not released unless something holds it', [created], release, 'debit_pending'],
  ['is raised anew that the legacy service had not collected', [created, collectedBefore], release, released],
  ['and then passes the gate on amounts as well', [created, collectedBefore, released], gate, gated],
  [
    'which asks no more what was in quarantine before',
    [created, gated, released, collectedBefore, released],
    gate,
    [],
  ],
  ['that failed by a gate is not raised anew', [created, gatedByBilling], release, 'debit_failed'],
  ['goes when it was released', [created, gated, released], schedule(), scheduled],
  ['is rejected', [created, gated], refuse, rejected],
  ['is not rejected in its batch', [inBatch], refuse, 'debit_scheduled'],
  ['does not go when it was rejected', [created, gated, rejected], schedule(), []],
  ['is cancelled', [installment], cancel(), cancelled],
  ['is not cancelled where a payer chose it', [created], cancel(), 'debit_of_session'],
  ['is cancelled in quarantine', [installment, gated], cancel(), cancelled],
  [
    'is cancelled until its batch closes',
    [installment, scheduled],
    cancel(CLOSE - 1000),
    cancelledBeforeClose(),
  ],
  ['is not cancelled once its batch has closed', [installment, scheduled], cancel(CLOSE), 'batch_closed'],
  [
    'is not cancelled once it stands in a file, by whatever clock',
    [installment, scheduled, inFile],
    cancel(),
    'batch_closed',
  ],
  ['is cancelled once', [installment, cancelled], cancel(), []],
  ['is not cancelled when the bank has it', [installment, scheduled, submitted], cancel(), 'debit_submitted'],
  ['is not acknowledged when it was cancelled', [created, cancelled], acknowledge, 'debit_cancelled'],
  ['fails', [inBatch], fail, failed],
  ['fails once', [created, failed], fail, []],
  ['does not fail when the bank has it', [atBank], fail, 'debit_submitted'],
  ['does not fail once its batch has closed', [inBatch], { ...fail, at: CLOSE }, 'batch_closed'],
  ['does not fail once it stands in a file', [inBatch, inFile], fail, 'batch_closed'],
  [
    'fails after the close when the bank would not take it',
    [inBatch],
    { ...fail, byBank: true, at: CLOSE },
    event('BankDebitFailed', { note: 'disabled', at: isoTime(CLOSE) }),
  ],
  [
    'fails in quarantine, whatever its batch',
    [inBatch, gated],
    { ...fail, at: CLOSE },
    event('BankDebitFailed', { note: 'disabled', at: isoTime(CLOSE) }),
  ],
  ['is put into a file', [inBatch], putInFile, inFile],
  [
    'is put into a file with what its numbers are known by',
    [inBatch],
    { ...putInFile, fingerprint: 'f' },
    event('BankDebitInFile', { ...inFile.data, fingerprint: 'f' }),
  ],
  ['is put into a file once', [inBatch, inFile], putInFile, []],
  ['is not in a file of an earlier time', presentedAgain(), putInFile, []],
  ['is not acknowledged by an earlier time', presentedAgain(), { ...acknowledge, ofBatch }, []],
  [
    'does not come back once more by an earlier time',
    presentedAgain(),
    { ...comeBack(), ofBatch },
    'debit_presented_again',
  ],
  ['does not fail by an earlier time', presentedAgain(), { ...fail, byBank: true, ofBatch }, []],
  ['is presented again', [inBatch, returned], represent(), represented(1)],
  [
    'is presented again twice at the most',
    [inBatch, returned, represented(1), returned, represented(2), returned],
    represent(),
    'representments_used_up',
  ],
  ['is not presented again unless it came back', [atBank], represent(), 'debit_submitted'],
  [
    'is not presented again after another return',
    [inBatch, event('BankDebitReturned', { return_code: 'R02' })],
    represent(),
    'not_representable',
  ],
  [
    'is presented again on the last of 180 days from its first entry',
    presentedLater(),
    represent(Date.parse('2027-05-21T17:00:00Z')),
    event('BankDebitRepresented', {
      ...represented(2).data,
      batch_closes_at: '2027-05-21T21:00:00.000Z',
      effective_date: '2027-05-24',
      at: '2027-05-21T17:00:00.000Z',
    }),
  ],
  [
    'is not presented again after these, however late it was presented last',
    presentedLater(),
    represent(Date.parse('2027-05-24T17:00:00Z')),
    'representment_too_late',
  ],
  [
    'nor when it came out of quarantine between',
    [...presentedLater().slice(0, 5), ...outOfQuarantine, ...presentedLater().slice(5)],
    represent(Date.parse('2027-05-24T17:00:00Z')),
    'representment_too_late',
  ],
  ['comes back again', [inBatch, returned, represented(1)], comeBack('R09'), returnedWith('R09')],
  ['does not come back when it failed', [created, failed], comeBack(), 'debit_failed'],
  [
    'goes with the last close before the day that was asked for',
    [askedFor('2026-12-04')],
    schedule(),
    scheduledFor('2026-12-03T22:00:00.000Z', '2026-12-04'),
  ],
  [
    'takes effect on the banking day after a day on which banks rest',
    [askedFor('2026-11-28')],
    schedule(),
    scheduledFor('2026-11-27T22:00:00.000Z', '2026-11-30'),
  ],
  ['goes with the next close for a day that is over', [askedFor('2026-01-05')], schedule(), scheduled],
])

/** With the batch after that of its first time. */
function presentedAgain() {
  const batch_closes_at = '2026-11-25T22:00:00.000Z'
  return [
    ...[inBatch, inFile, returned],
    event('BankDebitRepresented', { ...represented(1).data, batch_closes_at }),
  ]
}

/** A month after its first time, from which it came back. */
function presentedLater() {
  const effective_date = '2026-12-28'
  return [
    ...[inBatch, inFile, returned],
    event('BankDebitRepresented', { ...represented(1).data, effective_date }),
    ...[event('BankDebitInFile', { ...inFile.data, file_id: M2, entry_date: effective_date }), returned],
  ]
}

/** Which the bank has as well. */
function submittedAgain() {
  const later = { ...represented(1).data, batch_closes_at: '2026-11-25T22:00:00.000Z' }
  return [
    ...[atBank, returned],
    event('BankDebitRepresented', { ...later, effective_date: '2026-11-27' }),
    event('BankDebitSubmitted', { ...submitted.data, effective_date: '2026-11-27' }),
  ]
}

function scheduledFor(batch_closes_at: string, effective_date: string) {
  return event('BankDebitScheduled', { batch_closes_at, effective_date })
}

function returnedWith(return_code: string) {
  return event('BankDebitReturned', { return_code })
}

function cancelledBeforeClose() {
  return event('BankDebitCancelled', { at: isoTime(CLOSE - 1000) })
}

test('the day that was asked for is shown, whatever the day of the entry', () => {
  const entry = scheduledFor('2026-11-27T22:00:00.000Z', '2026-11-30')
  expect(effectiveDateOf(fold(bankDebit, [askedFor('2026-11-28'), entry])!)).toBe('2026-11-28')
  expect(effectiveDateOf(fold(bankDebit, inBatch)!)).toBe('2026-11-25')
  expect(effectiveDateOf(fold(bankDebit, [created])!)).toBeNull()
})

test('the ledger shows the day that the debit itself tells, whatever the day of its file', () => {
  const lateFile = event('BankDebitInFile', { ...inFile.data, entry_date: '2026-11-27' })
  const again = event('BankDebitRepresented', { ...represented(1).data, effective_date: '2026-12-04' })
  for (const first of [created, askedFor('2026-11-25'), askedFor('2026-11-20')]) {
    for (const rest of [[], [scheduled], [scheduled, lateFile], [scheduled, lateFile, returned, again]]) {
      const events = [first, ...rest]
      const bank_debits = [{ effective_date: effectiveDateOf(fold(bankDebit, events)!) }]
      specifyProjection(bankDebits)
        .given({ stream: `bankDebit-${ID}`, events })
        .thenRows({ bank_debits })
    }
  }
})

test('a debit of the first version reads as one that nobody asked anything more for', () => {
  const { collection_id, file_id, check_date, period, bank_account_id, ...rest } = created.data
  const { effective_date, metadata, ingested_at, ...first } = rest
  expect(upcast(BankDebitCreated, 1, first)).toEqual(created.data)
})

test('a report that settles makes a submitted debit processed, one that does not leaves it', () => {
  const status = (told: Parameters<typeof reported>[0]) =>
    fold(bankDebit, [...atBank, reported(told)])!.status
  expect(status({})).toBe('processed')
  expect(status({ settled_on: null })).toBe('submitted')
})

test('a debit is processed two banking days after it took effect', () => {
  // in New York: the 26th is a holiday, the 28th a Saturday
  expect(isoTime(processedFrom('2026-11-25'))).toBe('2026-11-30T05:00:00.000Z')
})

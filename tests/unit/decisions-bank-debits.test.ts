import { expect, test } from 'vitest'
import { bankDebit, MATCHER_VERSION, processedFrom } from '../../domain/banking/bank-debit.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  BankDebitFailed,
  BankDebitGated,
  BankDebitHeldUp,
  BankDebitInFile,
  BankDebitLeftOut,
  BankDebitMatched,
  BankDebitProcessed,
  BankDebitRejected,
  BankDebitReleased,
  BankDebitReported,
  BankDebitRepresented,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
  type Confidence,
} from '../../domain/banking/bank-debit-events.ts'
import { effectiveDateOf } from '../../domain/banking/bank-debit-state.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { fold } from '../../domain/kernel/decider.ts'
import { upcast } from '../../domain/kernel/event-type.ts'
import { bankDebits } from '../../projections/bank-debits.ts'
import { decisions } from '../support/decider-spec.ts'
import { specifyProjection } from '../support/projection-spec.ts'

// each row reads given, when, then
const [ID, M1, M2] = ['a', '1', '2'].map((digit) => digit.repeat(24)) as [string, string, string]
/** A Tuesday noon in New York. */
const NOW = Date.parse('2026-11-24T17:00:00Z')
const DAY = 86_400_000
const at = isoTime(NOW)
const leg = { leg_id: ID }
const conflict = (code: string) => ({ kind: 'conflict', code }) as const

const created = BankDebitCreated.of({
  ...leg,
  tenant_id: ID,
  environment: 'live',
  employer_id: ID,
  carrier_id: ID,
  policy_id: ID,
  source: 'session',
  payment_session_id: ID,
  installment_number: null,
  amount_cents: 10_500,
  payment_purpose: 'down_payment',
  description: null,
  settlement_type: 'direct',
  account: {
    account_ref: `payer-account/${ID}/1`,
    fingerprint: ID,
    account_last4: '6789',
    account_type: 'checking',
  },
  collection_id: null,
  file_id: null,
  check_date: null,
  period: null,
  bank_account_id: null,
  effective_date: null,
  metadata: {},
  ingested_at: at,
  cancellation_deadline: null,
  created_at: at,
})
const instalment = BankDebitCreated.of({ ...created.data, source: 'instalment', installment_number: 1 })
// Thanksgiving is the 26th
const scheduled = BankDebitScheduled.of({
  ...leg,
  batch_closes_at: '2026-11-24T22:00:00.000Z',
  effective_date: '2026-11-25',
  at,
})
const afterClose = BankDebitScheduled.of({
  ...leg,
  batch_closes_at: '2026-11-25T22:00:00.000Z',
  effective_date: '2026-11-27',
  at: '2026-11-24T22:00:00.000Z',
})
const batch = { ...leg, batch_closes_at: '2026-11-24T22:00:00.000Z' }
const leftOut = BankDebitLeftOut.of({ ...batch, at })
const heldUp = (since: number) => BankDebitHeldUp.of({ ...batch, since: isoTime(since), at })
const leaveOut = { type: 'LeaveOut', note: 'disabled', at: NOW } as const
const holdUp = (since: number) => ({ type: 'RecordHeldUp', since, at: NOW }) as const
const submitted = BankDebitSubmitted.of({ ...leg, effective_date: '2026-11-25', at })
const word = { processor_status: null, transmission_date: null, effective_date: null }
const reported = (told: Partial<typeof reportedWith>) => BankDebitReported.of({ ...reportedWith, ...told })
const reportedWith: ReturnType<typeof BankDebitReported.of>['data'] = {
  ...leg,
  ...word,
  settled_on: '2026-11-24',
  at,
}
const PROCESSED = processedFrom('2026-11-25')
const processed = (time = PROCESSED) => BankDebitProcessed.of({ ...leg, at: isoTime(time) })
const process = (time = PROCESSED) => ({ type: 'Process', at: time }) as const
const matched = (match_id: string, bank_transaction_id: string, confidence: Confidence) =>
  BankDebitMatched.of({
    ...leg,
    match_id,
    bank_transaction_id,
    bank_date: '2026-11-30',
    confidence,
    matcher_version: MATCHER_VERSION,
    at,
  })
const returned = BankDebitReturned.of({ ...leg, return_code: 'R01', at })

const schedule = (time = NOW) => ({ type: 'Schedule', at: time }) as const
const acknowledge = { type: 'Acknowledge', at: NOW } as const
const report = (told: { processorStatus?: string; transmissionDate?: string; effectiveDate?: string } = {}) =>
  ({
    ...({ type: 'Report', processorStatus: null, transmissionDate: null, effectiveDate: null } as const),
    ...told,
    at: NOW,
  }) as const
const match = (matchId: string, bankTransactionId: string, confidence: Confidence) =>
  ({
    ...({ type: 'Match', matchId, bankTransactionId, bankDate: '2026-11-30' } as const),
    confidence,
    at: NOW,
  }) as const
const comeBack = (returnCode = 'R01') => ({ type: 'Return', returnCode, at: NOW }) as const

const stop = { gate: 'anomaly', status: 'quarantined', reason: 'why' } as const
const gated = BankDebitGated.of({ ...leg, ...stop, at })
const gate = { type: 'Gate', stop, at: NOW } as const
const unlisted = { gate: 'account', status: 'quarantined', reason: 'account_not_listed' } as const
const gatedByAccount = BankDebitGated.of({ ...leg, ...unlisted, at })
const gateOfAccount = { type: 'Gate', stop: unlisted, at: NOW } as const
const outOfQuarantine = [
  ...[gatedByAccount, BankDebitReleased.of({ ...leg, note: null, at })],
  BankDebitScheduled.of({ ...scheduled.data, effective_date: '2026-12-28' }),
]
const billing = { gate: 'billing', status: 'failed', reason: 'policy_inactive_blocked' } as const
const gatedByBilling = BankDebitGated.of({ ...leg, ...billing, at })
const collectedBefore = BankDebitGated.of({
  ...leg,
  ...({ gate: 'legacy', status: 'legacy_collected', reason: 'legacy_collected' } as const),
  at,
})
const gateOfBilling = { type: 'Gate', stop: billing, at: NOW } as const
const released = BankDebitReleased.of({ ...leg, note: 'looked at', at })
const rejected = BankDebitRejected.of({ ...leg, note: null, at })
const release = { type: 'Release', note: 'looked at', at: NOW } as const
const refuse = { type: 'Reject', note: null, at: NOW } as const
const cancelled = BankDebitCancelled.of({ ...leg, at })
const cancel = (time = NOW) => ({ type: 'Cancel', at: time }) as const
const failed = BankDebitFailed.of({ ...leg, note: 'disabled', at })
const fail = { type: 'Fail', note: 'disabled', at: NOW } as const
const CLOSE = Date.parse('2026-11-24T22:00:00Z')
const inFile = BankDebitInFile.of({
  ...leg,
  file_id: M1,
  trace_number: '021000020000001',
  entry_date: '2026-11-25',
  at,
})
const ofBatch = '2026-11-24T22:00:00.000Z'
const putInFile = {
  ...({ type: 'PutInFile', fileId: M1, traceNumber: '021000020000001', entryDate: '2026-11-25' } as const),
  ofBatch,
  at: NOW,
}
const represented = (representment: number) =>
  BankDebitRepresented.of({
    ...leg,
    representment,
    batch_closes_at: '2026-11-24T22:00:00.000Z',
    effective_date: '2026-11-25',
    settlement_type: 'direct',
    note: null,
    at,
  })
const represent = (time = NOW) => ({ type: 'Represent', note: null, at: time }) as const
const askedFor = (effective_date: string) => BankDebitCreated.of({ ...created.data, effective_date })

const SETTLING = [
  ...['SB Remit', 'SBRemit', 'ServiceBureauOutboundFileSent', 'SendProcessComplete'],
  ...['FileTransmitted', 'File Transmitted'],
]

decisions(bankDebit, [
  ['is created', [], { type: 'Create', data: created.data }, [created]],
  ['is created once', [created], { type: 'Create', data: created.data }, conflict('debit_exists')],
  ['is not there before', [], acknowledge, { kind: 'not_found', code: 'debit_not_found' }],
  ['goes with the next close', [created], schedule(), [scheduled]],
  [
    'goes with the close after a holiday',
    [created],
    schedule(Date.parse('2026-11-24T22:00:00Z')),
    [afterClose],
  ],
  ['is scheduled once', [created, scheduled], schedule(NOW + DAY), []],
  ['is left out of its batch, which ends it', [created, scheduled], leaveOut, [leftOut, failed]],
  ['is left out once', [created, scheduled, leftOut, failed], leaveOut, []],
  ['ends where it was left out and waits still', [created, scheduled, leftOut], leaveOut, [failed]],
  ['is left out of no batch that the bank has', [created, scheduled, submitted], leaveOut, []],
  ['is held up', [created, scheduled], holdUp(NOW - 2), [heldUp(NOW - 2)]],
  ['is held up once for a time', [created, scheduled, heldUp(NOW - 2)], holdUp(NOW - 2), []],
  ['is held up again', [created, scheduled, heldUp(NOW - 2)], holdUp(NOW - 1), [heldUp(NOW - 1)]],
  ['is acknowledged', [created, scheduled], acknowledge, [submitted]],
  ['is acknowledged once', [created, scheduled, submitted], acknowledge, []],
  ['is not acknowledged before it is in a batch', [created], acknowledge, conflict('debit_pending')],

  [
    'settles without a word and a date on the day it is told',
    [created, scheduled, submitted],
    report(),
    [reported({})],
  ],
  [
    'settles on the effective date of the report',
    [created, scheduled, submitted],
    report({ effectiveDate: '2026-11-27' }),
    [reported({ effective_date: '2026-11-27', settled_on: '2026-11-27' })],
  ],
  [
    'settles on the transmission date before all',
    [created, scheduled, submitted],
    report({ processorStatus: 'SB Remit', transmissionDate: '2026-11-24', effectiveDate: '2026-11-27' }),
    [
      reported({
        processor_status: 'SB Remit',
        transmission_date: '2026-11-24',
        effective_date: '2026-11-27',
        settled_on: '2026-11-24',
      }),
    ],
  ],
  ...SETTLING.map(
    (processorStatus) =>
      [
        `settles by the word ${processorStatus}`,
        [created, scheduled, submitted],
        report({ processorStatus }),
        [reported({ processor_status: processorStatus })],
      ] as const,
  ),
  ...['ServiceBureauProcessingIntoRemitFile', 'sb remit', 'SB  Remit', 'Settled'].map(
    (processorStatus) =>
      [
        `does not settle by the word ${processorStatus}`,
        [created, scheduled, submitted],
        report({ processorStatus }),
        [reported({ processor_status: processorStatus, settled_on: null })],
      ] as const,
  ),
  ['settles once', [created, scheduled, submitted, reported({})], report(), []],
  [
    'settles once, also by a word',
    [created, scheduled, submitted, reported({})],
    report({ processorStatus: 'SB Remit' }),
    [],
  ],
  [
    'settles after time has made it processed',
    [created, scheduled, submitted, processed()],
    report(),
    [reported({})],
  ],
  ['does not settle before it is submitted', [created, scheduled], report(), conflict('debit_Scheduled')],
  [
    'does not settle when it came back',
    [created, scheduled, submitted, returned],
    report(),
    conflict('debit_returned'),
  ],
  ['is processed in time', [created, scheduled, submitted], process(), [processed()]],
  ['is not processed before', [created, scheduled, submitted], process(PROCESSED - 1), []],
  ['is processed once', [created, scheduled, submitted, processed()], process(), []],
  ['is not processed at the time of an earlier presentation', submittedAgain(), process(), []],
  [
    'is processed at the time of its own presentation',
    submittedAgain(),
    process(processedFrom('2026-11-27')),
    [processed(processedFrom('2026-11-27'))],
  ],

  [
    'is matched',
    [created, scheduled, submitted],
    match(M1, 'bt_1', 'medium'),
    [matched(M1, 'bt_1', 'medium')],
  ],
  [
    'is matched once by one credit',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'medium')],
    match(M2, 'bt_1', 'high'),
    [],
  ],
  [
    'is matched anew by a credit that names it',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'medium')],
    match(M2, 'bt_2', 'high'),
    [matched(M2, 'bt_2', 'high')],
  ],
  [
    'is not matched anew by an amount',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'medium')],
    match(M2, 'bt_2', 'medium'),
    conflict('debit_submitted'),
  ],
  [
    'stays with the first of two credits that name it',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'high')],
    match(M2, 'bt_2', 'high'),
    conflict('debit_submitted'),
  ],
  [
    'is matched anew by a credit that is surer',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'low')],
    match(M2, 'bt_2', 'medium'),
    [matched(M2, 'bt_2', 'medium')],
  ],
  [
    'does not take back the credit that lost it',
    [created, scheduled, submitted, matched(M1, 'bt_1', 'low'), matched(M2, 'bt_2', 'high')],
    match(M1, 'bt_1', 'high'),
    conflict('debit_submitted'),
  ],
  [
    'is not matched once it came back',
    [created, scheduled, submitted, returned],
    match(M1, 'bt_1', 'high'),
    conflict('debit_returned'),
  ],
  ['is not matched before it is submitted', [created], match(M1, 'bt_1', 'high'), conflict('debit_pending')],

  ['comes back', [created, scheduled, submitted, processed()], comeBack(), [returned]],
  ['comes back from a batch', [created, scheduled], comeBack(), [returned]],
  ['comes back once', [created, scheduled, returned], comeBack(), []],
  [
    'does not come back for another reason',
    [created, scheduled, returned],
    comeBack('R02'),
    conflict('debit_returned'),
  ],
  ['cannot come back before it went', [created], comeBack(), conflict('debit_pending')],

  ['is stopped by a gate', [created], gate, [gated]],
  ['is stopped by a gate in its batch', [created, scheduled], gateOfBilling, [gatedByBilling]],
  ['is stopped by no gate once it is in a file', [created, scheduled, inFile], gateOfBilling, []],
  ['is not quarantined in its batch', [created, scheduled], gate, []],
  ['is not quarantined again', [created, gated, released], gate, []],
  [
    'is quarantined for its amount when it was released for its account',
    [created, gatedByAccount, released],
    gate,
    [gated],
  ],
  ['is not quarantined again for its account', [created, gatedByAccount, released], gateOfAccount, []],
  [
    'is quarantined for its account when it was released for its amount',
    [created, gated, released],
    gateOfAccount,
    [gatedByAccount],
  ],
  [
    'is stopped by another gate when it was released',
    [created, gated, released],
    gateOfBilling,
    [gatedByBilling],
  ],
  ['is stopped once', [created, gated], gate, []],
  ['is stopped by no gate when the bank has it', [created, scheduled, submitted], gate, []],
  ['does not go while it is in quarantine', [created, gated], schedule(), []],
  ['is released', [created, gated], release, [released]],
  ['is not released unless something holds it', [created], release, conflict('debit_pending')],
  [
    'is raised anew that the legacy service had not collected',
    [created, collectedBefore],
    release,
    [released],
  ],
  ['and then passes the gate on amounts as well', [created, collectedBefore, released], gate, [gated]],
  [
    'which asks no more what was in quarantine before',
    [created, gated, released, collectedBefore, released],
    gate,
    [],
  ],
  ['that failed by a gate is not raised anew', [created, gatedByBilling], release, conflict('debit_failed')],
  ['goes when it was released', [created, gated, released], schedule(), [scheduled]],
  ['is rejected', [created, gated], refuse, [rejected]],
  ['is not rejected in its batch', [created, scheduled], refuse, conflict('debit_Scheduled')],
  ['does not go when it was rejected', [created, gated, rejected], schedule(), []],
  ['is cancelled', [instalment], cancel(), [cancelled]],
  ['is not cancelled where a payer chose it', [created], cancel(), conflict('debit_of_session')],
  ['is cancelled in quarantine', [instalment, gated], cancel(), [cancelled]],
  [
    'is cancelled until its batch closes',
    [instalment, scheduled],
    cancel(CLOSE - 1000),
    [cancelledBeforeClose()],
  ],
  [
    'is not cancelled once its batch has closed',
    [instalment, scheduled],
    cancel(CLOSE),
    conflict('batch_closed'),
  ],
  [
    'is not cancelled once it stands in a file, by whatever clock',
    [instalment, scheduled, inFile],
    cancel(),
    conflict('batch_closed'),
  ],
  ['is cancelled once', [instalment, cancelled], cancel(), []],
  [
    'is not cancelled when the bank has it',
    [instalment, scheduled, submitted],
    cancel(),
    conflict('debit_submitted'),
  ],
  [
    'is not acknowledged when it was cancelled',
    [created, cancelled],
    acknowledge,
    conflict('debit_cancelled'),
  ],
  ['fails', [created, scheduled], fail, [failed]],
  ['fails once', [created, failed], fail, []],
  ['does not fail when the bank has it', [created, scheduled, submitted], fail, conflict('debit_submitted')],
  [
    'does not fail once its batch has closed',
    [created, scheduled],
    { ...fail, at: CLOSE },
    conflict('batch_closed'),
  ],
  ['does not fail once it stands in a file', [created, scheduled, inFile], fail, conflict('batch_closed')],
  [
    'fails after the close when the bank would not take it',
    [created, scheduled],
    { ...fail, byBank: true, at: CLOSE },
    [BankDebitFailed.of({ ...leg, note: 'disabled', at: isoTime(CLOSE) })],
  ],
  [
    'fails in quarantine, whatever its batch',
    [created, scheduled, gated],
    { ...fail, at: CLOSE },
    [BankDebitFailed.of({ ...leg, note: 'disabled', at: isoTime(CLOSE) })],
  ],
  ['is put into a file', [created, scheduled], putInFile, [inFile]],
  ['is put into a file once', [created, scheduled, inFile], putInFile, []],
  ['is not in a file of an earlier time', presentedAgain(), putInFile, []],
  ['is not acknowledged by an earlier time', presentedAgain(), { ...acknowledge, ofBatch }, []],
  [
    'does not come back once more by an earlier time',
    presentedAgain(),
    { ...comeBack(), ofBatch },
    conflict('debit_presented_again'),
  ],
  ['does not fail by an earlier time', presentedAgain(), { ...fail, byBank: true, ofBatch }, []],
  ['is presented again', [created, scheduled, returned], represent(), [represented(1)]],
  [
    'is presented again twice at the most',
    [created, scheduled, returned, represented(1), returned, represented(2), returned],
    represent(),
    conflict('representments_used_up'),
  ],
  [
    'is not presented again unless it came back',
    [created, scheduled, submitted],
    represent(),
    conflict('debit_submitted'),
  ],
  [
    'is not presented again after another return',
    [created, scheduled, BankDebitReturned.of({ ...leg, return_code: 'R02', at })],
    represent(),
    conflict('not_representable'),
  ],
  [
    'is presented again on the last of 180 days from its first entry',
    presentedLater(),
    represent(Date.parse('2027-05-21T17:00:00Z')),
    [
      BankDebitRepresented.of({
        ...represented(2).data,
        batch_closes_at: '2027-05-21T21:00:00.000Z',
        effective_date: '2027-05-24',
        at: '2027-05-21T17:00:00.000Z',
      }),
    ],
  ],
  [
    'is not presented again after these, however late it was presented last',
    presentedLater(),
    represent(Date.parse('2027-05-24T17:00:00Z')),
    conflict('representment_too_late'),
  ],
  [
    'nor when it came out of quarantine between',
    [...presentedLater().slice(0, 5), ...outOfQuarantine, ...presentedLater().slice(5)],
    represent(Date.parse('2027-05-24T17:00:00Z')),
    conflict('representment_too_late'),
  ],
  [
    'comes back again',
    [created, scheduled, returned, represented(1)],
    comeBack('R09'),
    [returnedWith('R09')],
  ],
  ['does not come back when it failed', [created, failed], comeBack(), conflict('debit_failed')],
  [
    'goes with the last close before the day that was asked for',
    [askedFor('2026-12-04')],
    schedule(),
    [scheduledFor('2026-12-03T22:00:00.000Z', '2026-12-04')],
  ],
  [
    'takes effect on the banking day after a day on which banks rest',
    [askedFor('2026-11-28')],
    schedule(),
    [scheduledFor('2026-11-27T22:00:00.000Z', '2026-11-30')],
  ],
  ['goes with the next close for a day that is over', [askedFor('2026-01-05')], schedule(), [scheduled]],
])

/** With the batch after that of its first time. */
function presentedAgain() {
  const batch_closes_at = '2026-11-25T22:00:00.000Z'
  return [
    ...[created, scheduled, inFile, returned],
    BankDebitRepresented.of({ ...represented(1).data, batch_closes_at }),
  ]
}

/** A month after its first time, from which it came back. */
function presentedLater() {
  const effective_date = '2026-12-28'
  return [
    ...[created, scheduled, inFile, returned],
    BankDebitRepresented.of({ ...represented(1).data, effective_date }),
    ...[BankDebitInFile.of({ ...inFile.data, file_id: M2, entry_date: effective_date }), returned],
  ]
}

/** Which the bank has as well. */
function submittedAgain() {
  const later = { ...represented(1).data, batch_closes_at: '2026-11-25T22:00:00.000Z' }
  return [
    ...[created, scheduled, submitted, returned],
    BankDebitRepresented.of({ ...later, effective_date: '2026-11-27' }),
    BankDebitSubmitted.of({ ...submitted.data, effective_date: '2026-11-27' }),
  ]
}

function scheduledFor(batch_closes_at: string, effective_date: string) {
  return BankDebitScheduled.of({ ...leg, batch_closes_at, effective_date, at })
}

function returnedWith(return_code: string) {
  return BankDebitReturned.of({ ...leg, return_code, at })
}

function cancelledBeforeClose() {
  return BankDebitCancelled.of({ ...leg, at: isoTime(CLOSE - 1000) })
}

test('the day that was asked for is shown, whatever the day of the entry', () => {
  const entry = scheduledFor('2026-11-27T22:00:00.000Z', '2026-11-30')
  expect(effectiveDateOf(fold(bankDebit, [askedFor('2026-11-28'), entry])!)).toBe('2026-11-28')
  expect(effectiveDateOf(fold(bankDebit, [created, scheduled])!)).toBe('2026-11-25')
  expect(effectiveDateOf(fold(bankDebit, [created])!)).toBeNull()
})

test('the ledger shows the day that the debit itself tells, whatever the day of its file', () => {
  const lateFile = BankDebitInFile.of({ ...inFile.data, entry_date: '2026-11-27' })
  const again = BankDebitRepresented.of({ ...represented(1).data, effective_date: '2026-12-04' })
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
    fold(bankDebit, [created, scheduled, submitted, reported(told)])!.status
  expect(status({})).toBe('processed')
  expect(status({ settled_on: null })).toBe('submitted')
})

test('a debit is processed two banking days after it took effect', () => {
  // in New York: the 26th is a holiday, the 28th a Saturday
  expect(isoTime(processedFrom('2026-11-25'))).toBe('2026-11-30T05:00:00.000Z')
})

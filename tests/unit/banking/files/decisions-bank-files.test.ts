import { expect, test } from 'vitest'
import {
  MicroDepositsInFile,
  MicroDepositsLeftOut,
  MicroDepositsListed,
  MicroDepositsOrdered,
  microDeposits,
  microDepositsOfBatch,
} from '../../../../domain/banking/accounts/micro-deposits.ts'
import {
  PayerAccountCorrected,
  payerCorrection,
} from '../../../../domain/banking/accounts/payer-correction.ts'
import {
  answerOf,
  bankFile,
  bankFileEntries,
  bankFileNumbers,
} from '../../../../domain/banking/files/bank-file.ts'
import {
  BankFileEntriesRecorded,
  BankFileNumbersTaken,
} from '../../../../domain/banking/files/bank-file-events.ts'
import {
  type BankReportCommand,
  type BankReportEvent,
  bankReport,
  PARKED_REPORTED,
} from '../../../../domain/banking/files/bank-report.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import { type Decision, decisions, eventsOf } from '../../../support/decider-spec.ts'

const ID = 'a'.repeat(24)
/** A Tuesday noon in New York. */
const NOW = Date.parse('2026-11-24T17:00:00Z')
const at = isoTime(NOW)
const SHA = '0'.repeat(64)
/** The beginning of the day in New York on which the entries take effect. */
const MIDNIGHT = Date.parse('2026-11-25T05:00:00Z')

const file = { file_id: ID }
const event = eventsOf(bankFile, { file_id: ID, at })
const begun = event('BankFileBegun', {
  batch_closes_at: at,
  part: 0,
  file_date: '2026-11-24',
  file_time: '1701',
  modifier: 'A',
  first_sequence: 1,
  count: 3,
})
const batch = (batch_number: number) => ({
  batch_number,
  description: 'PREMIUM',
  entry_date: '2026-11-25',
  service_class: 225,
  entries: 1,
  debit_cents: 5,
  credit_cents: 0,
})
const recorded = event('BankFileRecorded', {
  name: `20261124-A-${ID}.ach`,
  sha256: SHA,
  bytes: 940,
  entries_id: ID,
  first_trace: '021000020000001',
  last_trace: '021000020000002',
  batches: [batch(1), batch(2)],
  debit_cents: 10,
  credit_cents: 0,
})
const exposed = event('BankFileExposed')
const fetched = event('BankFileFetched')
const uncertain = event('BankFileUncertain')
const repeated = event('BankFileExposureRepeated', { note: 'asked' })
const restaged = event('BankFileRestaged')
const sent = event('BankFileTreatedAsSent', { note: 'asked' })
const answered = (batch_numbers: number[], outcome: 'accepted' | 'rejected') =>
  event('BankFileAnswered', { batch_numbers, outcome, reason: null, report_id: null })
const [firstAccepted, secondRejected] = [answered([1], 'accepted'), answered([2], 'rejected')]
const [allAccepted, allRejected] = [answered([1, 2], 'accepted'), answered([1, 2], 'rejected')]
const does = <Type extends string>(type: Type) => ({ type, at: NOW })
const [miss, findOverdue] = [does('RecordAbsent'), does('RecordOverdue')]
const [recordFetched, recordExposed] = [does('RecordFetched'), does('RecordExposed')]
const exposeAgain = { type: 'ExposeAgain', note: 'asked', at: NOW } as const
const treatAsSent = { type: 'TreatAsSent', note: 'asked', at: NOW } as const
const answer = (outcome: 'accepted' | 'rejected', batchNumber: number | null = null) =>
  ({ type: 'Answer', batchNumber, outcome, reason: null, reportId: null, at: NOW }) as const
const begin = { type: 'Begin', data: begun.data } as const
const overdue = event('BankFileOverdue')
const caughtUp = event('BankFileCaughtUp')
const out = [begun, recorded, exposed] as const

decisions(bankFile, [
  ['is begun', [], begin, begun],
  ['is begun anew until it is recorded', [begun], begin, begun],
  ['is not begun once it is recorded', [begun, recorded], begin, 'bank_file_recorded'],
  ['is recorded', [begun], { type: 'Record', data: recorded.data }, recorded],
  ['is recorded once', [begun, recorded], { type: 'Record', data: recorded.data }, []],
  [
    'keeps its content',
    [begun, recorded],
    { type: 'Record', data: { ...recorded.data, sha256: '1'.repeat(64) } },
    'bank_file_recorded',
  ],
  ['is exposed', [begun, recorded], recordExposed, exposed],
  ['is exposed once', [out], recordExposed, []],
  ['is not exposed before it is recorded', [begun], recordExposed, 'bank_file_begun'],
  ['is found on its way by whoever looks', [begun, recorded, uncertain], recordExposed, exposed],
  ['is fetched', [out], recordFetched, fetched],
  ['is fetched once', [out, fetched], recordFetched, []],
  ['is found fetched where its folder was away', [out, uncertain], recordFetched, fetched],
  ['also while it is exposed again', [out, uncertain, repeated], recordFetched, fetched],
  ['is absent before it was exposed', [begun, recorded], miss, uncertain],
  ['is absent after that', [out], miss, uncertain],
  ['may go once it was fetched', [out, fetched], miss, []],
  ['is exposed again by a person', [out, uncertain], exposeAgain, repeated],
  [
    'is exposed again until midnight in New York',
    [out, uncertain],
    { ...exposeAgain, at: MIDNIGHT - 1 },
    event('BankFileExposureRepeated', { ...repeated.data, at: isoTime(MIDNIGHT - 1) }),
  ],
  [
    'is not exposed again on the day of its entries',
    [out, uncertain],
    { ...exposeAgain, at: MIDNIGHT },
    'bank_file_too_late',
  ],
  ['is rejected then, and has not gone', [out, uncertain], answer('rejected'), allRejected],
  ['is missed while it is exposed again', [out, uncertain, repeated], miss, uncertain],
  ['is not exposed again unless it is uncertain', [out], exposeAgain, 'bank_file_exposed'],
  ['stands beside its place again', [out, uncertain, repeated], does('RecordRestaged'), restaged],
  ['is exposed from there', [out, uncertain, repeated, restaged], recordExposed, exposed],
  ['is uncertain from there', [out, uncertain, repeated, restaged], miss, uncertain],
  ['is treated as sent by a person', [out, uncertain], treatAsSent, sent],
  ['is treated as sent once', [out, uncertain, sent], treatAsSent, []],
  ['is not treated as sent unless it is uncertain', [out, fetched], treatAsSent, 'bank_file_fetched'],
  ['is accepted', [out], answer('accepted'), allAccepted],
  ['is accepted once', [out, allAccepted], answer('accepted'), []],
  ['is rejected in part', [out, fetched, firstAccepted], answer('rejected', 2), secondRejected],
  [
    'is not rejected once it was accepted',
    [out, fetched, firstAccepted],
    answer('rejected'),
    'batch_answered',
  ],
  ['is rejected', [out, fetched], answer('rejected'), allRejected],
  [
    'is rejected where nobody knows whether the bank has it',
    [out, uncertain],
    answer('rejected'),
    allRejected,
  ],
  ['is not rejected before it was fetched', [out], answer('rejected'), 'bank_file_exposed'],
  ['is overdue while nobody fetches it', [out], findOverdue, overdue],
  ['is overdue once', [out, overdue], findOverdue, []],
  ['is overdue while a batch is not answered', [out, fetched, firstAccepted], findOverdue, overdue],
  ['is not overdue once it is fetched and answered', [out, fetched, allAccepted], findOverdue, []],
  ['is overdue until it is answered', [out, overdue], recordFetched, fetched],
  ['is overdue until all of it is answered', [out, overdue, fetched], answer('accepted', 1), firstAccepted],
  [
    'is not overdue any more',
    [out, overdue, fetched, firstAccepted],
    answer('rejected', 2),
    [secondRejected, caughtUp],
  ],
  [
    'is not overdue any more once the bank answers, however it was fetched',
    [out, overdue],
    answer('accepted'),
    [allAccepted, caughtUp],
  ],
  ['is not missed where the bank has answered', [out, firstAccepted], miss, []],
  [
    'is not exposed again where the bank has answered',
    [out, uncertain, firstAccepted],
    { ...does('ExposeAgain'), note: null },
    'bank_file_sent',
  ],
  ['has no such batch', [out], answer('accepted', 3), 'batch_not_found'],
  ['is not answered before it can be seen', [begun, recorded], answer('accepted'), 'bank_file_recorded'],
])

test('how a file as a whole was answered, and that who answers has it', () => {
  expect(answerOf(state()!)).toBe('none')
  expect(answerOf(state(firstAccepted)!)).toBe('partly')
  expect(answerOf(state(firstAccepted, secondRejected)!)).toBe('partly')
  expect(answerOf(state(allRejected)!)).toBe('rejected')
  expect(state(uncertain, allAccepted)!.status).toBe('sent')
})

function state(...events: (ReturnType<typeof answered> | typeof uncertain)[]) {
  return fold(bankFile, [...out, ...events])
}

const entries = BankFileEntriesRecorded.of({
  entries_id: ID,
  ...file,
  sha256: SHA,
  batch_number: 1,
  kind: 'debit',
  entry_date: '2026-11-25',
  first_trace: '021000020000001',
  ids: [ID],
  amounts_cents: [5],
})
decisions(bankFileEntries, [['are recorded', [], { type: 'RecordEntries', chunks: [entries.data] }, entries]])

const taken = (file_date: string, modifier: string, first_sequence: number, count = 10) =>
  BankFileNumbersTaken.of({ ...file, file_date, modifier, first_sequence, count, at })
const take = (fileDate = '2026-11-24', count = 10) =>
  ({ type: 'TakeNumbers', fileId: ID, fileDate, count, at: NOW }) as const
const aDay = Array.from({ length: 36 }, (_, index) => taken('2026-11-24', 'A', 1 + index * 10))
decisions(bankFileNumbers, [
  ['begin with the first', [], take(), taken('2026-11-24', 'A', 1)],
  ['go on', [taken('2026-11-24', 'A', 1)], take(), taken('2026-11-24', 'B', 11)],
  ['begin a day with A', [taken('2026-11-24', 'A', 1)], take('2026-11-25'), taken('2026-11-25', 'A', 11)],
  [
    'go on with the day before where a clock is behind',
    [taken('2026-11-24', 'A', 1), taken('2026-11-25', 'A', 11)],
    take('2026-11-24'),
    taken('2026-11-24', 'B', 21),
  ],
  [
    'do not stay with a day of a clock that was ahead',
    [
      taken('2031-01-02', 'A', 1),
      ...Array.from({ length: 12 }, (_, n) => taken(`2026-11-${n + 10}`, 'A', 11)),
    ],
    take('2026-11-24'),
    taken('2026-11-24', 'A', 21),
  ],
  ['go from Z to 0', aDay.slice(0, 26), take(), taken('2026-11-24', '0', 261)],
  ['end with 9', aDay.slice(0, 35), take(), taken('2026-11-24', '9', 351)],
  ['are used up after that', aDay, take(), { kind: 'too_many', code: 'no_file_modifier' }],
  [
    'begin anew where they would not ascend through the file',
    [taken('2026-11-24', 'A', 1, 9_999_990)],
    take(),
    taken('2026-11-24', 'B', 1),
  ],
])

const report = { report_id: ID }
const told = eventsOf(bankReport, { report_id: ID, at })
const received = told('BankReportReceived', { name: 'ret.txt', sha256: SHA, bytes: 5 })
const receive = (name: string) =>
  ({ type: 'Receive', data: { ...report, name, sha256: SHA, bytes: 5 }, at: NOW }) as const
const item = (line: number) => ({
  ...({ line, kind: 'return', reason: 'why', code: 'R01' } as const),
  original_trace: '021000020000001',
  amount_cents: 5,
})
const parked = (...lines: number[]) => told('BankReportItemsParked', { items: lines.map(item) })
const read = (applied: number, repeated: number, parked: number) =>
  told('BankReportRead', { format: 'nacha', items: 3, applied, repeated, parked })
const recordRead = (repeated: number, ...lines: number[]) =>
  ({ type: 'RecordRead', format: 'nacha', items: 3, repeated, parked: lines.map(item), at: NOW }) as const
const again = told('BankReportReadAgain')
const resolvedAt = (line: number) => told('BankReportItemResolved', { line, note: 'seen to' })
const resolved = resolvedAt(3)
const applied = told('BankReportItemApplied', {
  ...{ line: 3, transaction_id: ID, return_code: 'R02', reason: 'said the bank', was_resolved: false, at },
})
const appliedLate = told('BankReportItemApplied', { ...applied.data, was_resolved: true })
const oneParked = [parked(3), read(2, 0, 1)]
const twoParked = [parked(3, 4), read(1, 0, 2)]
const noSuchItem = 'parked_item_not_found' as const
const apply = (
  changes: { line?: number; transaction_id?: string; return_code?: string; amount_cents?: number } = {},
) =>
  ({
    ...({ type: 'Apply', line: 3, transaction_id: ID, return_code: 'R02', amount_cents: 5 } as const),
    ...changes,
    reason: 'said the bank',
    at: NOW,
  }) as const
const parkAgain = (transaction_id: string = ID, return_code = 'R02') =>
  ({ type: 'ParkAgain', line: 3, transaction_id, return_code, reason: 'returned', at: NOW }) as const
const cleared = told('BankReportCleared')
const resolve = (line: number) => ({ type: 'Resolve', line, note: 'seen to', at: NOW }) as const
const refused = told('BankReportRefused', { reason: 'cut short' })
/** Items that are told one by one, and further ones. */
const lines = Array.from({ length: PARKED_REPORTED + 1 }, (_, index) => index + 1)
const pages = [0, 500, 1_000, 1_500].map((from) => parked(...lines.slice(from, from + 500)))
decisions(bankReport, [
  ['is received', [], receive('ret.txt'), received],
  ['is received once under a name', [received], receive('ret.txt'), []],
  ['is delivered again', [received], receive('b.txt'), told('BankReportDeliveredAgain', { name: 'b.txt' })],
  ['is refused', [received], { type: 'Refuse', reason: 'cut short', at: NOW }, refused],
  ['is refused once', [received, refused], { type: 'Refuse', reason: 'cut short', at: NOW }, []],
  ['is read', [received], recordRead(1), read(2, 1, 0)],
  ['is read with items parked', [received], recordRead(1, 3), [parked(3), read(1, 1, 1)]],
  [
    'tells of many parked items no more than fit into an append, and counts them all',
    [received],
    { ...recordRead(0, ...lines), items: lines.length },
    [...pages, told('BankReportRead', { ...read(0, 0, lines.length).data, items: lines.length })],
  ],
  [
    'calls for a person while there are parked items that it did not tell of',
    [received, parked(1), told('BankReportRead', { ...read(0, 0, 2).data, items: 2 })],
    resolve(1),
    resolvedAt(1),
  ],
  [
    'calls for nobody once those are named when it is read again, and seen to',
    [
      ...[received, parked(1), told('BankReportRead', { ...read(0, 0, 2).data, items: 2 })],
      ...[resolvedAt(1), again, parked(2)],
      told('BankReportRead', { ...read(0, 0, 1).data, items: 2 }),
    ],
    resolve(2),
    [resolvedAt(2), cleared],
  ],
  ['is read once', [received, read(3, 0, 0)], recordRead(1), []],
  ['is read again', [received, oneParked], { type: 'ReadAgain', at: NOW }, again],
  ['is read again when it was refused', [received, refused], { type: 'ReadAgain', at: NOW }, again],
  ['is not read again while it is read', [received], { type: 'ReadAgain', at: NOW }, []],
  ['has an item resolved', [received, parked(3, 4), read(2, 0, 2)], resolve(3), resolved],
  ['is cleared with the last item', [received, oneParked], resolve(3), [resolved, cleared]],
  ['has an item resolved once', [received, oneParked, resolved, cleared], resolve(3), []],
  [
    'is cleared when what was resolved before there was such an event is resolved again',
    [received, oneParked, resolved],
    resolve(3),
    cleared,
  ],
  [
    'is cleared when all fits once it is read again',
    [received, oneParked, again],
    recordRead(0),
    [read(3, 0, 0), cleared],
  ],
  ['has no such item', [received, oneParked], resolve(4), noSuchItem],
  [
    'parks nothing that was resolved',
    [received, oneParked, resolved, cleared, again],
    recordRead(0, 3),
    read(2, 0, 0),
  ],
  ['has an item applied to a debit', [received, twoParked], apply(), applied],
  ['is cleared with the last one', [received, oneParked], apply(), [applied, cleared]],
  [
    'parks an item again whose debit something else brought back',
    [received, twoParked, applied],
    parkAgain(),
    told('BankReportItemsParked', { items: [{ ...item(3), reason: 'returned' }] }),
  ],
  [
    'parks no item again that was applied to another debit since',
    [received, twoParked, applied],
    parkAgain('f'.repeat(24)),
    [],
  ],
  [
    'parks no item again that was applied with another code since',
    [received, twoParked, applied],
    parkAgain(ID, 'R01'),
    [],
  ],
  ['has an item applied that was parked again', [received, twoParked, applied, parked(3)], apply(), applied],
  ['has it applied once', [received, oneParked, applied, cleared], apply(), []],
  [
    'does not have it applied to another debit',
    [received, oneParked, applied, cleared],
    apply({ transaction_id: 'f'.repeat(24) }),
    'item_applied',
  ],
  [
    'does not have it applied with another code',
    [received, oneParked, applied, cleared],
    apply({ return_code: 'R03' }),
    'item_applied',
  ],
  [
    'does not have it applied to a debit of another amount',
    [received, oneParked],
    apply({ amount_cents: 6 }),
    'item_amount_differs',
  ],
  ...(['change', 'answer'] as const).map((kind): Decision<BankReportCommand, BankReportEvent> => {
    const items = [{ ...item(3), kind, amount_cents: null }]
    return [
      `applies no ${kind} to a debit`,
      [received, told('BankReportItemsParked', { items }), read(2, 0, 1)],
      apply(),
      'item_no_return',
    ]
  }),
  [
    'has an item applied that was resolved while there was no other way',
    [received, twoParked, resolved],
    apply(),
    appliedLate,
  ],
  [
    'has a resolved one applied that fits nothing still when it is read again',
    [received, oneParked, resolved, cleared, again, read(2, 0, 0)],
    apply(),
    appliedLate,
  ],
  [
    'does not have one applied while it is read again',
    [received, oneParked, resolved, cleared, again],
    apply(),
    noSuchItem,
  ],
  [
    'does not have a resolved one applied that had its effect when it was read again',
    [received, oneParked, resolved, cleared, again, read(3, 0, 0)],
    apply(),
    noSuchItem,
  ],
  ['has no other one to apply', [received, oneParked], apply({ line: 4 }), noSuchItem],
  ['does not have one resolved that was applied', [received, twoParked, applied], resolve(3), 'item_applied'],
  [
    'is cleared with what is left once an item was applied',
    [received, twoParked, applied],
    resolve(4),
    [resolvedAt(4), cleared],
  ],
  [
    'calls for a person again when it parks again',
    [received, oneParked, again, read(3, 0, 0), cleared, again],
    recordRead(0, 3),
    oneParked,
  ],
])

const deposits = { deposits_id: ID }
const ordered = MicroDepositsOrdered.of({
  ...deposits,
  ach_account_id: ID,
  batch_closes_at: '2026-11-24T22:00:00.000Z',
  at,
})
const order = (time: number) =>
  ({ ...({ type: 'Order', data: { ...deposits, ach_account_id: ID } } as const), at: time }) as const
const inFile = MicroDepositsInFile.of({ ...deposits, file_id: ID, at })
const leftOut = MicroDepositsLeftOut.of({ ...deposits, note: 'unreadable', at })
const leaveOut = { type: 'LeaveOut', note: 'unreadable', at: NOW } as const
decisions(microDeposits, [
  ['go with the next close', [], order(NOW), ordered],
  ['are ordered once, whenever that is repeated', [ordered], order(NOW + 86_400_000), []],
  ['are put into a file', [ordered], { type: 'PutInFile', fileId: ID, at: NOW }, inFile],
  ['are put into a file once', [ordered, inFile], { type: 'PutInFile', fileId: ID, at: NOW }, []],
  ['are left out', [ordered], leaveOut, leftOut],
  ['are not left out of a file', [ordered, inFile], leaveOut, []],
])
const listed = MicroDepositsListed.of({ ...deposits, batch_closes_at: at, at })
const list = { type: 'List', depositsId: ID, batchClosesAt: at, at: NOW } as const
decisions(microDepositsOfBatch, [
  ['are listed', [], list, listed],
  ['are listed once', [listed], list, []],
])

const corrected = (fingerprint: string) =>
  PayerAccountCorrected.of({
    correction_id: ID,
    tenant_id: ID,
    environment: 'live',
    fingerprint: ID,
    change_code: 'C01',
    account: { account_ref: 'r', fingerprint, account_last4: '1234', account_type: 'checking' },
    leg_id: ID,
    at,
  })
const [FIRST, SECOND, THIRD] = ['a', 'b', 'c'].map((one) => one.repeat(24)) as [string, string, string]
const correct = (fingerprint: string, of: string) => {
  const { at: _at, ...data } = corrected(fingerprint).data
  return { type: 'Correct', data, of: corrected(of).data.account, at: NOW } as const
}
decisions(payerCorrection, [
  ['is applied', [], correct(SECOND, FIRST), corrected(SECOND)],
  ['is applied once', [corrected(SECOND)], correct(SECOND, FIRST), []],
  ['is followed by another', [corrected(SECOND)], correct(THIRD, SECOND), corrected(THIRD)],
  ['is not undone by one of what it corrected', [corrected(SECOND)], correct(THIRD, FIRST), []],
])

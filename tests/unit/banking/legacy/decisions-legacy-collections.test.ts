import { describe, expect, test } from 'vitest'
import { legacyHistoryOf } from '../../../../application/banking/legacy/legacy-collections.ts'
import { importIdOf } from '../../../../application/banking/legacy/legacy-import.ts'
import {
  LEGACY_STATUSES,
  LegacyCollectionAcknowledged,
  type LegacyCollectionCommand,
  LegacyCollectionCorrected,
  type LegacyCollectionEvent,
  LegacyCollectionRecorded,
  LegacyCollectionReturned,
  type LegacyStatus,
  legacyCollection,
  legacyGroupOf,
} from '../../../../domain/banking/legacy/legacy-collection.ts'
import {
  type ImportedRow,
  importedId,
  importOf,
  LegacyCollectionsImported,
  LegacyImportBegun,
  legacyImport,
  recordOf,
  statusOfLine,
} from '../../../../domain/banking/legacy/legacy-import.ts'
import { ImportedLines } from '../../../../domain/banking/linking/imported-lines.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import { type Decision, decisions } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [ID, EMPLOYER, POLICY, CARRIER] = ['a', 'e', 'b', 'c'].map((digit) => digit.repeat(24)) as [
  string,
  ...string[],
] as [string, string, string, string]
const NOW = Date.UTC(2026, 4, 4, 12)
const at = isoTime(NOW)
const fields = {
  employer_id: EMPLOYER,
  carrier_id: CARRIER,
  policy_id: POLICY,
  period_start: '2026-04-20',
  period_end: '2026-04-26',
  premium_cents: 12_345,
}
const data = (status: LegacyStatus, line: number | null = null) => ({
  ...({ transaction_id: ID, tenant_id: ID, environment: 'live' } as const),
  ...fields,
  status,
  import: line === null ? null : { import_id: ID, line },
  recorded_at: at,
})
const recorded = (status: LegacyStatus, line: number | null = null) =>
  LegacyCollectionRecorded.of(data(status, line))
const record = (status: LegacyStatus, line: number | null = null) =>
  ({ type: 'Record', data: data(status, line) }) as const
const acknowledge = { type: 'Acknowledge', at: NOW } as const
const acknowledged = LegacyCollectionAcknowledged.of({ transaction_id: ID, at })
const giveBack = (return_code = 'R01') => ({ type: 'Return', return_code, at: NOW }) as const
const returned = LegacyCollectionReturned.of({ transaction_id: ID, return_code: 'R01', at })
const correct = (status: LegacyStatus) =>
  ({ type: 'Correct', status, reason: 'never collected', at: NOW }) as const
const corrected = (status: LegacyStatus) =>
  LegacyCollectionCorrected.of({ transaction_id: ID, status, reason: 'never collected', at })
const doesNotFit = (status: LegacyStatus) =>
  ({ kind: 'conflict', code: `legacy_collection_${status}` }) as const

decisions(legacyCollection, [
  ['is recorded', [], record('at_sb'), recorded('at_sb')],
  ['is recorded once', [recorded('at_sb')], record('at_sb'), 'legacy_collection_exists'],
  ['is taken from its import once', [recorded('at_sb', 7)], record('at_sb', 7), []],
  ['is not there before', [], acknowledge, 'legacy_collection_not_found'],
  ['is acknowledged at the bureau', [recorded('at_sb')], acknowledge, acknowledged],
  ['is acknowledged in its file', [recorded('file_transmitted')], acknowledge, acknowledged],
  ['is acknowledged once', [recorded('at_sb'), acknowledged], acknowledge, []],
  ['is not acknowledged before the bank has it', [recorded('pending')], acknowledge, doesNotFit('pending')],
  ['is not acknowledged after it failed', [recorded('failed')], acknowledge, doesNotFit('failed')],
  ['is returned', [recorded('sb_remit')], giveBack(), returned],
  ['is returned after its acknowledgement', [recorded('at_sb'), acknowledged], giveBack(), returned],
  ['is returned by whoever collected it', [recorded('legacy_collected')], giveBack(), returned],
  ['is returned once', [recorded('sb_remit'), returned], giveBack(), []],
  ['is returned for one reason', [recorded('sb_remit'), returned], giveBack('R02'), doesNotFit('returned')],
  ['is not returned before the bank has it', [recorded('pending')], giveBack(), doesNotFit('pending')],
  ['is not returned after it was cancelled', [recorded('canceled')], giveBack(), doesNotFit('canceled')],
  ...LEGACY_STATUSES.flatMap((from) =>
    LEGACY_STATUSES.map((to): Decision<LegacyCollectionCommand, LegacyCollectionEvent> => {
      return [
        `${from} is corrected to ${to}`,
        [recorded(from)],
        correct(to),
        from === to ? [] : [corrected(to)],
      ]
    }),
  ),
  [
    'is corrected after its return',
    [recorded('sb_remit'), returned],
    correct('sb_remit'),
    corrected('sb_remit'),
  ],
  [
    'is returned once more when that was corrected',
    [recorded('at_sb'), returned, corrected('at_sb')],
    giveBack(),
    returned,
  ],
  ['is not corrected before', [], correct('failed'), 'legacy_collection_not_found'],
])

const row = (line: number, changes: Partial<ImportedRow> = {}): ImportedRow => ({
  line,
  ...fields,
  status: 'sb_remit',
  ...changes,
})
const store = (...rows: readonly ImportedRow[]) =>
  ({
    ...({ type: 'Store', importId: ID, name: 'cut-over', tenantId: ID, environment: 'live' } as const),
    rows,
    at: NOW,
  }) as const
const begun = LegacyImportBegun.of({ import_id: ID, name: 'cut-over', at })
const imported = (...rows: ImportedRow[]) =>
  LegacyCollectionsImported.of({ import_id: ID, tenant_id: ID, environment: 'live', rows, at })

decisions(legacyImport, [
  ['begins with its first lines', [], store(row(1), row(3)), [begun, imported(row(1), row(3))]],
  ['does not begin without any', [], store(), []],
  ['stores further lines', [begun, imported(row(1))], store(row(2)), imported(row(2))],
  ['stores what is missing', [begun, imported(row(1), row(3))], store(row(1), row(2)), imported(row(2))],
  ['stores no line twice', [begun, imported(row(1))], store(row(1, { premium_cents: 1 })), []],
])

describe('a line that comes again', () => {
  const state = fold(legacyImport, [begun, imported(row(1), row(2_000, { policy_id: null }))])
  test.for([
    ['is not stored', row(2), 'fresh'],
    ['says the same', row(1), 'repeated'],
    ['names no carrier beside the policy', row(1, { carrier_id: null }), 'repeated'],
    ['says something else', row(1, { premium_cents: 12_346 }), 'changed'],
    ['names another carrier without a policy', row(2_000, { policy_id: null, carrier_id: ID }), 'changed'],
  ] as const)('%s', ([, line, expected]) => {
    expect(statusOfLine(state, line)).toBe(expected)
  })
})

test('lines that are stored are known in any order', () => {
  const none = ImportedLines.NONE
  const some = none.with([3_000, 1, 1_023, 1_024].map((line) => ({ line, fingerprint: line + 1 })))
  expect([some.size, some.last, some.fingerprintOf(1_024), some.fingerprintOf(2)]).toEqual([
    ...[4, 3_000, 1_025, 0],
  ])
  expect([none.size, none.fingerprintOf(1)]).toEqual([0, 0])
})

test('the id of an imported record tells its import and line', () => {
  const importId = importIdOf('cut-over')
  expect(importId).toMatch(/^[0-9a-f]{16}0{8}$/)
  expect(importOf(importedId(importId, 1_000_000))).toEqual({ importId, line: 1_000_000 })
  const chunk = { ...imported(row(7)).data, import_id: importId }
  expect(recordOf(chunk, 8)).toBeNull()
  expect(recordOf(chunk, 7)).toEqual({
    ...data('sb_remit'),
    transaction_id: importedId(importId, 7),
    import: { import_id: importId, line: 7 },
  })
})

test('the history of a record begins as the legacy service had it', () => {
  const record = fold(legacyCollection, [recorded('at_sb'), acknowledged, returned, corrected('sb_remit')])!
  expect(
    legacyHistoryOf(record).map(({ at, from_status, to_status, note }) => [at, from_status, to_status, note]),
  ).toEqual([
    ['2026-04-26T00:00:00.000Z', null, 'at_sb', `As the legacy service had it; taken over at ${at}`],
    [at, 'at_sb', 'sb_remit', 'Acknowledged by the bank'],
    [at, 'sb_remit', 'returned', 'Returned by the bank (R01)'],
    [at, 'returned', 'sb_remit', 'Corrected by an operator: never collected'],
  ])
  expect([record.status, record.return_code]).toEqual(['sb_remit', null])
})

test('every status is shown in one group', () => {
  expect(LEGACY_STATUSES.map((status) => [status, legacyGroupOf(status)])).toEqual([
    ['pending', 'in_flight'],
    ['at_sb', 'in_flight'],
    ['file_transmitted', 'in_flight'],
    ['sb_remit', 'money_landed'],
    ['legacy_collected', 'money_landed'],
    ['returned', 'failed'],
    ['failed', 'failed'],
    ['canceled', 'failed'],
  ])
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { collectedByLegacy } from '../../../../application/banking/legacy/legacy-duplicates.ts'
import {
  type ImportLine,
  importLegacyCollections,
} from '../../../../application/banking/legacy/legacy-import.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { LEGACY_STATUSES, type LegacyStatus } from '../../../../domain/banking/legacy/legacy-collection.ts'
import { legacyCollections } from '../../../../projections/banking/legacy/legacy-collections.ts'
import type { Projections } from '../../../../projections/runtime/projections.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import {
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
  waitingBefore,
  withReadModels,
} from '../../../support/registrations.ts'

/** What the legacy service has collected, on the real log and read model. */
let database: TestDatabase
let process: RegistrationProcess
let projections: Projections
let app: Application
let insured: Awaited<ReturnType<typeof registerInsured>>
let other: Awaited<ReturnType<typeof registerInsured>>

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  ;({ app, projections } = await withReadModels(process, [legacyCollections]))
  insured = await registerInsured(app)
  other = await registerInsured(app)
})
afterAll(async () => {
  await projections?.stop()
  await process?.bench.close()
  await database?.drop()
})

const line = (line: number, changes: object = {}): ImportLine => ({
  row: {
    line,
    employer_id: insured.employerId,
    carrier_id: null,
    policy_id: null,
    period_start: '2026-04-20',
    period_end: '2026-04-26',
    premium_cents: 10_000,
    status: 'sb_remit',
    ...changes,
  },
})
async function* batches(...all: readonly (readonly ImportLine[])[]) {
  yield* all
}
const send = (name: string, ...all: readonly (readonly ImportLine[])[]) =>
  importLegacyCollections(app, name, batches(...all), operatorContext())
const amountOf = (status: LegacyStatus) => 20_000 + LEGACY_STATUSES.indexOf(status)

describe('a debit of what the legacy service collected', () => {
  beforeAll(async () => {
    const statuses = LEGACY_STATUSES.map((status, index) =>
      line(index + 2, { status, premium_cents: amountOf(status) }),
    )
    await send('records', [line(1), ...statuses])
  })
  const debit = (changes: object = {}) => ({
    employer_id: insured.employerId,
    amount_cents: 10_000,
    period: null,
    effective_date: '2026-04-23',
    ...changes,
  })
  const of = (start: string, end: string) => ({ period: { start, end }, effective_date: '2030-01-01' })

  test.for([
    ['takes effect within its period', {}, true],
    ['takes effect on its first day', { effective_date: '2026-04-20' }, true],
    ['takes effect on its last day', { effective_date: '2026-04-26' }, true],
    ['takes effect before', { effective_date: '2026-04-19' }, false],
    ['takes effect afterwards', { effective_date: '2026-04-27' }, false],
    ['is of another amount', { amount_cents: 10_001 }, false],
    ['is of a file with the same period', of('2026-04-20', '2026-04-26'), true],
    ['is of a file with a period within it', of('2026-04-21', '2026-04-25'), false],
    ['is of a file with a longer period', of('2026-04-20', '2026-04-27'), false],
  ] as const)('%s: %j is %s', async ([, changes, expected]) => {
    expect(await collectedByLegacy(app, [debit(changes)])).toHaveProperty('size', expected ? 1 : 0)
  })

  test('of another employer is none', async () => {
    expect(await collectedByLegacy(app, [debit({ employer_id: other.employerId })])).toEqual(new Set())
  })

  test('is one unless the money did not come, or went back', async () => {
    const debits = LEGACY_STATUSES.map((status) => debit({ amount_cents: amountOf(status) }))
    const collected = await collectedByLegacy(app, debits)
    expect(LEGACY_STATUSES.filter((_, index) => collected.has(debits[index]!))).toEqual([
      ...['pending', 'at_sb', 'file_transmitted', 'sb_remit', 'legacy_collected'],
    ])
  })
})

test('two attempts of an import at the same time store every line once', async () => {
  const lines = Array.from({ length: 10 }, (_, index) => line(index + 1, { premium_cents: 30_000 + index }))
  const held = waitingBefore(app, 'legacyImport')
  const first = importLegacyCollections(
    held.app,
    'twice',
    batches(lines.slice(0, 6), lines.slice(6)),
    operatorContext(),
  )
  await held.arrived
  expect(await send('twice', lines.slice(3))).toMatchObject({ stored: 7, repeated: 0, refused: 0 })
  held.goOn()
  expect(await first).toMatchObject({ stored: 3, repeated: 7, refused: 0 })
  expect(await send('twice', lines)).toMatchObject({ stored: 0, repeated: 10, refused: 0 })
})

test('lines of several accounts are stored in each', async () => {
  const lines = [line(1), line(2, { employer_id: other.employerId }), line(3)]
  expect(await send('mixed', lines)).toMatchObject({ stored: 3, refused: 0 })
  const foreign = [line(4, { carrier_id: other.carrierId }), line(5, { carrier_id: insured.carrierId })]
  expect(await send('mixed', foreign)).toMatchObject({
    stored: 1,
    refused: 1,
    refusals: [{ line: 4, reason: "carrier_id names no carrier of the employer's tenant" }],
  })
})

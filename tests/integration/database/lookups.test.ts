import { Pool } from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PersonalDataKeys } from '../../../infrastructure/secrets/personal-data-keys.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { openWorkbench, pieceOfWork, type Workbench } from '../../support/workbench.ts'

let bench: Workbench
/** One session, whose plan stays and whose transaction counts what its statements read. */
let session: Pool

beforeEach(async () => {
  bench = await openWorkbench()
  session = new Pool({ ...bench.database.pool.options, max: 1 })
})
afterEach(async () => {
  await session.end()
  await bench.close()
})

/** How many rows of a table a lookup scans after many were added, when it was planned for nearly none. */
async function scannedBy(table: string, lookup: () => Promise<unknown>, addMany: string) {
  await session.query('SET plan_cache_mode = force_generic_plan')
  await bench.database.withOwner((owner) => owner.query(`ANALYZE ${table}`))
  await lookup()
  await session.query(addMany)
  await session.query('BEGIN')
  await lookup()
  const { rows } = await session.query<{ scanned: number }>(
    'SELECT pg_stat_get_xact_tuples_returned($1::regclass)::int AS scanned',
    [table],
  )
  await session.query('COMMIT')
  return rows[0]!.scanned
}

describe('a lookup by keys scans no table, however few rows that had when it was planned', () => {
  test('of the work that a checkpoint stores and cancels', async () => {
    const store = new PostgresWorkStore(session)
    const position = await store.takeOver('p', 1)
    const piece = (key: string) => pieceOfWork({ processManager: 'p', kind: 'k', key, isLater: true })
    const advance = () =>
      store.advance('p', { position, epoch: 1 }, position, { store: [piece('a')], cancel: [piece('many 8')] })
    const addMany = `
      INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, correlation_id, causation_id)
      SELECT 'p', 'k', 'many ' || n, '{}', 0, 'later', 'c', 'c' FROM generate_series(1, 2000) AS n`
    expect(await scannedBy('runtime.work', advance, addMany)).toBe(0)
    const kept = await store.keysOf('p', 'k')
    expect(kept).toHaveLength(2000)
    expect(kept).not.toContain('many 8')
  })

  const addKeys = `
    INSERT INTO runtime.data_keys (subject, generation, wrapped, master_key_id, created_at)
    SELECT 'person/many' || n, 1, '\\x00', 'm', now() FROM generate_series(1, 2000) AS n`
  const subjects = ['person/1', 'person/2', 'person/many7']
  test.each<[string, (keys: PersonalDataKeys) => Promise<unknown>]>([
    ['that are read', (keys) => keys.read(subjects)],
    [
      'that are stored where there is none',
      (keys) =>
        keys.storeMissing(
          subjects.slice(0, 2).map((subject) => ({ subject, generation: 1, wrapped: Buffer.alloc(60) })),
          'm',
          0,
        ),
    ],
  ])('of data keys %s', async (_, lookup) => {
    const keys = new PersonalDataKeys(session)
    expect(await scannedBy('runtime.data_keys', () => lookup(keys), addKeys)).toBe(0)
  })
})

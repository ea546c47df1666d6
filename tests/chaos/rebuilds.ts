import type pg from 'pg'
import { expect } from 'vitest'
import { operate, type SeedableService } from '../support/seed.ts'
import { until } from '../support/workbench.ts'

interface ShownProjection {
  readonly name: string
  readonly generation: number
  readonly state: string
  readonly parked_streams: number
  readonly failure: unknown
  readonly rebuild: unknown
}

/** Every projection is well, and what its tables hold equals what the log yields from its start. @param database of a superuser. */
export async function expectRebuildsEqual(service: SeedableService, database: pg.Client): Promise<void> {
  const list: ShownProjection[] = await operate(service, 'GET', '/projections')
  for (const one of list) {
    expect(one).toMatchObject({ state: 'active', parked_streams: 0, failure: null, rebuild: null })
  }
  for (const { name } of list) await expectRebuildEqual(service, database, name)
}

async function expectRebuildEqual(
  service: SeedableService,
  database: pg.Client,
  name: string,
): Promise<void> {
  const shown = (): Promise<ShownProjection> => operate(service, 'GET', `/projections/${name}`)
  const { generation } = await shown()
  const before = await contents(database, name, generation)
  await operate(service, 'POST', `/projections/${name}/rebuild`, { switch: 'auto' })
  await until(async () => {
    // a busy machine may be too slow to answer in time
    const now = await shown().catch(() => null)
    return now !== null && now.generation > generation && now.state === 'active' && now.rebuild === null
  }, 300_000)
  expect(await contents(database, name, (await shown()).generation), name).toEqual(before)
}

/** Number of rows and a hash over them, by table of a generation. */
async function contents(
  database: pg.Client,
  name: string,
  generation: number,
): Promise<Record<string, unknown>> {
  const schema = `rm_${name.replaceAll('-', '_')}_g${generation}`
  const tables = await database.query<{ table_name: string }>(
    'SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1',
    [schema],
  )
  const found: Record<string, unknown> = {}
  for (const { table_name } of tables.rows) {
    const { rows } = await database.query(
      `SELECT count(*)::int AS rows, md5(string_agg(md5(t::text), '' ORDER BY t::text)) AS hash
       FROM ${schema}.${table_name} AS t`,
    )
    found[table_name] = rows[0]
  }
  expect(Object.keys(found), schema).not.toEqual([])
  return found
}

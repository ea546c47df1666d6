// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
// @module-tag long: unit and end-to-end tests of collections have the same steps without kills
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { achDebitsOf } from '../support/ach-debits.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { until } from '../support/workbench.ts'

/** Batch collections of a service that is killed while the log holds one of its appends back. */

const LOCK = 4_243
const env = () => ({
  DATABASE_URL: database.url,
  MASTER_KEY: randomBytes(32).toString('base64'),
  OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
})

let database: TestDatabase
let client: pg.Client
let settings: ReturnType<typeof env>
let service: RunningService
let tenant: SeededTenant
let account: string
let policies: readonly string[]

const bank = () => achDebitsOf(service, tenant)

beforeAll(async () => {
  database = await createTestDatabase()
  client = new pg.Client(database.url)
  await client.connect()
  await client.query(`
    CREATE FUNCTION held_back() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(${LOCK}); RETURN NEW; END $$`)
  settings = env()
  service = await startService({ env: settings })
  tenant = await seedTenant(service)
  account = await bank().account()
  policies = [tenant.policyId, await bank().policy(), await bank().policy()]
})
afterAll(async () => {
  await service?.stop()
  await client?.end()
  await database?.drop()
})

/** Kills the service as it appends an event of a type, which is then not stored, and starts it again. */
async function killedAt(type: string, request: () => Promise<Answer>): Promise<void> {
  await client.query(`SELECT pg_advisory_lock(${LOCK})`)
  await client.query(`
    CREATE TRIGGER holding BEFORE INSERT ON event_log.events
    FOR EACH ROW WHEN (NEW.type = '${type}') EXECUTE FUNCTION held_back()`)
  const lost = request().catch(() => null)
  const waiting = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCK} AND NOT granted`
  await until(async () => (await client.query(waiting)).rows.length > 0)
  await service.kill()
  expect(await lost).toBeNull()
  await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS held`)
  await until(async () => (await client.query(waiting)).rows.length === 0)
  await client.query('DROP TRIGGER holding ON event_log.events')
  await client.query(`SELECT pg_advisory_unlock(${LOCK})`)
  service = await startService({ env: settings })
}

test.each([
  ['DebitKeyClaimed', 0],
  ['DebitCollectionAccepted', 0],
  ['BankDebitCreated', 3],
])(
  'of one that was killed at %s there are %i debits, and all of them when it is sent again',
  async (type, debits) => {
    const entries = policies.map((policyId) => bank().entry({ policyId }))
    const body = bank().collection(account, ...entries)
    const collect = () => bank().ask('POST', '/ach/collections', body)
    const before = await bank().total()
    await killedAt(type, collect)
    await bank().drain()
    expect(await bank().total()).toBe(before + debits)
    const first = await collect()
    const again = await collect()
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body])
    expect(first.body.data.transactions).toHaveLength(3)
    expect(await bank().total()).toBe(before + 3)
  },
)

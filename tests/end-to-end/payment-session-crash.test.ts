// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
// @module-tag long: payments-intake-crash dies between the steps of a request in the same way
import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { enableCheckout, newSession, sessionBody, tokenOf } from '../support/payment-sessions.ts'
import { partner } from '../support/payments.ts'
import { type Answer, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { until } from '../support/workbench.ts'

/** Payment sessions of a service that is killed while the log holds one of its appends back. */

const LOCK = 4_242
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
  await enableCheckout(service, tenant)
})
afterAll(async () => {
  await service?.stop()
  await client?.end()
  await database?.drop()
})

const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(service, tenant.clientHeaders, method, path, body, key)
const shown = async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data
const sessions = async () => (await ask('GET', '/payment-sessions')).body.pagination.total as number
const opens = async ({ url }: { readonly url: string }) =>
  (await send(`${service.paymentsUrl}/public/payment-sessions/${tokenOf({ url })}`)).status

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

test.each([undefined, randomUUID()])(
  'a session whose service was killed between its cancellation and its successor is issued anew by who asks again: %s',
  async (key) => {
    for (const mode of ['link', 'embedded']) {
      const old = await newSession(service, tenant, { mode, description: mode })
      const reissue = () => ask('POST', `/payment-sessions/${old.id}/reissue`, {}, key)
      await killedAt('PaymentSessionCreated', reissue)
      const { status, replaced_by } = await shown(old.id)
      expect([status, replaced_by]).toEqual(['cancelled', expect.stringMatching(/^[0-9a-f]{24}$/)])
      expect((await ask('GET', `/payment-sessions/${replaced_by}`)).status).toBe(404)

      const again = await reissue()
      expect([again.status, again.body.data]).toMatchObject([201, { id: replaced_by, replaces: old.id }])
      if (mode === 'link') expect(await opens(again.body.data)).toBe(200)
      expect(await shown(replaced_by)).toMatchObject({ description: mode, replaces: old.id })
      const third = await ask('POST', `/payment-sessions/${old.id}/reissue`, {})
      expect([third.status, third.body.replaced_by]).toEqual([409, replaced_by])
    }
  },
)

test('a session whose service was killed before its cancellation is as it was', async () => {
  const old = await newSession(service, tenant)
  const reissue = () => ask('POST', `/payment-sessions/${old.id}/reissue`, {})
  await killedAt('PaymentSessionReplaced', reissue)
  expect(await shown(old.id)).toMatchObject({ status: 'pending' })
  expect(await opens(old)).toBe(200)
  expect((await reissue()).status).toBe(201)
})

test.each(['link', 'embedded'])('a session that was never stored is created by its key: %s', async (mode) => {
  const key = randomUUID()
  const before = await sessions()
  const create = () => ask('POST', '/payment-sessions', sessionBody(tenant, { mode }), key)
  await killedAt('PaymentSessionCreated', create)
  expect(await sessions()).toBe(before)
  const again = await create()
  expect(again.status).toBe(201)
  if (mode === 'link') expect(await opens(again.body.data)).toBe(200)
  expect(await sessions()).toBe(before + 1)
})

test.each(['link', 'embedded'])('one whose answer was lost is named by its key: %s', async (mode) => {
  const key = randomUUID()
  const before = await sessions()
  const create = () => ask('POST', '/payment-sessions', sessionBody(tenant, { mode }), key)
  await killedAt('IdempotencyKeyAnswered', create)
  const [{ id }] = (await ask('GET', '/payment-sessions?limit=1')).body.data
  for (let attempt = 0; attempt < 2; attempt++) {
    const again = await create()
    expect([again.status, again.body.error, again.body.id]).toEqual([409, 'Conflict', id])
    expect(again.body.message).toContain(id)
  }
  expect(await sessions()).toBe(before + 1)
})

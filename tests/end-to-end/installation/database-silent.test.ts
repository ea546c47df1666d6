// @module-tag once: it has a proxy before PostgreSQL
// @module-tag long: integration/database/database-deadlines has a database that vanishes from the network
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { STATEMENT_LIMIT_MS } from '../../../infrastructure/database/database.ts'
import { employeeRecord, report, status } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts'
import { askOperator, operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { until } from '../../support/workbench.ts'

deadlinesOfTheProduct()

/** More than all connections of a process. */
const SLOW_READS = 60
/** Longer than a process is alive without a renewal. */
const LONGER_THAN_A_LEASE_MS = 5_500

let database: TestDatabase
let proxy: HoldingProxy
let service: RunningService
let tenant: SeededTenant
let direct: pg.Client
let file: string

beforeAll(async () => {
  database = await createTestDatabase()
  const url = new URL(database.url)
  proxy = await startHoldingProxy(Number(url.port))
  url.host = `127.0.0.1:${proxy.port}`
  service = await startProcess({
    env: { DATABASE_URL: url.toString(), MASTER_KEY: randomBytes(32).toString('base64'), CLOCK: 'system' },
  })
  tenant = await seedTenant(service)
  file = (await report(service, tenant, { employees: [employeeRecord()] })).body.file_id
  direct = new pg.Client(database.url)
  await direct.connect()
})
afterAll(async () => {
  proxy?.comeBack()
  await direct?.end()
  await service?.stop()
  await proxy?.close()
  await database?.drop()
})

interface LeaseRow {
  readonly name: string
  readonly owner: string
  readonly epoch: string
  readonly ms: number
}

async function leases(): Promise<ReadonlyMap<string, LeaseRow>> {
  const { rows } = await direct.query<LeaseRow>(
    `SELECT name, owner, epoch, extract(epoch FROM alive_until)::float8 * 1000 AS ms
     FROM runtime.leases JOIN runtime.sessions USING (owner)`,
  )
  return new Map(rows.map((row) => [row.name, row]))
}

test('reads that hang, more than there are connections, cost the process no lease', async () => {
  const before = await leases()
  expect(before.size).toBeGreaterThan(5)
  await direct.query('BEGIN; LOCK TABLE rm_payroll_files_g1.payroll_files')
  const reads = Array.from({ length: SLOW_READS }, () => status(service, tenant, file))
  const isRenewed = async () => {
    const now = await leases()
    return [...before].every(([name, { ms }]) => now.get(name)!.ms > ms + LONGER_THAN_A_LEASE_MS)
  }
  await until(isRenewed)
  const after = await leases()
  for (const [name, { owner, epoch }] of before) expect(after.get(name)).toMatchObject({ owner, epoch })
  await direct.query('ROLLBACK')
  for (const answer of await Promise.all(reads)) {
    // those that waited too long were told so, and nobody waited for ever
    if (answer.status !== 200) expect(answer.status).toBeGreaterThanOrEqual(500)
  }
  expect((await status(service, tenant, file)).status).toBe(200)
})

test('a database that vanishes from the network leaves no request without an answer, and is used again when it is back', async () => {
  proxy.vanish()
  // read models, and what is written
  const asked = [
    ...Array.from({ length: 10 }, () => status(service, tenant, file)),
    ...Array.from({ length: 3 }, () => report(service, tenant, { employees: [employeeRecord()] })),
  ]
  for (const answer of await Promise.all(asked)) expect(answer.status).toBeGreaterThanOrEqual(500)
  expect((await send(`${service.opsUrl}/readyz`)).status).toBe(503)
  proxy.comeBack()
  await until(async () => (await send(`${service.opsUrl}/readyz`)).status === 200)
  expect((await status(service, tenant, file)).status).toBe(200)
  expect((await report(service, tenant, { employees: [employeeRecord()] })).status).toBeLessThan(300)
  await operate(service, 'POST', '/drain')
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
})

test.skipIf((await findEventStore()) === null)(
  'an overview of projections does not wait as long as work in the background while the log in EventStoreDB answers',
  async () => {
    const [eventStore, own] = await Promise.all([startEventStore(), createTestDatabase()])
    const url = new URL(own.url)
    const ownProxy = await startHoldingProxy(Number(url.port))
    url.host = `127.0.0.1:${ownProxy.port}`
    // nothing in it keeps connections of the background busy
    const api = await startProcess({
      env: {
        DATABASE_URL: url.toString(),
        EVENTSTORE_URL: eventStore.url,
        ROLES: 'api',
        MASTER_KEY: randomBytes(32).toString('base64'),
      },
    })
    try {
      const overview = () => askOperator(api, 'GET', '/projections')
      expect((await overview()).status).toBe(200)
      ownProxy.vanish()
      const late = delay(STATEMENT_LIMIT_MS.background, null, { ref: false })
      expect(await Promise.race([overview(), late])).toMatchObject({ status: 503 })
    } finally {
      ownProxy.comeBack()
      await api.stop()
      await Promise.all([ownProxy.close(), own.drop(), eventStore.stop()])
    }
  },
)

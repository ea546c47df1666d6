import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrations } from '../../../infrastructure/database/migrations/index.ts'
import { report } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase, withServer } from '../../support/database.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import { largePayroll } from '../../support/large-payroll.ts'
import { PROCESS_MANAGERS } from '../../support/process-managers.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { until } from '../../support/workbench.ts'

let database: TestDatabase
let service: RunningService
let seeded: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase({ migrate: false })
  const env = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') }
  service = await startService({ env })
  seeded = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
})

/** The value of one line of GET /metrics of a process; 0 while there is none. */
async function metric(line: string, { opsUrl } = service): Promise<number> {
  const { status, text } = await send(`${opsUrl}/metrics`)
  expect(status).toBe(200)
  const found = text.split('\n').find((one) => one.startsWith(`${line} `))
  return found === undefined ? 0 : Number(found.slice(line.length + 1))
}

/** What all processes counted together. */
async function counted(line: string): Promise<number> {
  const counts = await Promise.all(service.processes.map((one) => metric(line, one)))
  return counts.reduce((sum, count) => sum + count, 0)
}

const readyz = (): Promise<Answer> => send(`${service.opsUrl}/readyz`)

async function sql(...statements: string[]): Promise<void> {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

describe('the log', () => {
  test('names every migration that the start applied', () => {
    const texts = service.output.map((line) => (line.startsWith('{') ? JSON.parse(line).text : undefined))
    for (const name of Object.keys(migrations)) expect(texts).toContain(`migrated the database: ${name}`)
  })
})

describe('metrics', () => {
  test('move with every transaction of the event log', async () => {
    const read = () =>
      Promise.all(
        ['batch_events_sum', 'batch_events_count', 'duration_seconds_count', 'duration_seconds_sum'].map(
          (name) => metric(`compstream_log_append_${name}`),
        ),
      )
    const before = await read()
    await operate(service, 'POST', '/tenants', { name: 'Measured' })
    const after = await read()
    expect(after.slice(0, 3)).toEqual(before.slice(0, 3).map((value) => value + 1))
    expect(after[3]).toBeGreaterThan(before[3]!)
  })

  test('tell of connections by their purpose, appends under way, looks at the log and the disk, and the oldest work that is due', async () => {
    const { text } = await send(`${service.opsUrl}/metrics`)
    const named = (name: string) => text.split('\n').filter((line) => line.startsWith(`compstream_${name}`))
    for (const pool of ['requests', 'background', 'leases']) {
      expect(named(`database_pool_in_use{pool="${pool}"} `)).toHaveLength(1)
      expect(named(`database_pool_waiting{pool="${pool}"} `)).toHaveLength(1)
    }
    expect(named('log_appends_waiting ')).toHaveLength(1)
    expect(named('log_looks_total{at="head"} ')).toHaveLength(1)
    expect(named('database_disk_syncs_total ')).toHaveLength(1)
    expect(named('work_oldest_due_seconds{queue="process-managers"} ')).toHaveLength(1)
  })

  test('count prepared statements and their time by name', async () => {
    // reading the metrics is what asks where projections stand
    const read = () =>
      Promise.all(
        ['statements_total', 'statement_seconds_total'].map((name) =>
          metric(`compstream_database_${name}{statement="projections/generations"}`),
        ),
      )
    await send(`${service.opsUrl}/metrics`)
    const [count, seconds] = await read()
    const [countAfter, secondsAfter] = await read()
    expect(countAfter).toBeGreaterThan(count!)
    expect(secondsAfter).toBeGreaterThan(seconds!)
  })

  test('count the work that process managers did', async () => {
    const done = 'compstream_work_total{queue="payroll-pipeline",outcome="done"}'
    const before = await counted(done)
    const { employees } = largePayroll(501, 1)
    expect((await report(service, seeded, { employees })).status).toBe(202)
    await operate(service, 'POST', '/drain')
    expect(await counted(done)).toBeGreaterThan(before)
  })
})

describe('GET /readyz', () => {
  test('is 200 with nothing to say of a service that is well', async () => {
    const asked = async () => {
      // what alerts of the tests before lead to
      await operate(service, 'POST', '/drain')
      const { status, body } = await readyz()
      return [status, body]
    }
    await expect.poll(asked, { timeout: 60_000 }).toEqual([
      200,
      {
        ok: true,
        degraded: [],
        checks: expect.objectContaining({
          event_log: 'ok',
          head: expect.stringMatching(/^\d+$/),
          process_managers: Object.fromEntries(PROCESS_MANAGERS.map((name) => [name, 'active'])),
          process_manager_lag: Object.fromEntries(
            PROCESS_MANAGERS.map((name) => [name, { events: 0, seconds: 0 }]),
          ),
        }),
      },
    ])
  })

  test('stays 200 and tells what calls for a person', async () => {
    await sql(
      `INSERT INTO runtime.parked_streams
         (projection, generation, stream, position, revision, type, category, message, attempts)
       SELECT projection, generation, stream, 1, 0, 'EmployerRegistered', 'handler', 'Error', 1
       FROM runtime.projections, unnest(ARRAY['employer-a', 'employer-b']) AS stream
       WHERE projection = 'employers' AND role = 'live'`,
      `INSERT INTO runtime.work
         (process_manager, kind, key, payload, due_at, state, correlation_id, causation_id, last_error)
       VALUES ('payroll-pipeline', 'process-file', 'x', '{}', 0, 'failed', 'c', 'c', 'too heavy')`,
    )
    const told = async () => {
      // again at each look: a checkpoint under way clears it
      await sql(`UPDATE runtime.process_managers SET problem = 'Error at x' WHERE name = 'payroll-pipeline'`)
      return readyz()
    }
    try {
      await expect.poll(told).toMatchObject({
        status: 200,
        body: {
          ok: true,
          degraded: [
            'projection employers: parked streams: 2',
            'process manager payroll-pipeline: does not get on',
            'work failed: 1',
          ],
          checks: { process_managers: { 'payroll-pipeline': 'problem' }, work_failed: 1 },
        },
      })
      expect(await metric('compstream_parked_streams{reader="employers"}')).toBe(2)
      // counted every few seconds
      await expect.poll(() => metric('compstream_work_failed{queue="process-managers"}')).toBe(1)
      expect((await send(`${service.opsUrl}/healthz`)).body).toEqual({ ok: true, checks: {} })
    } finally {
      await sql(
        'DELETE FROM runtime.parked_streams',
        `DELETE FROM runtime.work WHERE key = 'x'`,
        'UPDATE runtime.process_managers SET problem = NULL',
      )
    }
    await until(async () => (await readyz()).body.degraded.length === 0)
  })

  test('stays 200 in every process while a projection is in error', async () => {
    const [schema] = (await operate(service, 'GET', '/projections'))
      .filter(({ name }: { name: string }) => name === 'employers')
      .map(({ generation }: { generation: number }) => `rm_employers_g${generation}`)
    await sql(`ALTER TABLE ${schema}.employers RENAME TO out_of_reach`)
    const changed = operate(service, 'PATCH', `/employers/${seeded.employerId}`, { legal_name: 'Renamed' })
    changed.catch(() => undefined)
    const up = 'compstream_projection_up{projection="employers"}'
    try {
      const inError = ({ body }: Answer) => body.checks.projections.employers === 'error'
      await until(async () => inError(await readyz()))
      for (const { opsUrl } of service.processes) {
        await expect
          .poll(() => send(`${opsUrl}/readyz`))
          .toMatchObject({
            status: 200,
            body: { ok: true, degraded: ['projection employers: does not get on'] },
          })
      }
      expect(await metric(up)).toBe(0)
      // everything else is served
      expect((await report(service, seeded)).status).toBe(202)
    } finally {
      await sql(`ALTER TABLE ${schema}.out_of_reach RENAME TO employers`)
    }
    await until(async () => (await readyz()).body.degraded.length === 0)
    expect(await metric(up)).toBe(1)
  })

  test('is 503 while the database does not answer, and 200 again when it does', async () => {
    const connections = (allowed: boolean) =>
      withServer(async (server) => {
        await server.query(`ALTER DATABASE ${database.name} WITH ALLOW_CONNECTIONS ${allowed}`)
        if (allowed) return
        await server.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
          database.name,
        ])
      })
    await connections(false)
    try {
      const { status, body } = await readyz()
      const checks = isLogInEventStore
        ? { event_log: 'ok', database: 'unreachable' }
        : { event_log: 'unreachable' }
      expect([status, body]).toEqual([503, { ok: false, degraded: [], checks }])
      expect((await send(`${service.opsUrl}/healthz`)).status).toBe(200)
    } finally {
      await connections(true)
    }
    await until(async () => (await readyz()).status === 200)
  })
})

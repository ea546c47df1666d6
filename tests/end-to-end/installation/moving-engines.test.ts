// @module-tag once: it has both engines at once
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../infrastructure/database/database.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { cli } from '../../support/cli.ts'
import { allEvents, post, report, status } from '../../support/core.ts'
import { createTestDatabase } from '../../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { expectComplete, type LargePayroll, largePayroll } from '../../support/large-payroll.ts'
import { createInstallation, type Installation } from '../../support/many-processes.ts'
import { operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import { withClient } from '../../support/table-copies.ts'
import { until } from '../../support/workbench.ts'

const PROJECTIONS = ['payroll-files', 'policies', 'agent-credentials', 'employee-register', 'employers']

/** What every start finds: the rows of the read models in their order, without where they stand in the log. */
async function readModels(url: string): Promise<unknown> {
  return withClient(url, async (client) => {
    const tables = {
      payroll_files: 'seq',
      policies: 'seq',
      agent_credentials: 'seq',
      employers: 'seq',
      employee_register: 'subject',
    }
    const found: Record<string, unknown[]> = {}
    for (const [table, order] of Object.entries(tables)) {
      const { rows } = await client.query(`SELECT * FROM read_model.${table} ORDER BY ${order}`)
      found[table] = rows.map(({ seq: _s, status_position: _p, record_position: _r, ...row }) => row)
    }
    return found
  })
}

/** Resolves when every read model has come to the end of the log. */
async function rebuilt(service: RunningService): Promise<void> {
  await until(async () => {
    const all: { lag: { events: number } | null }[] = await operate(service, 'GET', '/projections')
    return all.length >= PROJECTIONS.length && all.every(({ lag }) => lag?.events === 0)
  })
}

/** Rebuilds a read model from the log it follows now, and tells whether it came out as it stands, positions included. */
async function isAsTheLogSays(service: RunningService, projection: string): Promise<boolean> {
  await operate(service, 'POST', `/projections/${projection}/rebuild`, { switch: 'manual' })
  let comparison: { equal: boolean; position: number } | null = null
  await until(async () => {
    comparison = (await operate(service, 'GET', `/projections/${projection}`)).rebuild?.comparison ?? null
    return comparison !== null
  })
  await operate(service, 'POST', `/projections/${projection}/cancel`)
  return comparison!.equal
}

/** Every column of the database that may hold a position, by its name or because it is JSON. */
async function positionColumns(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT table_schema || '.' || table_name || '.' || column_name AS name FROM information_schema.columns
        WHERE table_schema IN ('runtime', 'webhooks')
          AND (column_name ~ '(position|seq|checkpoint|head|revision)$' OR data_type = 'jsonb') ORDER BY 1`,
    )
    return rows.map(({ name }) => name)
  })
}

// what is new here, and no read model, and holds a position has to be translated, see moved-database.ts
test('there is no other place where a position is carried', async () => {
  const database = await createTestDatabase()
  try {
    expect(await positionColumns(database.url)).toMatchInlineSnapshot(`
      [
        "runtime.log_binding.first_position",
        "runtime.log_marks.position",
        "runtime.log_tree.position",
        "runtime.outbox.seq",
        "runtime.parked_streams.position",
        "runtime.parked_streams.revision",
        "runtime.process_managers.position",
        "runtime.projection_requests.arguments",
        "runtime.projection_requests.outcome",
        "runtime.projections.comparison",
        "runtime.projections.failure",
        "runtime.projections.position",
        "runtime.projections.tables",
        "runtime.work.payload",
        "webhooks.deliveries.revision",
        "webhooks.deliveries.seq",
        "webhooks.health.reset_revision",
      ]
    `)
  } finally {
    await database.drop()
  }
})

if (await findEventStore()) {
  // integration/installation/moved-database and copy-events move every which way
  describe('an installation moves between engines', { tags: 'long' }, () => {
    let installation: Installation
    let first: EventStoreServer
    let service: RunningService
    let tenant: SeededTenant
    let held: { fileId: string; payroll: LargePayroll }
    const deadLetteredStream = `employer-${randomUUID().replaceAll('-', '').slice(0, 24)}`

    beforeAll(async () => {
      first = await startEventStore()
      installation = await createInstallation()
      service = await installation.start('api,projector,worker')
      tenant = await seedTenant(service)
    })
    afterAll(async () => {
      await installation?.stop()
      await first?.stop()
    })

    const start = (env: Record<string, string> = {}) => installation.start('api,projector,worker', env)
    const copy = async (from: string, to: string) => {
      const run = await cli(['events', 'copy', '--from', from, '--to', to, '--json'])
      expect(run.code, run.stderr).toBe(0)
      return run.json()
    }
    const small = async () => {
      const { body } = await report(service, tenant)
      expect((await status(service, tenant, body.file_id)).body.status).toBe('NORMALIZED')
      return body.file_id as string
    }
    const large = async (seed: number) => {
      const payroll = largePayroll(1_200, seed)
      const { body } = await report(service, tenant, { employees: payroll.employees })
      return { fileId: body.report_id as string, payroll }
    }
    const sync = async (employee: object) => {
      const body = { employer_id: tenant.employerId, employees: [employee] }
      const answer = await post(service, '/api/v1/employees/sync', tenant.clientHeaders, body)
      expect(answer.status).toBe(202)
    }

    test('begins on PostgreSQL, with a large file half done and an event that cannot be applied', async () => {
      await small()
      await sync({ employee_id: 'E-1', action: 'hire', name: 'Ada Baker', hire_date: '2026-01-05' })
      await sync({ employee_id: 'E-2', action: 'hire', name: 'Ada Baker', hire_date: '2026-01-06' })
      await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
      held = await large(1)
      const database = await openDatabase({ url: installation.databaseUrl })
      const log = await openPostgresEventLog({ database })
      const metadata = JSON.stringify({ schema_version: 1 })
      await log.append(deadLetteredStream, -1, [{ type: 'EmployerRegistered', data: '{}', metadata }])
      await log.close()
      await database.close()
      await until(async () => (await operate(service, 'GET', '/projections/employers')).parked.length === 1)
      await until(async () => (await operate(service, 'GET', '/work')).counts.held === 1)
    })

    test('goes on on EventStoreDB where it was', async () => {
      const url = installation.databaseUrl
      const eventsBefore = await allEvents(service)
      await service.end()
      const before = await readModels(url)
      const account = await copy(url, first.url)
      expect(account).toMatchObject({
        equal: true,
        database: { from: expect.stringContaining('PostgreSQL at'), outcome: 'moved', carried: null },
      })
      expect(account.database.checkpoints).toBeGreaterThan(0)
      // again: nothing is translated twice
      expect((await copy(url, first.url)).database).toMatchObject({
        outcome: 'moved before',
        checkpoints: 0,
      })
      // a start on the log that was left is refused
      await expect(start()).rejects.toThrow(/EVENTSTORE_URL/)

      service = await start({ EVENTSTORE_URL: first.url })
      const events = await allEvents(service)
      expect(events.slice(0, eventsBefore.length).map(({ position: _, ...event }) => event)).toEqual(
        eventsBefore.map(({ position: _, ...event }) => event),
      )
      expect(events.slice(eventsBefore.length).map(({ type }) => type)).toEqual([])
      await rebuilt(service)
      expect(await readModels(url)).toEqual(before)
      const { parked, lag } = await operate(service, 'GET', '/projections/employers')
      expect(parked).toMatchObject([{ stream: deadLetteredStream, type: 'EmployerRegistered', revision: 0 }])
      expect(parked[0].position).toBe(
        Number(events.find(({ stream }) => stream === deadLetteredStream)!.position),
      )
      expect(lag).toEqual({ events: 0, seconds: 0 })
      expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
      // what was held goes on, and each of its steps is done once
      await operate(service, 'POST', '/faults', { point: 'pipeline', times: 0 })
      await expectComplete(service, tenant, held.fileId, held.payroll)
      await small()
      await sync({ employee_id: 'E-1', action: 'terminate', termination_date: '2026-02-01' })
      for (const projection of PROJECTIONS) {
        expect(await isAsTheLogSays(service, projection), projection).toBe(true)
      }
    })
  })
} else {
  describe.skip('an installation moves between engines (no EventStoreDB server was found)', () =>
    test('skipped', () => undefined))
}

// @module-tag once: it starts processes of each role, on each engine, itself
// @module-tag long: roles has processes of each role, integration/followers/nats-wake-up what one tells the others
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { employeeRecord, report, status, streamEvents } from '../../support/core.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { expectComplete, largePayroll } from '../../support/large-payroll.ts'
import { createInstallation, type Installation } from '../../support/many-processes.ts'
import { type NatsServer, natsSource, startNats } from '../../support/nats.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

deadlinesOfTheProduct()

/** Several processes on one database, told apart by role; with NATS between them and EventStoreDB below, or without. */
function manyProcesses(name: string, servers: { nats: boolean; eventStore: boolean }): void {
  describe(`many processes ${name}`, () => {
    let nats: NatsServer | null
    let store: EventStoreServer | null
    let installation: Installation
    let api: RunningService
    let otherApi: RunningService
    let projector: RunningService
    let worker: RunningService
    let tenant: SeededTenant
    let database: pg.Client

    beforeAll(async () => {
      nats = servers.nats ? await startNats() : null
      store = servers.eventStore ? await startEventStore() : null
      installation = await createInstallation({ natsUrl: nats?.url, eventStoreUrl: store?.url })
      ;[api, otherApi, projector, worker] = (await Promise.all(
        ['api', 'api', 'projector', 'worker'].map((role) => installation.start(role)),
      )) as [RunningService, RunningService, RunningService, RunningService]
      database = new pg.Client(installation.databaseUrl)
      await database.connect()
      tenant = await seedTenant(api)
    })
    afterAll(async () => {
      await database?.end()
      await installation?.stop()
      await nats?.stop()
      await store?.stop()
    })

    const leases = async (): Promise<readonly unknown[]> => {
      const { rows } = await database.query(
        `SELECT name, owner, epoch::int FROM runtime.leases
         WHERE name LIKE 'proj%' OR name = 'process-manager/payroll-pipeline' ORDER BY name`,
      )
      return rows
    }

    test('hosts are where the role is, the operator API is everywhere', async () => {
      expect([projector.coreUrl, worker.mcpUrl, projector.portalUrl]).toEqual([
        undefined,
        undefined,
        undefined,
      ])
      for (const service of [api, otherApi, projector, worker]) {
        const { status: code, body } = await send(`${service.opsUrl}/readyz`)
        expect([code, body.checks.nats]).toEqual([200, nats ? 'ok' : undefined])
      }
    })

    test('what one API process answered every other one shows', async () => {
      for (let n = 0; n < 6; n += 1) {
        const [write, read] = n % 2 === 0 ? [api, otherApi] : [otherApi, api]
        const answer = await report(write, tenant, { employees: [employeeRecord({ gross_wages: 100 + n })] })
        expect(answer.status).toBe(202)
        const shown = await status(read, tenant, answer.body.file_id)
        expect([shown.status, shown.body.status]).toEqual([200, 'NORMALIZED'])
      }
    })

    test('a large file is taken in by one process, worked on by another and shown by a third', async () => {
      const payroll = largePayroll(1_200, 1)
      const answer = await report(api, tenant, { employees: payroll.employees })
      expect(answer.status).toBe(202)
      await expectComplete(otherApi, tenant, answer.body.report_id, payroll)
    })

    test('a hold counts in every process as soon as it is set, and what it held goes on when it is cleared', async () => {
      await operate(projector, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
      const small = await report(api, tenant)
      const payroll = largePayroll(1_200, 2)
      const large = await report(otherApi, tenant, { employees: payroll.employees })
      await operate(api, 'POST', '/drain')
      expect((await streamEvents(api, `payrollFile-${small.body.file_id}`)).map(({ type }) => type)).toEqual([
        'PayrollFileReceived',
        'PayrollRowsRecorded',
      ])
      expect((await operate(worker, 'GET', '/work')).counts).toMatchObject({ held: 2, due: 0, leased: 0 })
      await operate(worker, 'POST', '/faults', { point: 'pipeline', times: 0 })
      await expectComplete(api, tenant, large.body.report_id, payroll)
      expect((await status(otherApi, tenant, small.body.file_id)).body.status).toBe('NORMALIZED')
    })

    test('an API process joins, serves and dies without anything changing hands', async () => {
      const before = await leases()
      const third = await installation.start('api')
      const answer = await report(third, tenant)
      await third.kill()
      expect((await status(api, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
      expect(await leases()).toEqual(before)
    })

    test('the log is whole, and everything stops in order', async () => {
      await operate(api, 'POST', '/drain', { timeout_seconds: 150 })
      expect(await operate(worker, 'POST', '/audit/verify')).toMatchObject({ verified: true })
      expect((await operate(api, 'GET', '/work')).counts).toEqual({
        due: 0,
        leased: 0,
        held: 0,
        later: 0,
        failed: 0,
      })
      const codes = await Promise.all([api, otherApi, projector, worker].map((service) => service.end()))
      expect(codes).toEqual(Array(4).fill(0))
      const { rows } = await database.query(
        `SELECT name FROM runtime.leases WHERE owner <> '' AND expires_at > clock_timestamp()`,
      )
      expect(rows).toEqual([])
    })
  })
}

manyProcesses('without NATS', { nats: false, eventStore: false })
for (const eventStore of [false, true]) {
  const name = eventStore ? 'with NATS, on EventStoreDB' : 'with NATS'
  if (natsSource !== null && (!eventStore || (await findEventStore()) !== null)) {
    manyProcesses(name, { nats: true, eventStore })
  } else {
    describe.skip(`many processes ${name}`, () => void test('need these servers', () => undefined))
  }
}

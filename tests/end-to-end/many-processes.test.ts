import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { employeeRecord, report, status, streamEvents } from '../support/core.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { expectComplete, largePayroll } from '../support/large-payroll.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../support/nats.ts'
import { operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import type { RunningService } from '../support/service.ts'
import { deadlinesOfTheProduct } from '../support/technical-deadlines.ts'
import { until } from '../support/workbench.ts'

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
    let otherProjector: RunningService
    let worker: RunningService
    let otherWorker: RunningService
    let tenant: SeededTenant
    let database: pg.Client

    beforeAll(async () => {
      nats = servers.nats ? await startNats() : null
      store = servers.eventStore ? await startEventStore() : null
      installation = await createInstallation({ natsUrl: nats?.url, eventStoreUrl: store?.url })
      // each role has an owner before its second process comes
      projector = await installation.start('projector')
      worker = await installation.start('worker')
      ;[api, otherApi, otherProjector, otherWorker] = (await Promise.all(
        ['api', 'api', 'projector', 'worker'].map((roles) => installation.start(roles)),
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
      for (const service of [api, otherApi, projector, otherProjector, worker, otherWorker]) {
        const { status: code, body } = await send(`${service.opsUrl}/readyz`)
        expect([code, body.checks.nats]).toEqual([200, nats ? 'ok' : undefined])
      }
    })

    test('what one API process answered every other one shows', async () => {
      for (let n = 0; n < 20; n += 1) {
        const [write, read] = n % 2 === 0 ? [api, otherApi] : [otherApi, api]
        const answer = await report(write, tenant, { employees: [employeeRecord({ gross_wages: 100 + n })] })
        expect(answer.status).toBe(202)
        const shown = await status(read, tenant, answer.body.file_id)
        expect([shown.status, shown.body.status]).toEqual([200, 'NORMALIZED'])
      }
    })

    test('a large file is taken in by one process, worked on by another and shown by a third', async () => {
      const payroll = largePayroll(3_000, 1)
      const answer = await report(api, tenant, { employees: payroll.employees })
      expect(answer.status).toBe(202)
      await expectComplete(otherApi, tenant, answer.body.report_id, payroll)
    })

    test('a hold counts in every process as soon as it is set, and what it held goes on when it is cleared', async () => {
      await operate(otherProjector, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
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
      expect(await operate(otherWorker, 'POST', '/audit/verify')).toMatchObject({ verified: true })
      expect((await operate(api, 'GET', '/work')).counts).toEqual({
        due: 0,
        leased: 0,
        held: 0,
        later: 0,
        failed: 0,
      })
      const codes = await Promise.all(
        [api, otherApi, projector, otherProjector, worker, otherWorker].map((service) => service.end()),
      )
      expect(codes).toEqual(Array(6).fill(0))
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

describe.skipIf(!natsCanBeKilled)('a service whose NATS server dies', () => {
  let nats: NatsServer
  let installation: Installation
  let api: RunningService
  let rest: RunningService
  let tenant: SeededTenant
  beforeAll(async () => {
    nats = await startNats()
    installation = await createInstallation({ natsUrl: nats.url })
    rest = await installation.start('projector,worker')
    api = await installation.start('api')
    tenant = await seedTenant(api)
  })
  afterAll(async () => {
    await installation?.stop()
    await nats?.stop()
  })
  const readiness = async (service: RunningService) => (await send(`${service.opsUrl}/readyz`)).body
  const connected = async (service: RunningService) =>
    /^compstream_nats_connected (\d)/m.exec((await send(`${service.opsUrl}/metrics`)).text)?.[1]

  test('goes on, says so, and is whole again when the server is back', async () => {
    expect([await connected(api), await connected(rest)]).toEqual(['1', '1'])
    await nats.own!.kill()
    for (const service of [api, rest]) {
      await until(async () => (await readiness(service)).checks.nats === 'unreachable')
      expect(await readiness(service)).toMatchObject({ ok: true, checks: { nats: 'unreachable' } })
      expect(await connected(service)).toBe('0')
    }
    const answer = await report(api, tenant)
    expect((await status(api, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
    const payroll = largePayroll(2_000, 4)
    const large = await report(api, tenant, { employees: payroll.employees })
    await expectComplete(api, tenant, large.body.report_id, payroll)

    await nats.own!.restart()
    for (const service of [api, rest]) {
      await until(async () => (await readiness(service)).checks.nats === 'ok')
      expect((await readiness(service)).checks.nats).toBe('ok')
    }
    await until(async () =>
      /^compstream_integration_events_behind 0$/m.test((await send(`${rest.opsUrl}/metrics`)).text),
    )
    expect((await readiness(rest)).checks.integration_events).toBe('active')
  })
})

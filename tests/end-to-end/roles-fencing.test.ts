// @module-tag once: it starts processes of each role, on each engine, itself
// @module-tag long: integration/process-manager-runner and projection-leases have owners that were replaced, and their late writes
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { post, report, status, streamEvents } from '../support/core.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { type HoldingProxy, startHoldingProxy } from '../support/holding-proxy.ts'
import { expectComplete, largePayroll } from '../support/large-payroll.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import type { RunningService } from '../support/service.ts'
import { deadlinesOfTheProduct } from '../support/technical-deadlines.ts'
import { until } from '../support/workbench.ts'

deadlinesOfTheProduct()

const ROWS = 1_200

/** A process that projects and works, with a proxy before each server that it uses. */
interface Owner {
  readonly service: RunningService
  readonly database: HoldingProxy
  /** Before the server that keeps the log. */
  readonly log: HoldingProxy
}

/**
 * Two processes that both believe to be owner: one is frozen at a chosen write, which is on its way already; when
 * the other has taken over, the write arrives, and the first goes on where it was.
 */
function fencing(engine: 'PostgreSQL' | 'EventStoreDB'): void {
  describe(`an owner that was replaced while it slept, on ${engine}`, () => {
    let store: EventStoreServer | null = null
    let installation: Installation
    let api: RunningService
    let owner: Owner
    let standby: Owner
    let tenant: SeededTenant
    let database: pg.Client
    const proxies: HoldingProxy[] = []

    async function start(): Promise<Owner> {
      const through = async (url: string): Promise<[string, HoldingProxy]> => {
        const port = /:(\d+)(?=[/?]|$)/.exec(url)![1]!
        const proxy = await startHoldingProxy(Number(port))
        proxies.push(proxy)
        return [url.replace(`:${port}`, `:${proxy.port}`), proxy]
      }
      const [DATABASE_URL, toDatabase] = await through(installation.databaseUrl)
      const [EVENTSTORE_URL, toLog] = store ? await through(store.url) : [undefined, toDatabase]
      const env = { DATABASE_URL, ...(EVENTSTORE_URL === undefined ? {} : { EVENTSTORE_URL }) }
      return {
        service: await installation.start('projector,worker', env),
        database: toDatabase,
        log: toLog,
      }
    }

    beforeAll(async () => {
      store = engine === 'EventStoreDB' ? await startEventStore() : null
      installation = await createInstallation({ eventStoreUrl: store?.url })
      owner = await start()
      api = await installation.start('api')
      standby = await start()
      database = new pg.Client(installation.databaseUrl)
      await database.connect()
      tenant = await seedTenant(api)
    })
    afterAll(async () => {
      for (const { service } of [owner, standby]) service?.process.kill('SIGCONT')
      await database?.end()
      await installation?.stop()
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await store?.stop()
    })

    const epochs = async (): Promise<Map<string, { owner: string; epoch: number }>> => {
      const { rows } = await database.query<{ name: string; owner: string; epoch: number }>(
        'SELECT name, owner, epoch::int FROM runtime.leases',
      )
      return new Map(rows.map(({ name, ...lease }) => [name, lease]))
    }

    /**
     * Freezes the owner at a write that something makes it send, and waits until the other process has all its
     * leases. The two have changed places then.
     * @param meanwhile done before the other process takes over.
     * @returns what wakes the first one; it resolves when its late writes have been answered.
     */
    async function replaceAt(
      proxy: HoldingProxy,
      write: string,
      cause: () => Promise<unknown>,
      meanwhile: () => Promise<unknown> = async () => undefined,
    ): Promise<() => Promise<void>> {
      // work is for whoever comes first: that has to be the owner
      standby.service.process.kill('SIGSTOP')
      const held = proxy.holdAt(write)
      const caused = cause()
      await held
      const frozen = owner.service
      frozen.process.kill('SIGSTOP')
      standby.service.process.kill('SIGCONT')
      const before = await epochs()
      await caused
      await meanwhile()
      const who = before.get('process-manager/payroll-pipeline')!.owner
      await until(async () => [...(await epochs()).values()].every((lease) => lease.owner !== who))
      for (const [name, { epoch }] of await epochs()) {
        expect(epoch, name).toBeGreaterThan(before.get(name)!.epoch)
      }
      ;[owner, standby] = [standby, owner]
      return async () => {
        const released = proxy.release()
        frozen.process.kill('SIGCONT')
        await released
      }
    }

    /** Nothing has changed hands again, and nobody is behind. */
    async function expectSettled(leases: Awaited<ReturnType<typeof epochs>>): Promise<void> {
      await until(async () => (await send(`${standby.service.opsUrl}/readyz`)).status === 200)
      await operate(api, 'POST', '/drain', { timeout_seconds: 150 })
      expect(await epochs()).toEqual(leases)
      const { rows } = await database.query<{ name: string; epoch: number }>(
        `SELECT 'projection:' || projection AS name, epoch::int FROM runtime.projections
         UNION ALL SELECT 'process-manager/' || name, epoch::int FROM runtime.process_managers`,
      )
      for (const { name, epoch } of rows) expect(epoch, name).toBe(leases.get(name)!.epoch)
      for (const one of await operate(standby.service, 'GET', '/projections')) {
        expect(one).toMatchObject({ state: 'active', lag: { events: 0 }, failure: null, parked_streams: 0 })
        expect(one.owner).toBe(leases.get(`projection:${one.name}`)!.owner)
      }
      const work = await operate(standby.service, 'GET', '/work')
      expect(work.counts).toEqual({ due: 0, leased: 0, held: 0, later: 0, failed: 0 })
      const { head } = (await send(`${api.opsUrl}/readyz`)).body.checks
      for (const manager of work.process_managers) {
        expect(manager).toMatchObject({ state: 'active', problem: null, position: head })
      }
    }

    const sync = () =>
      post(api, '/api/v1/employees/sync', tenant.clientHeaders, {
        employer_id: tenant.employerId,
        employees: [{ employee_id: 'E-1', action: 'update', gross_wages: 1 }],
      })
    const changes = async () => {
      const { rows } = await database.query('SELECT changes FROM read_model.employee_register')
      return rows.map((row) => row.changes)
    }

    test('does not write the rows of a projection', async () => {
      await sync()
      expect(await changes()).toEqual([1])
      const wake = await replaceAt(owner.database, 'employee-register/1/write', sync)
      await until(async () => (await changes())[0] === 2)
      const leases = await epochs()
      await wake()
      expect(await changes()).toEqual([2])
      await sync()
      await expectSettled(leases)
      expect(await changes()).toEqual([3])
    })

    test('does not store the work that an event causes, read before it was replaced', async () => {
      const payroll = largePayroll(ROWS, 1)
      let file = ''
      const wake = await replaceAt(owner.database, 'work/advance', async () => {
        file = (await report(api, tenant, { employees: payroll.employees })).body.report_id
      })
      await expectComplete(api, tenant, file, payroll)
      const leases = await epochs()
      const before = await streamEvents(api, `payrollFile-${file}`)
      await wake()
      await until(() => standby.service.output.some((line) => line.includes('was moved by another owner')))
      await expectSettled(leases)
      expect(await streamEvents(api, `payrollFile-${file}`)).toEqual(before)
    })

    test('does not end work that somebody else has in hands', async () => {
      const payroll = largePayroll(ROWS, 2)
      const claims = async () =>
        (await database.query<{ lease_token: string }>('SELECT lease_token FROM runtime.work')).rows
      const lock = new pg.Client(installation.databaseUrl)
      lock.on('error', () => undefined)
      await lock.connect()
      let file = ''
      const wake = await replaceAt(
        owner.database,
        'work/all-done',
        async () => {
          file = (await report(api, tenant, { employees: payroll.employees })).body.report_id
        },
        // nobody takes the piece until the leases are the other one's
        () => lock.query('BEGIN; SELECT FROM runtime.work FOR UPDATE'),
      )
      const leases = await epochs()
      const [first] = await claims()
      const held = owner.database.holdAt('work/all-done')
      await lock.end()
      await held
      const [second, ...more] = await claims()
      expect([second!.lease_token, more]).not.toEqual([first!.lease_token, []])
      await wake()
      expect(await claims()).toEqual([second])
      await owner.database.release()
      await expectSettled(leases)
      await expectComplete(api, tenant, file, payroll)
    })

    test('does not append a step that somebody else has taken since', async () => {
      const payroll = largePayroll(ROWS, 3)
      let file = ''
      const wake = await replaceAt(owner.log, 'PayrollWagesCalculated', async () => {
        file = (await report(api, tenant, { employees: payroll.employees })).body.report_id
      })
      await expectComplete(api, tenant, file, payroll)
      const leases = await epochs()
      const before = await streamEvents(api, `payrollFile-${file}`)
      await wake()
      await expectSettled(leases)
      expect(await streamEvents(api, `payrollFile-${file}`)).toEqual(before)
      expect(await operate(api, 'POST', '/audit/verify')).toMatchObject({ verified: true })
    })

    test('is owner again when the other one dies', async () => {
      const before = await epochs()
      await owner.service.kill()
      const payroll = largePayroll(ROWS, 4)
      const { body } = await report(api, tenant, { employees: payroll.employees })
      await until(async () => (await status(api, tenant, body.report_id)).body.status === 'NORMALIZED')
      await expectComplete(api, tenant, body.report_id, payroll)
      const [known = 0] = await changes()
      await sync()
      expect(await changes()).toEqual([known + 1])
      for (const [name, { owner: holder, epoch }] of await epochs()) {
        expect(epoch, name).toBeGreaterThan(before.get(name)!.epoch)
        expect(holder).not.toBe(before.get(name)!.owner)
      }
    })
  })
}

fencing('PostgreSQL')
if ((await findEventStore()) !== null) fencing('EventStoreDB')
else {
  describe.skip('an owner that was replaced while it slept, on EventStoreDB', () =>
    void test('needs an EventStoreDB server', () => undefined))
}

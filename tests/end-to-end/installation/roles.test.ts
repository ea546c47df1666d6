// @module-tag once: it starts processes of each role itself
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { projections } from '../../../projections/index.ts'
import { report, status } from '../../support/core.ts'
import { expectComplete, largePayroll } from '../../support/large-payroll.ts'
import { createInstallation, type Installation } from '../../support/many-processes.ts'
import { PROCESS_MANAGERS } from '../../support/process-managers.ts'
import { type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

deadlinesOfTheProduct()

const OF_PROJECTOR = projections.map(({ name }) => `projection:${name}`).sort()
const OF_WORKER = [
  'audit-checkpoints',
  ...PROCESS_MANAGERS.map((name) => `process-manager/${name}`),
  'throughput',
]

/** Who holds what while processes of one role each come and go. */
describe('roles', () => {
  let installation: Installation
  let database: pg.Client
  let tenant: SeededTenant
  let api: RunningService
  let projector: RunningService

  beforeAll(async () => {
    installation = await createInstallation()
    database = new pg.Client(installation.databaseUrl)
    await database.connect()
    // only for the seeds, whose answers wait for it
    const passing = installation.start('projector')
    api = await installation.start('api')
    tenant = await seedTenant(api)
    await (await passing).end()
  })
  afterAll(async () => {
    await database?.end()
    await installation?.stop()
  })

  /** Names of the leases that are held, by their owner. */
  async function held(): Promise<string[][]> {
    const { rows } = await database.query<{ names: string[] }>(
      `SELECT array_agg(name ORDER BY name) AS names FROM runtime.leases
         WHERE owner <> '' AND expires_at > clock_timestamp() GROUP BY owner ORDER BY 1`,
    )
    return rows.map(({ names }) => names)
  }
  /** Owners of work in hand. */
  const workOwners = async () =>
    (await database.query('SELECT DISTINCT lease_owner FROM runtime.work WHERE lease_owner IS NOT NULL')).rows
  const ownerOf = async (lease: string) =>
    (await database.query('SELECT owner FROM runtime.leases WHERE name = $1', [lease])).rows[0]?.owner

  test('an api process alone takes in what it is given, and holds nothing', async () => {
    const answer = await report(api, tenant, { employees: largePayroll(600, 1).employees })
    expect(answer.status).toBe(202)
    expect(await held()).toEqual([])
    expect(await workOwners()).toEqual([])
  })

  test('a projector takes the projections and nothing else', async () => {
    projector = await installation.start('projector')
    await expect.poll(held).toEqual([OF_PROJECTOR])
    const answer = await report(api, tenant)
    expect((await status(api, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
    await expect.poll(held).toEqual([OF_PROJECTOR])
    expect(await workOwners()).toEqual([])
  })

  test('every process tells that nobody runs the process managers, and stays in rotation', async () => {
    for (const { opsUrl } of [api, projector]) {
      const { status, body } = await send(`${opsUrl}/readyz`)
      expect([status, body.ok]).toEqual([200, true])
      const idle = PROCESS_MANAGERS.map((name) => `process manager ${name}: no process runs it`)
      expect(body.degraded.toSorted()).toEqual(idle)
      expect(body.checks.process_managers).toEqual(
        Object.fromEntries(PROCESS_MANAGERS.map((name) => [name, 'idle'])),
      )
      expect(body.checks.process_manager_lag['payroll-pipeline'].events).toBeGreaterThan(0)
    }
  })

  test('a worker takes the process managers and the work that waited for it', async () => {
    const payroll = largePayroll(600, 2)
    const { body } = await report(api, tenant, { employees: payroll.employees })
    await installation.start('worker')
    await expectComplete(api, tenant, body.report_id, payroll)
    await expect.poll(held).toEqual([OF_WORKER, OF_PROJECTOR])
  })

  // integration/followers/process-manager-runner has one that stands by, projection-leases that a lease has one owner
  test('second processes of each role stand by', { tags: 'long' }, async () => {
    expect((await send(`${api.opsUrl}/readyz`)).body.degraded).toEqual([])
    const owners = [await ownerOf(OF_PROJECTOR[0]!), await ownerOf(OF_WORKER[0]!)]
    const [second] = await Promise.all(['api', 'projector', 'worker'].map((role) => installation.start(role)))
    // what one of them answered the other one shows
    for (const [write, read] of [
      [api, second!],
      [second!, api],
    ] as const) {
      const { body } = await report(write, tenant)
      expect((await status(read, tenant, body.file_id)).body.status).toBe('NORMALIZED')
    }
    const payroll = largePayroll(600, 3)
    const { body } = await report(api, tenant, { employees: payroll.employees })
    await expectComplete(api, tenant, body.report_id, payroll)
    expect([await ownerOf(OF_PROJECTOR[0]!), await ownerOf(OF_WORKER[0]!)]).toEqual(owners)
    await expect.poll(held).toEqual([OF_WORKER, OF_PROJECTOR])
  })
})

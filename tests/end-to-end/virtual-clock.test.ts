import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newYorkDate, startOf } from '../../domain/kernel/new-york.ts'
import { payrollFile } from '../../domain/payroll/payroll-file.ts'
import { allEvents, report, serviceTime, status } from '../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { largePayroll } from '../support/large-payroll.ts'
import { newId, received, recorded, row } from '../support/payroll.ts'
import {
  type Answer,
  askOperator,
  callTool,
  operate,
  type SeededTenant,
  seedPolicy,
  seedTenant,
} from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { openWorkbench } from '../support/workbench.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR
const MASTER_KEY = randomBytes(32).toString('base64')

let dataDir: string
/** Given to the service: an embedded one has its log for itself, and some events come from another process. */
let database: TestDatabase
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-clock-'))
  database = await createTestDatabase()
  service = await startHere()
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
  await rm(dataDir, { recursive: true, force: true })
})

function startHere(): Promise<RunningService> {
  return startService({ dataDir, env: { DATABASE_URL: database.url, MASTER_KEY } })
}

function ops(method: string, path: string, body?: unknown): Promise<Answer> {
  return askOperator(service, method, path, body)
}

async function advance(by: { seconds: number } | { to: string | number }): Promise<number> {
  return Date.parse((await operate(service, 'POST', '/clock/advance', by)).now)
}

async function advanceTo(epochMs: number): Promise<void> {
  expect(await advance({ to: new Date(epochMs).toISOString() })).toBe(epochMs)
}

describe('time', () => {
  test('stands still while the service works', async () => {
    const before = await serviceTime(service)
    const { body } = await report(service, tenant)
    const shown = await status(service, tenant, body.file_id)
    expect(Date.parse(shown.body.created_at)).toBe(before)
    expect(await serviceTime(service)).toBe(before)
  })

  test('moves by seconds and to a time, is what everything new is dated with, and never goes back', async () => {
    const before = await serviceTime(service)
    expect(await advance({ seconds: 0.001 })).toBe(before + 1)
    expect(await advance({ seconds: 90 })).toBe(before + 1 + 90 * SECOND)
    const later = before + 2 * HOUR
    await advanceTo(later)
    const { body } = await report(service, tenant)
    const shown = await status(service, tenant, body.file_id)
    expect(Date.parse(shown.body.created_at)).toBe(later)

    const back = await ops('POST', '/clock/advance', { to: new Date(later - 1).toISOString() })
    expect([back.status, back.body.ok]).toEqual([409, false])
    expect((await ops('POST', '/clock/advance', { seconds: -1 })).status).toBe(400)
    // years have four digits wherever dates are stored
    expect((await ops('POST', '/clock/advance', { seconds: 1e12 })).status).toBe(400)
    expect(await advance({ to: new Date(later).toISOString() })).toBe(later)
    expect(await serviceTime(service)).toBe(later)
  })
})

test('a policy is active on its expiration date and expired from the next midnight in New York on', async () => {
  const lastDay = Date.parse(newYorkDate(await serviceTime(service))) + 3 * DAY
  const owner = { employerId: tenant.employerId, carrierId: tenant.carrierId }
  const { policyId, policyNumber } = await seedPolicy(service, owner, {
    expiration_date: new Date(lastDay).toISOString().slice(0, 10),
  })
  const listed = async (include_expired: boolean) => {
    const given = { employer_id: tenant.employerId, include_expired }
    const { result } = await callTool(service, tenant.apiKey, 'list_employer_policies', given)
    return result.policies.find((policy: { policy_id: string }) => policy.policy_id === policyId)?.status
  }
  const shown = async () => (await operate(service, 'GET', `/policies/${policyId}`)).status
  const reported = () => report(service, tenant, { policy_number: policyNumber })

  await advanceTo(startOf(new Date(lastDay + DAY).toISOString().slice(0, 10)) - 1)
  expect([await listed(false), await shown(), (await reported()).status]).toEqual(['active', 'active', 202])
  await advance({ seconds: 0.001 })
  expect([await listed(false), await listed(true), await shown()]).toEqual([undefined, 'expired', 'expired'])
  const refused = await reported()
  expect([refused.status, refused.body.error]).toEqual([404, 'Policy not found'])
})

describe('timers', { tags: 'each-log' }, () => {
  /** A file whose upload another process began and then died over. @returns its id. */
  async function interruptedUpload(): Promise<string> {
    const id = newId()
    const { tenantId: tenant_id, employerId: employer_id, policyNumber: policy_number } = tenant
    const on = { tenant_id, employer_id, policy_id: tenant.policyId, policy_number }
    const dead = await openWorkbench(service.databaseUrl)
    try {
      await dead.commands.appendAt(
        payrollFile,
        id,
        { state: payrollFile.initialState, revision: -1 },
        [received(id, { rows: 2, chunks: 2 }, on), recorded(id, 0, false, [row({}, 1)])],
        {
          actor: { type: 'system', id: 'test' },
          tenantId: tenant_id,
          environment: 'live',
          correlationId: id,
          commandId: id,
        },
      )
    } finally {
      await dead.close()
    }
    return id
  }

  /** When files were given up, in the order in which they were. */
  async function givenUp(files: readonly string[]): Promise<[string, number][]> {
    const failed = (await allEvents(service, 'PayrollFileFailed')) as unknown as {
      data: { file_id: string }
      recorded_at: string
    }[]
    return failed
      .filter(({ data }) => files.includes(data.file_id))
      .map(({ data, recorded_at }) => [data.file_id, Date.parse(recorded_at)])
  }

  test('run in order, each at its own due time, when one jump passes several', async () => {
    const start = await serviceTime(service)
    const first = await interruptedUpload()
    await advance({ seconds: 20 })
    const second = await interruptedUpload()
    // what falls due later is not waited for
    const drained = await ops('POST', '/drain', { timeout_seconds: 150 })
    expect(drained.status).toBe(200)
    expect((await operate(service, 'GET', '/work')).counts).toMatchObject({ due: 0, leased: 0, later: 2 })

    await advanceTo(start + 59_999)
    expect(await givenUp([first, second])).toEqual([])
    // timers are in the database, not in the process
    await service.kill()
    service = await startHere()
    await advanceTo(start + HOUR)
    expect(await givenUp([first, second])).toEqual([
      [first, start + 60_000],
      [second, start + 80_000],
    ])
    expect((await status(service, tenant, first)).body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('interrupted'),
    })
  })
})

describe('draining', () => {
  test('does not wait for what is held, and says 504 while something is at work', async () => {
    await operate(service, 'POST', '/drain')
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
    const { body } = await report(service, tenant, { employees: largePayroll(1_001, 3).employees })
    const held = await ops('POST', '/drain', { timeout_seconds: 150 })
    expect([held.status, held.body.data.drained]).toEqual([200, true])
    expect((await status(service, tenant, body.report_id)).body.phase_3?.status).not.toBe('complete')

    const client = new pg.Client(service.databaseUrl)
    await client.connect()
    try {
      // nobody can take up the work: another process seems to be at it, which has ten minutes yet
      await client.query(
        `INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, correlation_id, causation_id,
           lease_owner, lease_until, lease_token)
         VALUES ('payroll-pipeline', 'process-file', 'x', '{}', 0, 'leased', 'c', 'c',
           'another process', clock_timestamp() + interval '10 minutes', nextval('runtime.work_claims'))`,
      )
      const busy = await ops('POST', '/drain', { timeout_seconds: 1 })
      expect([busy.status, busy.body.ok, busy.body.error]).toEqual([504, false, 'Gateway Timeout'])
      expect((await ops('POST', '/drain', { timeout_seconds: 0 })).status).toBe(504)
    } finally {
      await client.query(`DELETE FROM runtime.work WHERE key = 'x'`)
      await client.end()
    }
    await operate(service, 'POST', '/faults', { point: 'pipeline', times: 0 })
    const drained = await ops('POST', '/drain', { timeout_seconds: 150 })
    expect([drained.status, drained.body.data.drained]).toEqual([200, true])
    expect((await status(service, tenant, body.report_id)).body.phase_3.status).toMatch(/^completed?$/)
  })
})

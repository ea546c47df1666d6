import { beforeAll, describe, expect, test } from 'vitest'
import { newYorkDate, startOf } from '../../../domain/kernel/new-york.ts'
import { report, serviceTime, status } from '../../support/core.ts'
import {
  askOperator,
  callTool,
  operate,
  type SeededTenant,
  seedPolicy,
  seedTenant,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const ops = (method: string, path: string, body?: unknown) => askOperator(service, method, path, body)

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

import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, post, report, status } from '../../support/core.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedCarrier,
  seedEmployer,
  seedPolicy,
  seedTenant,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
/** Its own client is not limited; its policy is the first carrier's. */
let tenant: SeededTenant
let secondCarrier: string
/** Clients limited to the first carrier, to the second, and to none. */
let first: SeededTenant
let second: SeededTenant
let none: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  secondCarrier = await newCarrier()
  first = await clientOf({ carrier_ids: [tenant.carrierId] })
  second = await clientOf({ carrier_ids: [secondCarrier] })
  none = await clientOf({ carrier_ids: [] })
})

const newCarrier = () => seedCarrier(service, tenant.tenantId)

async function clientOf(scope: Record<string, unknown>): Promise<SeededTenant> {
  const { client_id, client_secret } = await operate(service, 'POST', '/api-clients', {
    tenant_id: tenant.tenantId,
    name: 'scoped',
    environment: 'live',
    products: ['all'],
    ...scope,
  })
  return { ...tenant, clientHeaders: { 'X-Client-ID': client_id, 'X-Client-Secret': client_secret } }
}

const UPDATE = { employee_id: 'E-1', action: 'update', gross_wages: 1 }

function sync(
  client: SeededTenant,
  employerId: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return post(
    service,
    '/api/v1/employees/sync',
    { ...client.clientHeaders, ...headers },
    { employer_id: employerId, employees: [UPDATE] },
  )
}

const FILE_NOT_FOUND = expect.objectContaining({ error: 'File not found', message: expect.any(String) })
const EMPLOYER_NOT_FOUND = expect.objectContaining({
  error: 'Employer not found',
  message: expect.any(String),
})

describe('a file', () => {
  test('of a policy whose carrier lies outside the scope reads as not found, on both prefixes', async () => {
    const { file_id } = (await report(service, tenant)).body
    expect((await status(service, first, file_id)).body.phase_3.total_premium_cents).toBe(2501)
    for (const client of [second, none]) {
      const refused = await status(service, client, file_id)
      expect([refused.status, refused.body]).toEqual([404, FILE_NOT_FOUND])
    }
    const both = await clientOf({ carrier_ids: [secondCarrier, tenant.carrierId] })
    expect((await status(service, both, file_id)).status).toBe(200)
  })

  test('is found only where employer and carrier lie inside the scope, whatever became of the policy', async () => {
    const other = await seedEmployer(service, { tenantId: tenant.tenantId })
    const policy = await seedPolicy(service, { ...other, carrierId: tenant.carrierId })
    const { file_id } = (
      await report(service, tenant, { employer_fein: other.fein, policy_number: policy.policyNumber })
    ).body
    await operate(service, 'POST', `/policies/${policy.policyId}/cancel`, { reason: 'test' })
    const cases = [
      [{ employer_ids: [other.employerId], carrier_ids: [tenant.carrierId] }, 200],
      [{ employer_ids: [tenant.employerId], carrier_ids: [tenant.carrierId] }, 404],
      [{ employer_ids: [other.employerId], carrier_ids: [secondCarrier] }, 404],
    ] as const
    for (const [scope, expected] of cases) {
      expect((await status(service, await clientOf(scope), file_id)).status).toBe(expected)
    }
  })
})

describe('an employee sync', () => {
  test('for an employer without a policy inside the scope is not found, and stores nothing', async () => {
    const before = await allEvents(service, 'EmployeeSyncReceived')
    for (const client of [second, none]) {
      for (const headers of [{}, { 'Idempotency-Key': 'outside' }]) {
        const refused = await sync(client, tenant.employerId, headers as Record<string, string>)
        expect([refused.status, refused.body]).toEqual([404, EMPLOYER_NOT_FOUND])
      }
    }
    expect(await allEvents(service, 'EmployeeSyncReceived')).toEqual(before)
    expect((await sync(first, tenant.employerId)).status).toBe(202)
  })

  test.each([
    ['in progress', { status: 'in_progress' }],
    ['expired', { effective_date: '2020-01-01', expiration_date: '2021-01-01' }],
    ['cancelled', {}],
  ])('counts a policy that is %s, from the moment it was issued', async (what, terms) => {
    const employer = await seedEmployer(service, { tenantId: tenant.tenantId })
    await seedPolicy(service, { ...employer, carrierId: tenant.carrierId })
    const key = { 'Idempotency-Key': `from-${what.replace(' ', '-')}` }
    expect((await sync(second, employer.employerId, key)).status).toBe(404)
    const { policyId } = await seedPolicy(service, { ...employer, carrierId: secondCarrier }, terms)
    if (what === 'cancelled') await operate(service, 'POST', `/policies/${policyId}/cancel`, { reason: 'x' })
    const accepted = await sync(second, employer.employerId, key)
    expect(accepted.status).toBe(202)
    expect((await sync(second, employer.employerId, key)).body).toEqual(accepted.body)
    // both carriers insure the employer: both may read what either of them was told
    for (const client of [first, second, tenant]) {
      expect((await status(service, client, accepted.body.file_id)).status).toBe(200)
    }
    const third = await clientOf({ carrier_ids: [await newCarrier()] })
    expect((await status(service, third, accepted.body.file_id)).body).toEqual(FILE_NOT_FOUND)
  })

  test('of a client that no carriers limit needs no policy', async () => {
    const employer = await seedEmployer(service, { tenantId: tenant.tenantId })
    const accepted = await sync(tenant, employer.employerId)
    expect(accepted.status).toBe(202)
    expect((await status(service, tenant, accepted.body.file_id)).status).toBe(200)
    expect((await status(service, first, accepted.body.file_id)).status).toBe(404)
    expect((await sync(first, employer.employerId)).status).toBe(404)
  })
})

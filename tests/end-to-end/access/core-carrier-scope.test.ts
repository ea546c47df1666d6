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
  send,
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

describe('employers, policies and carriers', () => {
  let another: { employerId: string; policyId: string }
  beforeAll(async () => {
    const { employerId } = await seedEmployer(service, { tenantId: tenant.tenantId })
    const terms = { effective_date: '2020-01-01', expiration_date: '2021-01-01' }
    const { policyId } = await seedPolicy(service, { employerId, carrierId: secondCarrier }, terms)
    another = { employerId, policyId }
  })

  const read = ({ clientHeaders }: SeededTenant, path: string) =>
    send(`${service.coreUrl}/api/v1${path}`, { headers: clientHeaders })
  const idsIn = async (client: SeededTenant, path: string, id: string): Promise<string[]> => {
    const { status, body } = await read(client, path)
    expect([status, body.ok, body.pagination.total]).toEqual([200, true, body.data.length])
    return body.data.map((one: Record<string, string>) => one[id])
  }

  test('are listed and read as far as employers and carriers of the key go, and else not found', async () => {
    const ofEmployer = await clientOf({ employer_ids: [tenant.employerId] })
    for (const [client, reaches] of [
      [first, [true, false]],
      [second, [false, true]],
      [none, [false, false]],
      [ofEmployer, [true, false]],
    ] as const) {
      for (const [index, { employerId, policyId }] of [tenant, another].entries()) {
        const isReached = reaches[index]!
        expect((await idsIn(client, '/employers', 'employer_id')).includes(employerId)).toBe(isReached)
        expect((await idsIn(client, '/policies', 'policy_id')).includes(policyId)).toBe(isReached)
        const [employer, policy] = [
          await read(client, `/employers/${employerId}`),
          await read(client, `/policies/${policyId}`),
        ]
        expect([employer.status, policy.status]).toEqual(isReached ? [200, 200] : [404, 404])
        if (isReached) continue
        expect([employer.body.error, employer.body.code]).toEqual([
          'Employer not found',
          'employer_not_found',
        ])
        expect([policy.body.error, policy.body.code]).toEqual(['Policy not found', 'policy_not_found'])
      }
    }
    const carriers = [secondCarrier, tenant.carrierId]
    expect(await idsIn(tenant, '/carriers', 'carrier_id')).toEqual(expect.arrayContaining(carriers))
    expect(await idsIn(first, '/carriers', 'carrier_id')).toEqual([tenant.carrierId])
    expect((await read(first, `/carriers/${tenant.carrierId}`)).body).toMatchObject({
      name: expect.any(String),
    })
    const outside = await read(first, `/carriers/${secondCarrier}`)
    expect([outside.status, outside.body.error]).toEqual([404, 'Carrier not found'])
  })

  test('name no more of an employer than tells it apart', async () => {
    const { body } = await read(tenant, `/employers/${tenant.employerId}`)
    expect(body).toEqual({
      employer_id: tenant.employerId,
      environment: 'live',
      legal_name: expect.any(String),
      fein_last4: tenant.fein.slice(-4),
    })
  })

  test('are narrowed by what is known of a policy, in the words that it reads today', async () => {
    const only = (query: string) => idsIn(tenant, `/policies?${query}`, 'policy_id')
    expect(await only(`employer_id=${another.employerId}`)).toEqual([another.policyId])
    expect(await only(`policy_number=${tenant.policyNumber}`)).toEqual([tenant.policyId])
    expect(await only(`employer_id=${another.employerId}&status=expired`)).toEqual([another.policyId])
    expect(await only(`employer_id=${another.employerId}&status=active`)).toEqual([])
    expect(await only(`carrier_id=nobody`)).toEqual([])
    const refused = await read(tenant, '/policies?status=bogus')
    expect([refused.status, refused.body.field]).toEqual([400, 'status'])
    for (const word of ['active', 'in_progress', 'cancelled', 'expired']) {
      expect(refused.body.message).toContain(word)
    }
  })
})

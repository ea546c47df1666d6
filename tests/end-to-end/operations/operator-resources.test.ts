import { beforeAll, describe, expect, test } from 'vitest'
import {
  askOperator,
  newFein,
  newPolicyNumber,
  operate,
  policyDefaults,
  type SeededTenant,
  seedTenant,
  send,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

const UNKNOWN = 'f'.repeat(24)

const ops = (method: string, path: string, body?: unknown) => askOperator(service, method, path, body)

test.each([
  [{}, 'field_missing', 'subject'],
  [{ carrier_id: UNKNOWN, employer_id: UNKNOWN }, 'field_invalid', 'employer_id'],
  [{ employer_id: UNKNOWN }, 'field_missing', 'employee_id'],
])('an erasure of %j is refused with %s', async (body, code, field) => {
  const refused = await ops('POST', '/erasures', body)
  expect([refused.status, refused.body]).toEqual([400, expect.objectContaining({ code, field })])
})

const employer = (overrides: Record<string, unknown> = {}) => ({
  tenant_id: seeded.tenantId,
  legal_name: 'Second Bakery LLC',
  fein: newFein(),
  ...overrides,
})
const policy = (overrides: Record<string, unknown> = {}) => ({
  employer_id: seeded.employerId,
  carrier_id: seeded.carrierId,
  ...policyDefaults(),
  ...overrides,
})

describe('the operator token', () => {
  test('an unknown path is 404 without it, a known one with another method 405', async () => {
    const unknown = await send(`${service.opsUrl}/ops/v1/nothing`)
    expect([unknown.status, unknown.body.ok, unknown.body.error]).toEqual([404, false, 'Not Found'])
    const method = await send(`${service.opsUrl}/ops/v1/tenants`, { method: 'DELETE' })
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'POST, GET, HEAD'])
  })
})

describe('tenants, carriers and payroll companies', () => {
  test('are created with 201 and read back', async () => {
    const tenant = await ops('POST', '/tenants', { name: '  Acme  ' })
    expect([tenant.status, tenant.body]).toEqual([
      201,
      { ok: true, data: { tenant_id: expect.stringMatching(/^[0-9a-f]{24}$/), name: 'Acme' } },
    ])
    const { tenant_id } = tenant.body.data
    expect((await ops('GET', `/tenants/${tenant_id}`)).body.data).toEqual(tenant.body.data)

    const carrier = await ops('POST', '/carriers', { tenant_id, name: 'Mutual', settlement_type: 'fbo' })
    expect(carrier.status).toBe(201)
    expect(carrier.body.data).toMatchObject({ tenant_id, name: 'Mutual', settlement_type: 'fbo' })
    const company = await ops('POST', '/payroll-companies', { tenant_id, name: 'Payroll & Co' })
    expect(company.status).toBe(201)
    expect(
      (await ops('GET', `/payroll-companies/${company.body.data.payroll_company_id}`)).body.data,
    ).toEqual(company.body.data)
  })
})

describe('employers', () => {
  test('come back with their personal fields opened, the FEIN with its hyphen', async () => {
    const fein = newFein()
    const address = { line1: '2 Side St', city: 'Reno', state: 'NV', zip: '89502' }
    const created = await ops(
      'POST',
      '/employers',
      employer({
        fein: fein.replace('-', ''),
        address,
        contact_email: 'a@b.example',
        environment: 'sandbox',
      }),
    )
    expect(created.status).toBe(201)
    expect(created.body.data).toEqual({
      employer_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      tenant_id: seeded.tenantId,
      environment: 'sandbox',
      legal_name: 'Second Bakery LLC',
      fein,
      address,
      contact_email: 'a@b.example',
      payroll_company_ids: [],
      data_subject: expect.stringMatching(/^employer\/[0-9a-f]{24}$/),
    })
    const { employer_id } = created.body.data
    expect((await ops('GET', `/employers/${employer_id}`)).body.data).toEqual(created.body.data)

    const list = await ops('GET', `/employers?tenant_id=${seeded.tenantId}&environment=sandbox`)
    expect(list.body.data[0]).toEqual(created.body.data)
    expect(list.body.pagination).toEqual({ page: 1, limit: 50, total: 1, total_pages: 1, has_more: false })
  })

  test('have a FEIN of their own across tenants in an environment, also in a race', async () => {
    const fein = newFein()
    const { tenant_id } = await operate(service, 'POST', '/tenants', { name: 'Other' })
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        ops(
          'POST',
          '/employers',
          employer({
            fein: index % 3 === 0 ? fein.replace('-', '') : fein,
            tenant_id: index % 2 ? tenant_id : seeded.tenantId,
          }),
        ),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
    const refused = answers.find(({ status }) => status === 409)!
    expect(refused.body).toMatchObject({ ok: false, error: 'Conflict' })
    expect(refused.body.message).toContain('fein')
    expect(refused.text).not.toContain(fein)
    expect((await ops('POST', '/employers', employer({ fein, environment: 'sandbox' }))).status).toBe(201)
  })

  test('change their details and links; what is fixed is refused', async () => {
    const { employer_id, fein } = await operate(
      service,
      'POST',
      '/employers',
      employer({ address: { city: 'A' } }),
    )
    const path = `/employers/${employer_id}`
    const changed = await ops('PATCH', path, {
      legal_name: 'Renamed',
      contact_email: 'new@b.example',
      payroll_company_ids: [seeded.payrollCompanyId],
      fein: fein.replace('-', ''),
    })
    expect(changed.status).toBe(200)
    expect(changed.body.data).toMatchObject({
      legal_name: 'Renamed',
      contact_email: 'new@b.example',
      address: { city: 'A' },
      payroll_company_ids: [seeded.payrollCompanyId],
    })
    const unlinked = await ops('PATCH', path, { legal_name: 'Unlinked', payroll_company_ids: null })
    expect([unlinked.status, unlinked.body.message]).toEqual([400, 'payroll_company_ids must not be null'])
    expect((await ops('GET', path)).body.data).toEqual(changed.body.data)
    const cleared = await ops('PATCH', path, { address: null, contact_email: null, payroll_company_ids: [] })
    expect(cleared.body.data).toMatchObject({ address: null, contact_email: null, payroll_company_ids: [] })
    expect((await ops('GET', path)).body.data).toEqual(cleared.body.data)

    for (const fixed of [
      { fein: newFein() },
      { tenant_id: UNKNOWN },
      { environment: 'sandbox' },
      { data_subject: `employer/${UNKNOWN}` },
    ]) {
      const refused = await ops('PATCH', path, fixed)
      expect([refused.status, refused.body.message]).toEqual([
        400,
        `${Object.keys(fixed)[0]} cannot be changed`,
      ])
    }
    expect((await ops('PATCH', `/employers/${UNKNOWN}`, { legal_name: 'A' })).status).toBe(404)
  })

  test('cannot be linked to a payroll company of another tenant', async () => {
    const { tenant_id } = await operate(service, 'POST', '/tenants', { name: 'Other' })
    const { payroll_company_id } = await operate(service, 'POST', '/payroll-companies', {
      tenant_id,
      name: 'X',
    })
    const answer = await ops('PATCH', `/employers/${seeded.employerId}`, {
      payroll_company_ids: [payroll_company_id],
    })
    expect(answer.status).toBe(404)
  })
})

describe('policies', () => {
  test('are issued in the tenant and environment of the employer and read back', async () => {
    const body = policy({ states: ['ca', 'NV', 'CA'], annual_premium_cents: 120_000 })
    const created = await ops('POST', '/policies', body)
    expect(created.status).toBe(201)
    expect(created.body.data).toEqual({
      ...body,
      policy_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      tenant_id: seeded.tenantId,
      environment: 'live',
      states: ['CA', 'NV'],
      annual_premium_cents: 120_000,
    })
    const { policy_id } = created.body.data
    expect((await ops('GET', `/policies/${policy_id}`)).body.data).toEqual(created.body.data)
    const list = await ops('GET', `/policies?employer_id=${seeded.employerId}&limit=1`)
    expect(list.body.data.map((one: { policy_id: string }) => one.policy_id)).toEqual([policy_id])
    expect(list.body.pagination).toMatchObject({ limit: 1, has_more: true })
  })

  test('have what is left out by default', async () => {
    const created = await ops('POST', '/policies', {
      employer_id: seeded.employerId,
      carrier_id: seeded.carrierId,
      policy_number: newPolicyNumber(),
      effective_date: '2026-01-01',
      expiration_date: '2099-01-01',
    })
    expect(created.status).toBe(201)
    expect(created.body.data).toMatchObject({
      status: 'active',
      class_codes: [],
      states: [],
      locations: [],
      rates: [],
      fees: [],
      payroll_frequency: 'WEEKLY',
      billing_type: null,
      annual_premium_cents: null,
      overtime_exclusion: false,
    })
  })

  test('cannot have a carrier of another tenant', async () => {
    const { tenant_id } = await operate(service, 'POST', '/tenants', { name: 'Other' })
    const { carrier_id } = await operate(service, 'POST', '/carriers', { tenant_id, name: 'X' })
    const answer = await ops('POST', '/policies', policy({ carrier_id }))
    expect([answer.status, answer.body.message]).toEqual([404, expect.stringMatching(/^carrier_id/)])
  })

  test('in force have a number of their own; a cancelled one frees it', async () => {
    const policy_number = newPolicyNumber()
    const race = await Promise.all(
      Array.from({ length: 5 }, () => ops('POST', '/policies', policy({ policy_number }))),
    )
    expect(race.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
    expect(race.find(({ status }) => status === 409)!.body.message).toContain('policy_number')
    // neither in progress nor past its term holds a number
    expect((await ops('POST', '/policies', policy({ policy_number, status: 'in_progress' }))).status).toBe(
      201,
    )
    const past = { effective_date: '2019-01-01', expiration_date: '2019-12-31' }
    const expired = await ops('POST', '/policies', policy({ policy_number, ...past }))
    expect([expired.status, expired.body.data.status]).toEqual([201, 'expired'])

    const { policy_id } = race.find(({ status }) => status === 201)!.body.data
    const cancelled = await ops('POST', `/policies/${policy_id}/cancel`, { reason: 'moved away' })
    expect([cancelled.status, cancelled.body.data.status]).toEqual([200, 'cancelled'])
    expect((await ops('POST', `/policies/${policy_id}/cancel`)).status).toBe(200)
    expect((await ops('POST', '/policies', policy({ policy_number }))).status).toBe(201)
    expect((await ops('PATCH', `/policies/${policy_id}`, { states: ['CA'] })).status).toBe(409)
  })

  test('change their terms; other fields are refused', async () => {
    const { policy_id, policy_number } = await operate(service, 'POST', '/policies', policy())
    const path = `/policies/${policy_id}`
    const terms = {
      billing_type: null,
      class_codes: ['9999'],
      rates: [{ class_code: '9999', state: 'CA', rate_per_100: '0.000001' }],
      fees: [],
      payroll_frequency: 'SEMI_MONTHLY',
    }
    const changed = await ops('PATCH', path, { ...terms, policy_number })
    expect(changed.status).toBe(200)
    expect(changed.body.data).toMatchObject({ ...terms, states: ['CA', 'NV'] })
    expect((await ops('PATCH', path, { ...terms })).body.data).toEqual(changed.body.data)
    const stream = await ops('GET', `/streams/policy-${policy_id}`)
    expect(stream.body.data.map(({ type }: { type: string }) => type)).toEqual([
      'PolicyIssued',
      'PolicyTermsChanged',
    ])
    const fixed = await ops('PATCH', path, { policy_number: 'X' })
    expect([fixed.status, fixed.body.message]).toEqual([400, 'policy_number cannot be changed'])
    expect((await ops('PATCH', `/policies/${UNKNOWN}`, terms)).status).toBe(404)
  })
})

describe('API clients', () => {
  const client = (overrides: Record<string, unknown> = {}) => ({
    tenant_id: seeded.tenantId,
    name: 'Partner',
    ...overrides,
  })

  test.each([
    ['live', 'live'],
    ['sandbox', 'test'],
  ])('of %s have ids and secrets with the word %s, the secret once', async (environment, word) => {
    const created = await ops('POST', '/api-clients', client({ environment }))
    expect(created.status).toBe(201)
    const { client_secret, ...shown } = created.body.data
    expect(client_secret).toMatch(new RegExp(`^service_${word}_sec_[0-9a-f]{64}$`))
    expect(shown).toEqual({
      client_id: expect.stringMatching(new RegExp(`^service_${word}_cli_[0-9a-f]{32}$`)),
      tenant_id: seeded.tenantId,
      name: 'Partner',
      environment,
      products: ['all'],
      carrier_ids: 'all',
      employer_ids: 'all',
      request_signing: 'off',
      status: 'active',
    })
    expect((await ops('GET', `/api-clients/${shown.client_id}`)).body.data).toEqual(shown)
  })

  test('rotate and deactivate at once', async () => {
    const core = (clientId: string, secret: string) =>
      send(`${service.coreUrl}/api/v1/files/status/${UNKNOWN}`, {
        headers: { 'X-Client-ID': clientId, 'X-Client-Secret': secret },
      })
    const { client_id, client_secret } = await operate(service, 'POST', '/api-clients', client())
    expect((await core(client_id, client_secret)).status).toBe(404)
    const rotated = await ops('POST', `/api-clients/${client_id}/rotate`)
    expect(rotated.status).toBe(200)
    expect((await core(client_id, client_secret)).status).toBe(401)
    expect((await core(client_id, rotated.body.data.client_secret)).status).toBe(404)
    const off = await ops('POST', `/api-clients/${client_id}/deactivate`)
    expect([off.status, off.body.data.status]).toEqual([200, 'deactivated'])
    expect((await core(client_id, rotated.body.data.client_secret)).status).toBe(401)
    expect((await ops('POST', `/api-clients/${client_id}/rotate`)).status).toBe(409)
    expect((await ops('POST', `/api-clients/${client_id}/deactivate`)).status).toBe(200)
  })

  test('may be scoped to carriers and employers of the tenant and environment', async () => {
    const scoped = {
      carrier_ids: [seeded.carrierId],
      employer_ids: [seeded.employerId],
      products: ['payroll'],
    }
    const created = await ops('POST', '/api-clients', client(scoped))
    expect(created.body.data).toMatchObject(scoped)
    expect((await ops('POST', '/api-clients', client({ employer_ids: [] }))).body.data.employer_ids).toEqual(
      [],
    )
  })

  test('of another environment cannot name an employer', async () => {
    const answer = await ops('POST', '/api-clients', {
      ...client(),
      environment: 'sandbox',
      employer_ids: [seeded.employerId],
    })
    expect(answer.status).toBe(404)
  })
})

describe('inbound connections', () => {
  test('have their secret shown once and close for good', async () => {
    const created = await ops('POST', '/inbound-connections', { tenant_id: seeded.tenantId })
    expect(created.status).toBe(201)
    const { secret, ...shown } = created.body.data
    expect(secret).toMatch(/^whin_[0-9a-f]{64}$/)
    expect(shown).toEqual({
      connection_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      tenant_id: seeded.tenantId,
      environment: 'live',
      status: 'active',
    })
    const path = `/inbound-connections/${shown.connection_id}`
    expect((await ops('GET', path)).body.data).toEqual(shown)
    expect((await ops('POST', `${path}/deactivate`)).body.data.status).toBe('deactivated')
    expect((await ops('POST', `/inbound-connections/${UNKNOWN}/deactivate`)).status).toBe(404)
  })
})

import { beforeAll, describe, expect, test } from 'vitest'
import { newClient } from '../../../support/intake.ts'
import { enableCheckout, sessionBody, tokenOf } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { type SeededTenant, seedCarrier, seedPolicy, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** What a request for a payment session may say, and how it is answered. */

let service: SharedService
let tenant: SeededTenant
let configVersion: number

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  configVersion = (await enableCheckout(service, tenant)).config_version
})

const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(service, tenant.clientHeaders, method, path, body, key)
const without = (...names: string[]) => {
  const body = sessionBody(tenant)
  for (const name of names) delete body[name]
  return body
}
/** Money alone: the default amount is left out. */
const sums = (figures: Record<string, unknown>) => ({ ...without('amount_cents'), ...figures })
const create = (overrides: Record<string, unknown> = {}) =>
  ask('POST', '/payment-sessions', sessionBody(tenant, overrides))
const total = async () => (await ask('GET', '/payment-sessions?limit=1')).body.pagination.total as number

/** What a request is refused with; nothing was created by it. */
async function refusal(body: unknown) {
  const before = await total()
  const answer = await ask('POST', '/payment-sessions', body)
  expect(await total()).toBe(before)
  const { field, errors, replaced_by, id, data, ...always } = answer.body
  expect(Object.keys(always).sort()).toEqual(['code', 'doc_url', 'error', 'message', 'ok'])
  return [answer.status, answer.body.ok, answer.body.error, answer.body.message]
}
const badRequest = (word: string) => [400, false, 'Bad Request', expect.stringContaining(word)]

describe('what is missing or wrong is refused by its name', () => {
  test.each([
    [{}, 'amount_cents'],
    [{ amount_cents: 100, premium_cents: 90, fee_cents: 5 }, '95'],
    [{ amount_cents: 100, fee_cents: 101 }, 'fee_cents'],
    [{ premium_cents: 40, fee_cents: 9 }, '50'],
    [{ amount_cents: 100_000_001 }, '100000000'],
    [{ amount_cents: 10_500, fee_breakdown: [{ label: 'A', amount_cents: 300 }] }, 'fee_breakdown'],
    [{ amount_cents: 10_500, fee_cents: 500, fee_breakdown: [] }, 'fee_breakdown'],
  ])('money %j', async (figures, word) => {
    expect(await refusal(sums(figures))).toEqual(badRequest(word))
  })

  test.each([{}, { total_installments: 3 }, { mode: 'embedded' }])(
    'months of down payment, which name the two fields instead: %j',
    async (overrides) => {
      const why = await refusal(sessionBody(tenant, { ...overrides, down_payment_months: 2 }))
      expect(why).toEqual(badRequest('down_payment_percent'))
      expect(why).toEqual(badRequest('down_payment_cents'))
    },
  )

  test('a text without a number', async () => {
    const why = await refusal(sessionBody(tenant, { deliver: { sms: true } }))
    expect(why).toEqual(badRequest('deliver.sms_to'))
  })
})

describe('ids are looked up before anything is created', () => {
  const none = 'f'.repeat(24)

  test('a key for one carrier need not name it; one for several must', async () => {
    const { tenantId, carrierId } = tenant
    const body = without('carrier_id')
    const one = await newClient(service, tenantId, { carrier_ids: [carrierId] })
    const inferred = await partner(service, one.headers, 'POST', '/payment-sessions', body)
    expect(inferred.status).toBe(201)
    expect((await ask('GET', `/payment-sessions/${inferred.body.data.id}`)).body.data.carrier_id).toBe(
      carrierId,
    )
    const carrier_id = await seedCarrier(service, tenantId)
    const several = await newClient(service, tenantId, { carrier_ids: [carrierId, carrier_id] })
    const refused = await partner(service, several.headers, 'POST', '/payment-sessions', body)
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('carrier_id')])
    expect(await refusal(body)).toEqual(badRequest('carrier_id'))
  })

  test.each(['employer_id', 'policy_id', 'carrier_id'])(
    '%s that cannot be an id is not found',
    async (field) => {
      for (const malformed of ['zzz', none.toUpperCase()]) {
        const { status, body } = await create({ [field]: malformed })
        expect([status, body.error, body.field]).toEqual([404, 'Not Found', field])
      }
    },
  )

  test('the earlier check answers', async () => {
    const off = await seedTenant(service)
    const sandbox = await newClient(service, off.tenantId, { environment: 'sandbox' })
    const narrow = await newClient(service, off.tenantId, { carrier_ids: [] })
    const told = async (headers: Readonly<Record<string, string>>, overrides: Record<string, unknown>) => {
      const answer = await partner(service, headers, 'POST', '/payment-sessions', sessionBody(off, overrides))
      return [answer.status, answer.body.error]
    }
    expect(await told({}, { mode: 'hosted' })).toEqual([401, 'Unauthorized'])
    const { status, body } = await partner(service, sandbox.headers, 'POST', '/payment-sessions', {})
    expect([status, body.error]).toEqual([400, 'Bad Request'])
    expect(body.message).toContain('sandbox')
    expect(await told(off.clientHeaders, { policy_id: none, amount_cents: 49 })).toEqual([400, 'Bad Request'])
    expect(await told(narrow.headers, { policy_id: none })).toEqual([404, 'Not Found'])
    expect(await told(narrow.headers, {})).toEqual([403, 'Forbidden'])
    expect(await told(off.clientHeaders, { mode: 'embedded' })).toEqual([403, 'Checkout Not Enabled'])
  })

  test('a checkout that lacks a setting is not enabled, and says which', async () => {
    const lacking = await seedTenant(service)
    for (const name of ['display_name', 'support_email', 'sender_email', 'link_ttl_minutes', 'link_format']) {
      await enableCheckout(service, lacking, { [name]: null })
      for (const mode of ['link', 'embedded']) {
        const body = sessionBody(lacking, { mode })
        const answer = await partner(service, lacking.clientHeaders, 'POST', '/payment-sessions', body)
        expect([answer.status, answer.body]).toEqual([
          403,
          expect.objectContaining({
            ok: false,
            error: 'Checkout Not Enabled',
            message: expect.stringContaining(name),
          }),
        ])
      }
    }
  })
})

describe('an answer', () => {
  test('has exactly what is documented', async () => {
    const { status, body } = await create({ ttl_minutes: 15, created_by: 'desk 4' })
    expect([status, Object.keys(body)]).toEqual([201, ['ok', 'data']])
    expect(Object.keys(body.data).sort()).toEqual(
      [
        ...['id', 'url', 'token_prefix', 'mode', 'status', 'amount_cents', 'line_items', 'expires_at'],
        ...['single_use', 'host_is_custom', 'config_version', 'delivery', 'delivery_ok'],
      ].sort(),
    )
    const { data } = body
    const token = tokenOf(data)
    expect(token).toMatch(/^[A-Za-z0-9_-]{43,}$/)
    expect([data.token_prefix, data.host_is_custom]).toEqual([token.slice(0, 8), false])
    expect([data.mode, data.status, data.single_use, data.config_version]).toEqual([
      'link',
      'pending',
      true,
      configVersion,
    ])
    expect(data.url).toBe(`${service.portalUrl}/pay/${token}`)
    const read = (await ask('GET', `/payment-sessions/${data.id}`)).body.data
    expect(read).toMatchObject({ created_by: 'desk 4', created_at: expect.stringMatching(/\.\d{3}Z$/) })
    for (const name of ['url', 'client_secret', 'publishable_key', 'plan', 'installment_plan', 'token']) {
      expect(read).not.toHaveProperty(name)
    }
    const { data: list } = (await ask('GET', '/payment-sessions?limit=1')).body
    expect(list).toEqual([read])
  })

  test.each([
    [{ ttl_minutes: 10_080 }, 10_080],
    [{}, 1_440],
    [{ ttl_minutes: null }, 1_440],
  ])('expires as asked, else as configured: %j', async (overrides, minutes) => {
    const { data } = (await create(overrides)).body
    const { created_at, expires_at } = (await ask('GET', `/payment-sessions/${data.id}`)).body.data
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(minutes * 60_000)
  })

  test('says whether it may be paid twice, as asked, else as configured', async () => {
    const twice = await seedTenant(service)
    const { config_version } = await enableCheckout(service, twice, { single_use: false })
    const made = async (overrides: Record<string, unknown>) => {
      const body = sessionBody(twice, overrides)
      return (await partner(service, twice.clientHeaders, 'POST', '/payment-sessions', body)).body.data
    }
    expect((await made({})).single_use).toBe(false)
    expect((await made({ single_use: true })).single_use).toBe(true)
    expect((await create({ single_use: false })).body.data.single_use).toBe(false)
    const first = await made({})
    expect(first.config_version).toBe(config_version)
    await enableCheckout(service, twice, { display_name: 'Another name' })
    expect((await made({})).config_version).toBe(config_version + 1)
  })

  test('of an embedded one is exactly what mounts its checkout', async () => {
    const { status, body } = await create({ mode: 'embedded' })
    expect([status, Object.keys(body.data).sort()]).toEqual([
      201,
      ['client_secret', 'config_version', 'id', 'publishable_key', 'status'],
    ])
    expect(body.data).toMatchObject({ status: 'pending', config_version: configVersion })
    const { id } = body.data
    const read = (await ask('GET', `/payment-sessions/${id}`)).body.data
    expect(read).toMatchObject({
      id,
      mode: 'embedded',
      token_prefix: null,
      host_is_custom: false,
      delivery: [],
    })
    expect(JSON.stringify(read)).not.toContain(body.data.client_secret)
  })
})

test('a list shows what is asked for, newest first', async () => {
  const { tenantId, carrierId, employerId } = tenant
  const { policyId } = await seedPolicy(service, { employerId, carrierId })
  const carrier_id = await seedCarrier(service, tenantId)
  const elsewhere = await seedPolicy(service, { employerId, carrierId: carrier_id })
  const first = (await create({ policy_id: policyId })).body.data.id
  const second = (await create({ policy_id: policyId })).body.data.id
  const third = (await create({ policy_id: elsewhere.policyId, carrier_id })).body.data.id
  const ids = async (query: string) => {
    const { status, body } = await ask('GET', `/payment-sessions?${query}`)
    expect(status).toBe(200)
    return body.data.map(({ id }: { id: string }) => id)
  }
  expect(await ids(`policy_id=${policyId}`)).toEqual([second, first])
  expect(await ids(`carrier_id=${carrier_id}`)).toEqual([third])
  expect((await ids(`employer_id=${employerId}&limit=3`)).slice(0, 3)).toEqual([third, second, first])
  for (const none of ['f'.repeat(24), 'zzz', '%00']) expect(await ids(`employer_id=${none}`)).toEqual([])
  await ask('DELETE', `/payment-sessions/${first}`)
  expect(await ids(`policy_id=${policyId}&status=cancelled`)).toEqual([first])
  expect(await ids(`policy_id=${policyId}&status=pending`)).toEqual([second])
  const { pagination } = (await ask('GET', `/payment-sessions?policy_id=${policyId}&limit=1&page=2`)).body
  expect(pagination).toEqual({ page: 2, limit: 1, total: 2, total_pages: 2, has_more: false })
  expect((await ask('GET', '/payment-sessions?limit=1000')).body.pagination.limit).toBe(200)
})

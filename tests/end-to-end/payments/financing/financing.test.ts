import { beforeAll, describe, expect, test } from 'vitest'
import { streamEvents } from '../../../support/core.ts'
import {
  checkout,
  checkoutBody,
  financingBody,
  quotedCheckout,
  simulate,
} from '../../../support/financing.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

let service: SharedService
let tenant: SeededTenant
let live: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  live = await seedTenant(service)
  await enableCheckout(service, tenant)
  await enableCheckout(service, live)
})

const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(service, tenant.clientHeaders, method, path, body, key)
const create = (overrides: Record<string, unknown> = {}) =>
  ask('POST', '/payment-sessions', financingBody(tenant, overrides))
const quote = (body: unknown) => checkout(service, tenant, body)
const status = (id: string) => ask('GET', `/payment-sessions/${id}/financing`)
const eventsOf = (id: string) => streamEvents(service, `financingSession-${id}`)
const submissions = async (id: string) =>
  (await eventsOf(id)).filter(({ type }) => type === 'FinancingSubmissionBegun').length
const fault = (point: string, mode: string, times = 1) =>
  operate(service, 'POST', '/faults', { point, mode, times })
const ready = (overrides: Record<string, unknown> = {}) => quotedCheckout(service, tenant, overrides)
const cancel = (id: string) => ask('DELETE', `/payment-sessions/${id}`)

describe('a financing session', () => {
  test('is created without an address or a secret, and nobody is asked for quotes', async () => {
    const { status: code, body } = await create()
    expect([code, body]).toEqual([
      201,
      {
        ok: true,
        data: {
          id: expect.stringMatching(/^[0-9a-f]{24}$/),
          session_id: body.data.id,
          status: 'pending',
          environment: 'sandbox',
          mode: 'embedded',
          expires_at: expect.stringMatching(/Z$/),
        },
      },
    ])
    expect((await status(body.data.id)).body.data).toEqual({
      session_id: body.data.id,
      status: 'not_started',
    })
    await operate(service, 'POST', '/drain')
    expect((await eventsOf(body.data.id)).map(({ type }) => type)).toEqual(['FinancingSessionCreated'])
  })

  test('is the same for the same key, another request is a conflict', async () => {
    const body = financingBody(tenant)
    const first = await ask('POST', '/payment-sessions', body)
    const again = await ask('POST', '/payment-sessions', { ...body, currency: 'USD' })
    expect([again.status, again.body]).toEqual([200, first.body])
    for (const change of [{ premium_cents: 100_001 }, { description: 'Other' }, { ttl_minutes: 60 }]) {
      const refused = await ask('POST', '/payment-sessions', { ...body, ...change })
      expect([refused.status, refused.body.error]).toEqual([409, 'Conflict'])
      const checkedOut = await quote({ ...checkoutBody(tenant), ...body, ...change })
      expect([checkedOut.status, checkedOut.body.error]).toEqual([409, 'Conflict'])
    }
    // keys of two accounts never meet
    const other = await seedTenant(service, { environment: 'sandbox' })
    await enableCheckout(service, other)
    const { idempotency_key } = body
    const elsewhere = await partner(
      ...([service, other.clientHeaders, 'POST', '/payment-sessions'] as const),
      financingBody(other, { idempotency_key }),
    )
    expect(elsewhere.status).toBe(201)
    expect(elsewhere.body.data.id).not.toBe(first.body.data.id)
  })

  test.each([
    [{ idempotency_key: undefined }, 'idempotency_key'],
    [{ idempotency_key: 'a b c d e f' }, 'idempotency_key'],
    [{ mode: 'link' }, 'mode'],
    [{ currency: 'eur' }, 'currency'],
    [{ deliver: { email: true } }, 'deliver'],
    [{ total_installments: 3 }, 'total_installments'],
    [{ premium_cents: 40, fee_cents: 0 }, '50'],
    [{ amount_cents: 3 }, 'amount_cents'],
    [{ carrier_id: undefined }, 'carrier_id'],
  ])('is refused: %j', async (overrides, word) => {
    const { status, body } = await create(overrides)
    expect([status, body.error]).toEqual([400, 'Bad Request'])
    expect(body.message).toContain(word)
  })

  test('is not for live keys, and sandbox keys have no other session', async () => {
    const refused = await partner(...([service, live.clientHeaders, 'POST', '/payment-sessions'] as const), {
      billing_method: 'PREMIUM_FINANCE',
    })
    expect([refused.status, refused.body.error, refused.body.code]).toEqual([
      403,
      'Forbidden',
      'wrong_environment',
    ])
    expect((await checkout(service, live, checkoutBody(live))).status).toBe(403)
    for (const body of [{}, financingBody(tenant, { billing_method: 'DIRECT_BILL' })]) {
      const { status, body: said } = await ask('POST', '/payment-sessions', body)
      expect([status, said.code, said.message]).toEqual([
        400,
        'wrong_environment',
        expect.stringContaining('no sandbox'),
      ])
    }
    expect((await ask('GET', '/payment-sessions')).status).toBe(400)
  })

  test('can be read and cancelled, not reissued', async () => {
    const { id } = (await create({ description: 'Policy 2026' })).body.data
    const { body } = await ask('GET', `/payment-sessions/${id}`)
    expect(body.data).toMatchObject({
      id,
      billing_method: 'PREMIUM_FINANCE',
      mode: 'embedded',
      status: 'pending',
      amount_cents: 105_000,
      description: 'Policy 2026',
      delivery: [],
      customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    })
    expect((await ask('POST', `/payment-sessions/${id}/reissue`, {})).status).toBe(400)
    for (let n = 0; n < 2; n += 1) {
      expect((await cancel(id)).body).toEqual({ ok: true, data: { id, status: 'cancelled' } })
    }
    expect((await ask('GET', `/payment-sessions/${id}`)).body.data.status).toBe('cancelled')
    expect((await ask('GET', `/payment-sessions/${'f'.repeat(24)}`)).status).toBe(400)
    expect((await ask('DELETE', `/payment-sessions/${'f'.repeat(24)}`)).status).toBe(400)
    expect((await partner(service, live.clientHeaders, 'GET', `/payment-sessions/${id}`)).status).toBe(404)
  })
})

describe('a financing checkout', () => {
  test('is pending, then ready, and repeats its tokens', async () => {
    const body = checkoutBody(tenant, {
      policy: {
        effective_date: '2020-01-01',
        expiration_date: '2099-12-31',
        policy_number: tenant.policyNumber,
      },
    })
    const first = await quote(body)
    const { session_id: id, finance_access_token } = first.body.data
    expect([first.status, first.body.data]).toEqual([
      200,
      {
        session_id: expect.stringMatching(/^[0-9a-f]{24}$/),
        environment: 'sandbox',
        status: 'pending',
        finance_access_token: expect.any(String),
        expires_at: expect.stringMatching(/Z$/),
      },
    ])
    expect((await status(id)).body.data).toEqual({ session_id: id, status: 'pending' })
    const { quotes } = await simulate(service, id, 'quotes', { count: 2 })
    expect(quotes).toHaveLength(2)
    expect((await simulate(service, id, 'quotes', { count: 5 })).quotes).toEqual(quotes)
    const { data } = (await quote(body)).body
    expect(data).toMatchObject({ status: 'ready', finance_access_token, checkout_token: expect.any(String) })
    expect((await quote(body)).body.data).toEqual(data)
    expect((await status(id)).body.data).toEqual({ session_id: id, status: 'quote_ready', quote_count: 2 })
    expect(await submissions(id)).toBe(1)
  })

  test('goes on with the session that was created before', async () => {
    const body = financingBody(tenant)
    const { id } = (await ask('POST', '/payment-sessions', body)).body.data
    const { insured } = checkoutBody(tenant)
    expect((await quote({ ...body, insured })).body.data).toMatchObject({ session_id: id, status: 'pending' })
    const again = await ask('POST', '/payment-sessions', body)
    expect([again.status, again.body.data.id]).toEqual([200, id])
  })

  test('of many equal requests at once asks the provider once', async () => {
    const body = checkoutBody(tenant)
    const answers = await Promise.all(Array.from({ length: 8 }, () => quote(body)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const [{ session_id: id }] = answers.map(({ body }) => body.data)
    expect(new Set(answers.map(({ body }) => body.data.finance_access_token)).size).toBe(1)
    await operate(service, 'POST', '/drain')
    expect(await submissions(id)).toBe(1)
  })

  test('is a conflict where insured or policy change', async () => {
    const body = checkoutBody(tenant)
    await quote(body)
    const insured = { ...(body.insured as object), city: 'Sparks' }
    for (const change of [{ insured }, { policy: { policy_number: tenant.policyNumber } }]) {
      const { status, body: said } = await quote({ ...body, ...change })
      expect([status, said.error]).toEqual([409, 'Conflict'])
    }
  })

  test.each([
    ['business_name', undefined, 'insured.business_name'],
    ['business_name', 'Another Bakery', 'insured.business_name'],
  ])('is refused with insured.%s %s', async (name, value, field) => {
    const { insured } = checkoutBody(tenant)
    const refused = await quote(checkoutBody(tenant, { insured: { ...(insured as object), [name]: value } }))
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining(field)])
  })

  test.each([
    [{ insured: undefined }, 'insured'],
    [{ policy: { effective_date: '2020-01-02' } }, 'policy.effective_date'],
    [{ policy: { expiration_date: '2099-12-30' } }, 'policy.expiration_date'],
    [{ policy: { policy_number: 'WC-1' } }, 'policy.policy_number'],
    [{ deliver: { sms: true } }, 'deliver.sms'],
  ])('is refused: %j', async (overrides, word) => {
    const { status, body } = await quote(checkoutBody(tenant, overrides))
    expect([status, body.message]).toEqual([400, expect.stringContaining(word)])
  })

  test('is on hold where the provider does not answer, and is never sent again', async () => {
    for (const mode of ['timeout', 'decline']) {
      await fault('financing', mode)
      const body = checkoutBody(tenant)
      const { data } = (await quote(body)).body
      expect(data).toMatchObject({ status: 'on_hold', finance_access_token: expect.any(String) })
      expect(data.checkout_token).toBeUndefined()
      await operate(service, 'POST', '/drain')
      expect((await quote(body)).body.data).toEqual(data)
      expect((await status(data.session_id)).body.data).toEqual({
        session_id: data.session_id,
        status: 'on_hold',
      })
      expect(await submissions(data.session_id)).toBe(1)
      await expect(simulate(service, data.session_id, 'quotes')).rejects.toThrow('409')
    }
  })

  test('is pending while the provider is not reached, which is tried again', async () => {
    await fault('financing', 'unreachable', 2)
    const body = checkoutBody(tenant)
    const { data } = (await quote(body)).body
    expect(data.status).toBe('pending')
    await operate(service, 'POST', '/drain')
    expect(await submissions(data.session_id)).toBe(3)
    await simulate(service, data.session_id, 'quotes')
    expect((await quote(body)).body.data.status).toBe('ready')
  })

  test('is on hold, or expired, when the provider says so', async () => {
    const held = checkoutBody(tenant)
    const { session_id } = (await quote(held)).body.data
    await simulate(service, session_id, 'hold')
    expect((await quote(held)).body.data.status).toBe('on_hold')
    const { body, id } = await ready()
    await simulate(service, id, 'expire')
    const { data } = (await quote(body)).body
    expect([data.status, data.checkout_token]).toEqual(['expired', undefined])
    expect((await status(id)).body.data).toEqual({ session_id: id, status: 'expired' })
    expect((await cancel(id)).status).toBe(409)
    await expect(simulate(service, id, 'hold')).rejects.toThrow('409')
  })

  test('tells of a down payment once its notice matches what was quoted', async () => {
    const { body, id, quotes } = await ready()
    const other = { notice_id: 'n-0', amount_cents: 1 }
    expect(await simulate(service, id, 'down-payment-notice', other)).toMatchObject({
      status: 'quote_ready',
      notices: [{ notice_id: 'n-0', quote_key: null }],
    })
    const notice = { notice_id: 'n-1', amount_cents: quotes[1].down_payment_cents }
    for (let n = 0; n < 2; n += 1) {
      const played = await simulate(service, id, 'down-payment-notice', notice)
      expect(played).toMatchObject({ status: 'payment_reported' })
      expect(played.notices).toHaveLength(2)
    }
    const { data } = (await quote(body)).body
    expect([data.status, data.checkout_token]).toEqual(['payment_reported', undefined])
    expect((await status(id)).body.data).toEqual({ session_id: id, status: 'payment_reported' })
    const reported = (await eventsOf(id)).filter(({ type }) => type === 'FinancingDownPaymentReported')
    expect(reported).toHaveLength(2)
    const simple = await ready()
    for (let n = 0; n < 2; n += 1) {
      const played = await simulate(service, simple.id, 'down-payment-notice')
      expect([played.status, played.notices.length]).toEqual(['payment_reported', 1])
    }
  })

  test('is a conflict once the session is closed or the checkout is off, and is not for an account without it', async () => {
    const { body, id } = await ready()
    await cancel(id)
    expect((await quote(body)).status).toBe(409)
    expect((await status(id)).status).toBe(409)
    expect((await ask('POST', '/payment-sessions', financingBodyOf(body))).body.data).toMatchObject({
      id,
      status: 'cancelled',
    })

    const other = await seedTenant(service, { environment: 'sandbox' })
    const refused = async () => [
      (await partner(service, other.clientHeaders, 'POST', '/payment-sessions', financingBody(other))).status,
      (await checkout(service, other, checkoutBody(other))).status,
    ]
    expect(await refused()).toEqual([409, 409])
    await enableCheckout(service, other)
    const made = checkoutBody(other)
    expect((await checkout(service, other, made)).status).toBe(200)
    await enableCheckout(service, other, { enabled: false })
    expect((await checkout(service, other, made)).status).toBe(409)
    await enableCheckout(service, other)
    const settings = { enabled: false }
    expect(await operate(service, 'PUT', `/tenants/${other.tenantId}/financing`, settings)).toEqual({
      tenant_id: other.tenantId,
      enabled: false,
      invitations_enabled: false,
      recipient_allowlist: [],
      agreements_enabled: true,
    })
    expect(await refused()).toEqual([503, 503])
    expect((await checkout(service, other, made)).status).toBe(503)
  })

  test('expires by time, and is not begun again', async () => {
    const pending = checkoutBody(tenant, { ttl_minutes: 15 })
    const { session_id } = (await quote(pending)).body.data
    const { id, body, quotes } = await ready({ ttl_minutes: 15 })
    const unasked = financingBody(tenant, { ttl_minutes: 15 })
    const created = (await ask('POST', '/payment-sessions', unasked)).body.data
    await operate(service, 'POST', '/clock/advance', { seconds: 900 })
    for (const one of [pending, body]) {
      const { data } = (await quote(one)).body
      expect([data.status, data.checkout_token]).toEqual(['expired', undefined])
    }
    const { insured } = checkoutBody(tenant)
    expect((await quote({ ...unasked, insured })).body.data.status).toBe('expired')
    for (const one of [session_id, id, created.id]) {
      expect((await status(one)).body.data.status).toBe('expired')
      expect((await ask('GET', `/payment-sessions/${one}`)).body.data.status).toBe('expired')
    }
    const download = `/payment-sessions/${id}/financing/agreements/${quotes[0].quote_key}`
    expect((await ask('GET', download)).status).toBe(409)
    await operate(service, 'POST', '/drain')
    expect([await submissions(session_id), await submissions(created.id)]).toEqual([1, 0])
    const { notices, status: after } = await simulate(service, id, 'down-payment-notice')
    expect([notices.length, after]).toEqual([1, 'expired'])
  })
})

/** What the creation of a session is asked by, of the request of a checkout. */
function financingBodyOf({ insured: _, ...body }: Record<string, unknown>) {
  return body
}

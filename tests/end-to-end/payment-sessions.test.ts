import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents } from '../support/core.ts'
import { enableCheckout, newSession, sessionBody, tokenOf } from '../support/payment-sessions.ts'
import { partner, raised } from '../support/payments.ts'
import { operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})

const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(service, tenant.clientHeaders, method, path, body, key)
const create = (overrides: Record<string, unknown> = {}, key?: string) =>
  ask('POST', '/payment-sessions', sessionBody(tenant, overrides), key)
const session = (overrides: Record<string, unknown> = {}) => newSession(service, tenant, overrides)
const shown = async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data
const page = (token: string, path = '') =>
  send(`${service.paymentsUrl}/public/payment-sessions/${token}${path}`)
const post = (token: string, path: string, body: unknown = {}) =>
  send(`${service.paymentsUrl}/public/payment-sessions/${token}${path}`, { method: 'POST', body })
const pay = (id: string) => operate(service, 'POST', `/card-processor/${id}/succeed`, {})
const account = {
  account_holder_name: 'Tidewater Joinery LLC',
  routing_number: '021000021',
  account_number: '000123456789',
  account_type: 'checking',
  bank_name: 'Harbor Bank',
  authorized: true,
}

describe('a session', () => {
  test('is answered with its address once, and read without it', async () => {
    const created = await session({
      amount_cents: 10_500,
      fee_cents: 500,
      description: 'Policy 2026',
      single_use: false,
      fee_breakdown: [{ label: 'Filing fee', amount_cents: 500 }],
    })
    expect(created).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      url: expect.stringMatching(new RegExp(`^${service.portalUrl}/pay/[A-Za-z0-9_-]{59}$`)),
      token_prefix: tokenOf(created).slice(0, 8),
      mode: 'link',
      status: 'pending',
      amount_cents: 10_500,
      single_use: false,
      line_items: [
        { label: 'Premium', amount_cents: 10_000 },
        { label: 'Filing fee', amount_cents: 500 },
      ],
      expires_at: expect.stringMatching(/Z$/),
      host_is_custom: false,
      config_version: expect.any(Number),
      delivery: [],
      delivery_ok: true,
    })
    const read = await shown(created.id)
    expect(read).toMatchObject({ id: created.id, status: 'pending', description: 'Policy 2026' })
    expect(JSON.stringify(read)).not.toContain(tokenOf(created))
    const stored = JSON.stringify(
      (await allEvents(service)).filter(({ stream }) => stream === `paymentSession-${created.id}`),
    )
    expect(stored).not.toContain(tokenOf(created))
  })

  test('is not repeated by its key, which names it', async () => {
    const key = randomUUID()
    const { body } = await create({}, key)
    const again = await create({}, key)
    expect([again.status, again.body.error, again.body.id]).toEqual([409, 'Conflict', body.data.id])
  })

  test('is opened by who looks at its page, once', async () => {
    const created = await session()
    expect((await page(tokenOf(created))).body.data).toMatchObject({ status: 'opened', amount_cents: 10_500 })
    const { opened_at } = await shown(created.id)
    await page(tokenOf(created))
    expect(await shown(created.id)).toMatchObject({ status: 'opened', opened_at })
    expect((await page(`${tokenOf(created).slice(0, -1)}-`)).status).toBe(404)
    expect((await page('nonsense')).status).toBe(404)
  })

  test('is paid by card', async () => {
    const created = await session()
    const first = await post(tokenOf(created), '/checkout')
    expect(first.body.data).toEqual({
      client_secret: expect.any(String),
      publishable_key: expect.any(String),
    })
    expect((await post(tokenOf(created), '/checkout')).body.data).toEqual(first.body.data)
    await pay(created.id)
    expect(await shown(created.id)).toMatchObject({ status: 'paid' })
    const told = await raised(service, tenant.tenantId, 'payment.completed')
    expect(told.filter(({ payment_session_id }) => payment_session_id === created.id)).toEqual([
      {
        payment_id: expect.any(String),
        payment_session_id: created.id,
        policy_id: tenant.policyId,
        employer_id: tenant.employerId,
        carrier_id: tenant.carrierId,
        amount_cents: 10_500,
        amount_paid_cents: 10_500,
        currency: 'usd',
        premium_cents: 10_500,
        fee_cents: 0,
        metadata: {},
        payment_type: 'ONE_TIME',
        payment_context: 'one_time_payment',
        paid_at: expect.any(String),
      },
    ])
    const refused = await post(tokenOf(created), '/checkout')
    expect([refused.status, refused.body.error]).toEqual([409, 'Unavailable'])
    expect((await ask('DELETE', `/payment-sessions/${created.id}`)).status).toBe(409)
    expect((await ask('POST', `/payment-sessions/${created.id}/reissue`, {})).status).toBe(409)
  })

  test('is scheduled by its bank option, and nobody is told', async () => {
    const created = await session()
    await post(tokenOf(created), '/checkout')
    const arranged = await post(tokenOf(created), '/bank-debit', account)
    expect(arranged.body).toEqual({ ok: true, data: { status: 'scheduled', leg_id: expect.any(String) } })
    const read = await shown(created.id)
    expect(read).toMatchObject({ status: 'scheduled', leg_id: arranged.body.data.leg_id })
    expect((await post(tokenOf(created), '/checkout')).status).toBe(409)
    const reissued = await ask('POST', `/payment-sessions/${created.id}/reissue`, {})
    expect([reissued.status, reissued.body.message]).toEqual([
      409,
      expect.stringContaining('already arranged'),
    ])
    expect((await ask('DELETE', `/payment-sessions/${created.id}`)).body.data.status).toBe('cancelled')
    expect((await ask('POST', `/payment-sessions/${created.id}/reissue`, {})).status).toBe(409)
  })

  test('is replaced by another one with the same details', async () => {
    const created = await session({ description: 'Policy 2026' })
    const { status, body } = await ask('POST', `/payment-sessions/${created.id}/reissue`, { ttl_minutes: 15 })
    expect([status, body.data.replaces]).toEqual([201, created.id])
    expect(body.data.url).not.toBe(created.url)
    expect(await shown(created.id)).toMatchObject({ status: 'cancelled', replaced_by: body.data.id })
    expect(await shown(body.data.id)).toMatchObject({ description: 'Policy 2026', amount_cents: 10_500 })
    expect((await post(tokenOf(created), '/checkout')).status).toBe(409)
    const again = await ask('POST', `/payment-sessions/${created.id}/reissue`, {})
    expect([again.status, again.body.replaced_by ?? again.body.message]).toEqual([
      409,
      expect.stringContaining(body.data.id),
    ])
  })
})

describe('an embedded session', () => {
  test('is answered with what mounts its checkout', async () => {
    const created = await session({ mode: 'embedded' })
    expect(Object.keys(created).sort()).toEqual(
      ['client_secret', 'config_version', 'id', 'publishable_key', 'status'].sort(),
    )
    await pay(created.id)
    expect(await shown(created.id)).toMatchObject({ status: 'paid', mode: 'embedded' })
  })
})

describe('a plan', () => {
  test('shows its schedule to the payer alone', async () => {
    const created = await session({ amount_cents: 100_001, total_installments: 3, down_payment_percent: 20 })
    expect(created.amount_cents).toBe(20_000)
    const { data } = (await page(tokenOf(created), '/plan')).body
    expect(data).toMatchObject({
      currency: 'usd',
      total_cents: 100_001,
      down_payment_cents: 20_000,
      total_installments: 3,
      per_installment_cents: 26_667,
      last_installment_cents: 26_667,
    })
    expect(data.installments.map(({ due_at }: { due_at: string }) => due_at.slice(11))).toEqual(
      Array(3).fill('17:00:00.000Z'),
    )
    const refused = await post(tokenOf(created), '/checkout')
    expect([refused.status, refused.body.error, refused.body.message]).toEqual([
      ...[409, 'Unavailable', expect.stringContaining('bank')],
    ])
    const other = await session()
    expect((await page(tokenOf(other), '/plan')).status).toBe(404)
  })
})

describe('a request', () => {
  test.each([
    [{ amount_cents: 49 }, 'amount_cents'],
    [{ amount_cents: 100_000_001 }, 'amount_cents'],
    [{ amount_cents: 100.5 }, 'amount_cents'],
    [{ premium_cents: 90, fee_cents: 5, amount_cents: 100 }, '95'],
    [{ amount_cents: null }, 'premium_cents'],
    [{ down_payment_percent: 10 }, 'total_installments'],
    [{ down_payment_months: 2 }, 'down_payment_percent'],
    [{ total_installments: 61 }, 'total_installments'],
    [{ mode: 'embedded', total_installments: 3 }, 'total_installments'],
    [{ mode: 'embedded', deliver: { email: false } }, 'deliver'],
    [{ mode: 'hosted' }, 'mode'],
    [{ ttl_minutes: 14 }, 'ttl_minutes'],
    [{ customer: { name: 'A', email: 'a@b.example', phone: '555-1234' } }, 'customer.phone'],
    [{ deliver: { sms: true } }, 'sms_to'],
  ])('is refused: %j', async (overrides, word) => {
    const { status, body } = await create(overrides)
    expect([status, body.ok, body.error]).toEqual([400, false, 'Bad Request'])
    expect(body.message).toContain(word)
  })

  test('is refused while the checkout is off, or lacks a setting', async () => {
    const other = await seedTenant(service)
    const refused = () =>
      partner(service, other.clientHeaders, 'POST', '/payment-sessions', sessionBody(other))
    expect([(await refused()).status, (await refused()).body.error]).toEqual([403, 'Checkout Not Enabled'])
    await enableCheckout(service, other, { support_email: null })
    expect((await refused()).body.message).toContain('support_email')
  })
})

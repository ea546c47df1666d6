import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { allEvents, serviceTime, streamEvents } from '../../../support/core.ts'
import { linkBody, linkOf, newLink, partner, raised } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedEmployer, seedPolicy, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Live links at the simulated card processor, whose payers are simulated; messages are recorded. */

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})
afterEach(async () => {
  for (const point of ['card-processor', 'mail', 'text']) await fault(point, null)
})

const DAY_MS = 86_400_000
const fault = (point: string, mode: string | null, times = mode === null ? 0 : 1) =>
  operate(service, 'POST', '/faults', { point, times, ...(mode === null ? {} : { mode }) })
const drain = () => operate(service, 'POST', '/drain')
const pay = (id: string) => operate(service, 'POST', `/card-processor/${id}/succeed`, {})
const decline = (id: string) =>
  operate(service, 'POST', `/card-processor/${id}/decline`, { failure_code: 'insufficient_funds' })
const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(service, tenant.clientHeaders, method, path, body, key)
const create = (overrides: Record<string, unknown> = {}, key?: string) =>
  ask('POST', '/payment-links', linkBody(tenant, overrides), key)
const link = (overrides: Record<string, unknown> = {}) => newLink(service, tenant, overrides)
const shown = (id: string) => linkOf(service, tenant, id)
const refund = (id: string, body: unknown = {}, key?: string) =>
  ask('POST', `/payment-links/${id}/refund`, body, key)
const paidLink = async () => {
  const { _id } = await link()
  await pay(_id)
  return _id as string
}
const linkEvents = async (id: string) =>
  (await streamEvents(service, `paymentLink-${id}`)).map(({ type }) => type)
/** An address that nobody else has. */
const someone = () => `${randomUUID()}@payer.example`
const outbox = async (to: string, channel = 'email') =>
  operate(service, 'GET', `/outbox?channel=${channel}&to=${encodeURIComponent(to)}`)
const to = (email: string, phone?: string) => ({
  customer: { name: 'Tidewater Joinery', email, ...(phone === undefined ? {} : { phone }) },
})

describe('a live link', () => {
  test('is sent by email unless that is not wanted, and reads sent then', async () => {
    const [email, other] = [someone(), someone()]
    const created = await link(to(email))
    expect(created.status).toBe('created')
    const silent = await link({ ...to(other), delivery: { email: false } })
    await drain()
    const [message, ...more] = await outbox(email)
    expect(more).toEqual([])
    expect(message).toEqual({
      channel: 'email',
      to: email,
      from: null,
      subject: `${tenant.carrierName}: Full payment`,
      text: expect.stringContaining(created.processor_url),
      at: expect.any(String),
    })
    expect(message.text).toContain('$105.00')
    expect(await outbox(other)).toEqual([])
    expect((await shown(created._id)).status).toBe('sent')
    expect(Date.parse((await shown(created._id)).sent_at)).not.toBeNaN()
    expect((await shown(silent._id)).status).toBe('created')
  })

  test('is sent by text where that is wanted', async () => {
    const [email, phone] = [someone(), `+1503${Math.floor(Math.random() * 1e7)}`]
    const created = await link({ ...to(email, phone), delivery: { email: false, sms: true } })
    await drain()
    expect(await outbox(phone, 'sms')).toMatchObject([
      { channel: 'sms', to: phone, text: expect.stringContaining(created.processor_url) },
    ])
    expect(await outbox(email)).toEqual([])
    expect(await outbox(phone, 'email')).toEqual([])
    expect((await shown(created._id)).status).toBe('sent')
  })

  test('is sent in the name that the tenant has set', async () => {
    const own = await seedTenant(service)
    await operate(service, 'PUT', `/tenants/${own.tenantId}/checkout`, {
      display_name: 'Acme',
      sender_name: 'Acme "Billing"',
      sender_email: 'billing@acme.example',
    })
    const email = someone()
    await newLink(service, own, to(email))
    await drain()
    expect(await outbox(email)).toMatchObject([
      { from: '"Acme  Billing " <billing@acme.example>', subject: 'Acme: Full payment' },
    ])
  })

  test('of the sandbox is sent to nobody', async () => {
    const sandbox = await seedTenant(service, { environment: 'sandbox' })
    const email = someone()
    const { _id } = await newLink(service, sandbox, { ...to(email, '+15035550147'), delivery: { sms: true } })
    await drain()
    expect(await outbox(email)).toEqual([])
    expect((await linkOf(service, sandbox, _id)).status).toBe('created')
  })

  test('is sent once, although the provider fails at first', async () => {
    for (const mode of ['unreachable', 'timeout']) {
      const email = someone()
      await fault('mail', mode, 2)
      const { _id } = await link(to(email))
      await drain()
      expect(await outbox(email)).toHaveLength(1)
      expect((await shown(_id)).status).toBe('sent')
    }
  })

  test('stays created when the provider refuses the message', async () => {
    const email = someone()
    await fault('mail', 'decline')
    const { _id } = await link(to(email))
    await drain()
    expect(await outbox(email)).toEqual([])
    expect((await shown(_id)).status).toBe('created')
    expect(await linkEvents(_id)).toEqual(['PaymentLinkCreated', 'PaymentLinkDeliveryFailed'])
  })
})

describe('a card processor that cannot be reached', () => {
  test.each(['unreachable', 'timeout', 'decline'])('(%s) leaves nothing half-created', async (mode) => {
    // a new employer: the customer is what is created first
    const { employerId } = await seedEmployer(service, { tenantId: tenant.tenantId })
    const { policyId } = await seedPolicy(service, { employerId, carrierId: tenant.carrierId })
    const named = { employer_id: employerId, policy_id: policyId }
    const list = async () =>
      (await ask('GET', `/payment-links?employer_id=${employerId}`)).body.pagination.total
    const key = randomUUID()
    await fault('card-processor', mode)
    const answer = await create(named, key)
    const [status, error] = mode === 'decline' ? [409, 'Conflict'] : [502, 'Bad Gateway']
    expect([answer.status, answer.body]).toMatchObject([
      status,
      { ok: false, error, message: expect.stringMatching(/\S/) },
    ])
    expect(await list()).toBe(0)
    const again = await create(named, key)
    expect(again.status).toBe(201)
    // the same after the customer is there
    await fault('card-processor', mode)
    const second = randomUUID()
    expect((await create(named, second)).status).toBe(status)
    expect((await create(named, second)).status).toBe(201)
    expect((await create(named, second)).status).toBe(200)
    expect(await list()).toBe(2)
  })

  test('keeps a link from being cancelled', async () => {
    const { _id } = await link()
    await fault('card-processor', 'unreachable')
    expect((await ask('DELETE', `/payment-links/${_id}`)).status).toBe(502)
    expect((await shown(_id)).status).not.toBe('cancelled')
    expect((await ask('DELETE', `/payment-links/${_id}`)).status).toBe(200)
  })
})

describe('a payment', () => {
  test.each(['cancelled', 'expired'])(
    'of a link that is %s still counts, and is told as late',
    async (status) => {
      const own = await seedTenant(service, { policy: { status: 'in_progress' } })
      await operate(service, 'PUT', `/tenants/${own.tenantId}/checkout`, { payment_link_ttl_days: 1 })
      const { _id } = await newLink(service, own)
      if (status === 'cancelled') {
        await partner(service, own.clientHeaders, 'DELETE', `/payment-links/${_id}`)
      } else {
        const now = await serviceTime(service)
        await operate(service, 'POST', '/clock/advance', { to: new Date(now + DAY_MS).toISOString() })
      }
      expect((await linkOf(service, own, _id)).status).toBe(status)
      await pay(_id)
      expect(await linkOf(service, own, _id)).toMatchObject({
        status: 'paid',
        payment: { late_payment: true },
      })
      expect((await operate(service, 'GET', `/policies/${own.policyId}`)).status).toBe('active')
      expect(await raised(service, own.tenantId, 'payment.completed')).toMatchObject([{ late_payment: true }])
    },
  )

  test('that is declined is told', async () => {
    const own = await seedTenant(service)
    const { _id } = await newLink(service, own)
    await decline(_id)
    expect(await raised(service, own.tenantId, 'payment.failed')).toMatchObject([
      { payment_link_id: _id, failure_message: expect.stringContaining('insufficient_funds') },
    ])
  })
})

describe('a refund at the processor', () => {
  test('without an answer is pending, and the same request again goes on with it', async () => {
    const own = await seedTenant(service)
    const { _id } = await newLink(service, own)
    await pay(_id)
    const ask = (body: unknown) =>
      partner(service, own.clientHeaders, 'POST', `/payment-links/${_id}/refund`, body)
    await fault('card-processor', 'timeout')
    expect((await ask({ amount_cents: 1_000 })).status).toBe(502)
    const { refunded_cents, refunds } = await linkOf(service, own, _id)
    expect([refunded_cents, refunds]).toMatchObject([0, [{ amount_cents: 1_000, status: 'pending' }]])
    const again = await ask({ amount_cents: 1_000 })
    expect(again.body.data).toMatchObject({
      refunded_cents: 1_000,
      refunds: [{ refund_id: refunds[0].refund_id, status: 'succeeded' }],
    })
    expect(again.body.data.refunds).toHaveLength(1)
    // one more of the same amount is another one
    expect((await ask({ amount_cents: 1_000 })).body.data.refunded_cents).toBe(2_000)
    expect(await raised(service, own.tenantId, 'payment.refunded')).toHaveLength(2)
  })

  test('without an answer is settled before another one begins', async () => {
    const id = await paidLink()
    await fault('card-processor', 'timeout')
    expect((await refund(id, { amount_cents: 1_000 })).status).toBe(502)
    const rest = await refund(id)
    expect(rest.body.data).toMatchObject({
      refunded_cents: 10_500,
      refunds: [{ amount_cents: 1_000 }, { amount_cents: 9_500 }],
    })
  })

  test('without an answer is settled by itself after a while', async () => {
    const own = await seedTenant(service)
    const { _id } = await newLink(service, own)
    await pay(_id)
    await fault('card-processor', 'timeout')
    await partner(service, own.clientHeaders, 'POST', `/payment-links/${_id}/refund`, {})
    await drain()
    expect((await linkOf(service, own, _id)).refunded_cents).toBe(0)
    await operate(service, 'POST', '/clock/advance', { seconds: 15 * 60 })
    expect(await raised(service, own.tenantId, 'payment.refunded')).toMatchObject([
      { refunded_cents: 10_500 },
    ])
    expect((await linkOf(service, own, _id)).refunded_cents).toBe(10_500)
  })

  test.each(['timeout', 'unreachable', 'decline'])(
    'under a key (%s) is repeated, never doubled',
    async (mode) => {
      const id = await paidLink()
      const key = randomUUID()
      await fault('card-processor', mode)
      const { status } = await refund(id, { amount_cents: 1_000 }, key)
      expect(status).toBe(mode === 'decline' ? 409 : 502)
      const again = await refund(id, { amount_cents: 1_000 }, key)
      expect([again.status, again.body.data.refunded_cents]).toEqual([200, 1_000])
      expect((await refund(id, { amount_cents: 1_000 }, key)).text).toBe(again.text)
      expect((await shown(id)).refunded_cents).toBe(1_000)
    },
  )
})

describe('what is kept of a customer', () => {
  test('is shown to nobody but its partner, and erased with the employer', async () => {
    const own = await seedTenant(service)
    const [email, name] = [someone(), `Na${randomUUID().slice(0, 8)}`]
    const { _id } = await newLink(service, own, { customer: { name, email, phone: '+15035550147' } })
    await drain()
    const events = JSON.stringify((await allEvents(service)).filter(({ stream }) => stream.endsWith(_id)))
    expect(events).toContain('PaymentLinkSent')
    for (const text of [email, name, '+15035550147']) expect(events).not.toContain(text)
    expect((await linkOf(service, own, _id)).customer).toEqual({ name, email, phone: '+15035550147' })
    const { data_subject } = await operate(service, 'GET', `/employers/${own.employerId}`)
    await operate(service, 'POST', '/erasures', { subject: data_subject })
    await drain()
    expect((await linkOf(service, own, _id)).customer).toEqual({
      name: '(erased)',
      email: '(erased)',
      phone: '(erased)',
    })
    expect(await outbox(email)).toMatchObject([{ to: '(erased)', subject: null, text: '(erased)' }])
  })
})

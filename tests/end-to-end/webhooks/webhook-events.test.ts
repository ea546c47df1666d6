import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPaymentsClient, verifyWebhook } from '../../../clients/node/index.ts'
import { cli } from '../../support/cli.ts'
import { serviceTime } from '../../support/core.ts'
import { newPartner, type Partner, registerWebhook } from '../../support/partners.ts'
import { operate, type SeededTenant, seedEmployer, seedPolicy, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

/** Events of the sandbox on their way from a command line to the endpoints of partners. */

let service: SharedService
let receiver: Receiver
let tenant: SeededTenant
let partner: Partner
beforeAll(async () => {
  service = await sharedService()
  receiver = await startReceiver()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  partner = await newPartner(service, tenant.tenantId, { environment: 'sandbox' })
})
afterAll(() => receiver?.stop())

const at = (path: string) => receiver.requests.filter((one) => one.path === path)

async function newLink(of: { employerId: string; policyId: string }): Promise<string> {
  const { status, body, text } = await partner.call('POST', '/payment-links', {
    employer_id: of.employerId,
    carrier_id: tenant.carrierId,
    policy_id: of.policyId,
    premium_cents: 120_000,
    payment_type: 'ONE_TIME',
    payment_context: 'down_payment',
    customer: { name: 'Ada Moss', email: 'ada@bakery.example' },
  })
  expect([status, text]).toEqual([201, expect.any(String)])
  return body.data._id
}

const pay = async (link: string) => {
  const { status } = await partner.call('POST', `/payment-links/${link}/simulate-completion`, {})
  await operate(service, 'POST', '/drain')
  expect(status).toBe(200)
}
/** A command of the group `webhooks`. @returns what it prints. */
const run = async (...args: string[]) => {
  const { code, stderr, json } = await cli(['webhooks', ...args, '--json'], {
    env: {
      COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
      COMPSTREAM_CLIENT_ID: partner.clientId,
      COMPSTREAM_CLIENT_SECRET: partner.clientSecret,
    },
  })
  expect([code, stderr]).toEqual([0, ''])
  return json()
}
const read = async (path: string, by = partner) => (await by.call('GET', path)).body

describe('what a partner missed', () => {
  /** What was sold before anybody had subscribed, and its events, oldest first. */
  let links: string[]
  let missed: { event_id: string; event_type: string; payload: object }[]
  beforeAll(async () => {
    links = [await newLink(tenant), await newLink(tenant)]
    for (const link of links) await pay(link)
    missed = (await read('/events?sort_order=asc')).data
  })

  test('is listed with its bodies, newest first, by type and time, to those whose scope it lies in', async () => {
    expect(missed.map(({ payload }) => (payload as { payment_link_id: string }).payment_link_id)).toEqual(
      links,
    )
    const newest = await read('/events?limit=1&type=payment.completed')
    expect(newest.data).toEqual([missed[1]])
    expect(newest.pagination).toMatchObject({ total: 2, has_more: true })
    expect((await read('/events?type=payment.refunded')).data).toEqual([])
    expect((await read('/events?to=2020-01-01')).data).toEqual([])
    const today = new Date(await serviceTime(service)).toISOString().slice(0, 10)
    expect((await read(`/events?from=${today}&to=${today}`)).pagination.total).toBe(2)
    const refused = await read('/events?type=payment.done')
    expect([refused.code, refused.field, refused.message]).toEqual([
      ...['field_invalid', 'type', expect.stringContaining('payment.debit_settled')],
    ])
    const elsewhere = await newPartner(service, tenant.tenantId, { environment: 'live' })
    const stranger = await newPartner(service, (await seedTenant(service)).tenantId, {})
    const narrow = await newPartner(service, tenant.tenantId, { environment: 'sandbox', employer_ids: [] })
    for (const by of [elsewhere, stranger, narrow]) {
      expect((await read('/events', by)).data).toEqual([])
      const { status } = await by.call('GET', `/events/${missed[0]!.event_id}`)
      expect(status).toBe(by === narrow ? 403 : 404)
    }
    expect((await read(`/events/${missed[0]!.event_id}`)).data).toEqual(missed[0])
  })

  test('is listed from a moment that the answer names, since what is older than 30 days is past', async () => {
    const now = await serviceTime(service)
    const [oldest, yesterday] = [30, 1].map((days) => new Date(now - days * 86_400_000).toISOString())
    const from = async (asked: string) => (await read(`/events?limit=1${asked}`)).pagination.from
    expect(Date.parse(await from('&from=2020-01-01'))).toBeGreaterThanOrEqual(Date.parse(oldest!))
    expect((await from('&from=2020-01-01')) < yesterday!).toBe(true)
    expect((await from('')) < yesterday!).toBe(true)
    expect(await from(`&from=${yesterday}`)).toBe(yesterday)
    const { clientId, clientSecret } = partner
    const client = createPaymentsClient({ baseUrl: service.paymentsUrl, clientId, clientSecret })
    const { data, pagination } = await client.page('listEvents', { from: yesterday, sort_order: 'asc' })
    expect({ data, from: pagination.from }).toEqual({ data: missed, from: yesterday })
  })

  test('is sent again to one address, under its id and with its body, once for a key', async () => {
    const { id, secret } = await registerWebhook(partner, `${receiver.url}/again`, ['payment.completed'])
    await registerWebhook(partner, `${receiver.url}/not-again`)
    const resend = (body: object, key?: string) =>
      partner.call('POST', `/webhooks/${id}/resend`, body, key ? { 'Idempotency-Key': key } : {})
    const span = { from: '2020-01-01', to: '2100-01-01' }
    const first = await resend(span, 'catch-up')
    const from = expect.stringMatching(/^20/)
    expect([first.status, first.body.data]).toEqual([200, { id, resent: 2, from }])
    expect(first.body.data.from > span.from).toBe(true)
    const again = await resend(span, 'catch-up')
    expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([first.body, 'true'])
    await operate(service, 'POST', '/drain')
    const sent = at('/again').map(({ body, headers }) => {
      const timestamp = Number(headers['x-webhook-timestamp'])
      const { id: event_id, type } = verifyWebhook({ payload: body, headers, secret, now: () => timestamp })
      return { event_id, event_type: type, body: String(body) }
    })
    expect(sent.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))).toEqual(
      missed
        .map(({ event_id, event_type, payload }) => ({ event_id, event_type, body: JSON.stringify(payload) }))
        .toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1)),
    )
    expect(at('/not-again')).toEqual([])
    const { event_id } = missed[0]!
    const one = await run('resend', id, '--event', event_id, event_id)
    expect(one).toEqual({ id, resent: 1 })
    expect((await run('events', '--type', 'payment.completed')).data).toContainEqual(missed[0])
    await operate(service, 'POST', '/drain')
    const deliveries = (await read(`/webhooks/${id}/deliveries`)).data
    expect(deliveries).toEqual(
      Array.from({ length: 3 }, () =>
        expect.objectContaining({ status: 'delivered', resent: true, attempts: 1 }),
      ),
    )
  })

  test('is not sent where it was not subscribed to, nor to who is disabled, nor in no way that is meant', async () => {
    const { id } = await registerWebhook(partner, `${receiver.url}/refunded`, ['payment.refunded'])
    const refusal = async (body: object) => {
      const answer = await partner.call('POST', `/webhooks/${id}/resend`, body)
      return [answer.status, answer.body.code, answer.body.field]
    }
    const { event_id } = missed[0]!
    const span = { from: '2020-01-01', to: '2100-01-01' }
    expect((await partner.call('POST', `/webhooks/${id}/resend`, span)).body.data.resent).toBe(0)
    expect(await refusal({ event_ids: [event_id] })).toEqual([
      ...[409, 'webhook_event_not_subscribed', 'event_ids'],
    ])
    const WITH_BOTH = 'event_ids goes without from and to: send one of the two'
    for (const [body, message] of [
      [{ ...span, event_ids: [event_id] }, WITH_BOTH],
      [{ from: span.from, event_ids: [event_id] }, WITH_BOTH],
      [{ to: span.to, event_ids: [event_id] }, WITH_BOTH],
      [{}, 'event_ids is required: send event_ids, or from and to'],
    ] as const) {
      const answer = await partner.call('POST', `/webhooks/${id}/resend`, body)
      expect([answer.status, answer.body.message, answer.body.errors.length]).toEqual([400, message, 1])
    }
    for (const [query, field] of [
      ['from=2026-01-02&to=2026-01-01', 'to'],
      ['from=zz&to=2026-01-01', 'from'],
    ]) {
      const { status, body } = await partner.call('GET', `/events?${query}`)
      expect([status, body.errors.map((one: { field: string }) => one.field)]).toEqual([400, [field]])
    }
    for (const unknown of ['f'.repeat(24), 'nothing']) {
      expect(await refusal({ event_ids: [event_id, unknown] })).toEqual([
        ...[404, 'webhook_event_not_found', 'event_ids[1]'],
      ])
    }
    for (const body of [
      { from: '2020-01-01' },
      { to: '2020-01-01' },
      { from: '2021-01-01', to: '2020-01-01' },
    ]) {
      expect([body, (await refusal(body))[0]]).toEqual([body, 400])
    }
    await partner.call('PATCH', `/webhooks/${id}`, { events: ['payment.completed'], status: 'disabled' })
    for (const body of [span, { event_ids: [event_id] }]) {
      expect((await refusal(body)).slice(0, 2)).toEqual([409, 'subscription_disabled'])
    }
    expect(at('/refunded')).toEqual([])
  })
})

test('reach who subscribed to their type, in whose scope they lie, and nobody else', async () => {
  const other = await seedEmployer(service, { tenantId: tenant.tenantId, environment: 'sandbox' })
  const { policyId } = await seedPolicy(service, {
    employerId: other.employerId,
    carrierId: tenant.carrierId,
  })
  const narrow = await newPartner(service, tenant.tenantId, {
    environment: 'sandbox',
    employer_ids: [tenant.employerId],
  })
  const { secret } = await registerWebhook(partner, `${receiver.url}/all`)
  await registerWebhook(partner, `${receiver.url}/refunds`, ['payment.refunded'])
  await registerWebhook(narrow, `${receiver.url}/narrow`)
  const links = [await newLink(tenant), await newLink({ employerId: other.employerId, policyId })]
  for (const link of links) await run('trigger', 'payment.completed', '--of', link)
  await operate(service, 'POST', '/drain')
  const events = at('/all').map(({ body, headers }) =>
    verifyWebhook({ payload: body, headers, secret, now: () => Number(headers['x-webhook-timestamp']) }),
  )
  // payments of two links come in any order
  expect(events).toHaveLength(links.length)
  for (const payment_link_id of links) {
    const data = expect.objectContaining({ payment_link_id, amount_cents: 120_000 })
    expect(events).toContainEqual(expect.objectContaining({ type: 'payment.completed', data }))
  }
  expect(at('/narrow').map(({ body }) => JSON.parse(String(body)).payment_link_id)).toEqual([links[0]])
  expect(at('/refunds')).toEqual([])
})

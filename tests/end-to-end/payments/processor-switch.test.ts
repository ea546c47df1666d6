// @module-tag long: unit/payments/processor-kinds has whose an object is, contract/card-processor what each processor does
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { enableCheckout, newSession } from '../../support/payment-sessions.ts'
import { linkBody, linkOf, newLink, partner } from '../../support/payments.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { SoldSession } from '../../support/session-payer.ts'
import {
  type StripeEventType,
  type StripeObject,
  stripeEvent,
  stripeSignature,
} from '../../support/stripe-events.ts'
import { StripeStandIn, stripeSettings } from '../../support/stripe-stand-in.ts'
import { advance, type Json, subscriptionBody } from '../../support/subscriptions.ts'

let dataDir: string
let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant

const start = async (env: Readonly<Record<string, string>> = {}) => {
  await service?.end()
  service = await startService({ dataDir, env })
}
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-'))
  stripe = await StripeStandIn.start()
})
afterEach(async () => {
  await service?.stop()
  await stripe?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const ask = (method: string, path: string, body?: unknown) =>
  partner(service, tenant.clientHeaders, method, path, body)
const drain = () => operate(service, 'POST', '/drain')
const now = async () => Date.parse((await operate(service, 'GET', '/clock')).now)
const link = () => newLink(service, tenant, { delivery: { email: false } })
const subscriptionOf = async (id: string) => (await ask('GET', `/subscriptions/${id}`)).body.data
const alerts = async () => {
  await drain()
  const all = await operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}`)
  return all.map(({ kind, about }: Json) => `${kind} ${about.work ?? ''}`).sort()
}

/** A session as it is read after a restart, by its id and token. */
const sell = async () => {
  const created = await newSession(service, tenant)
  return () => new SoldSession(service, tenant, created)
}
let notices = 0
/** Has Stripe tell that a link was paid. */
function paidAtStripe(linkId: string, payment_method: string | null = null): Promise<number> {
  const object = {
    id: `pi_${linkId}`,
    amount_received: 10_500,
    payment_method,
    metadata: { link_id: linkId },
  }
  return told('payment_intent.succeeded', object)
}

/** Has Stripe tell of something. @returns how it is answered. */
async function told<Type extends StripeEventType>(type: Type, object: StripeObject<Type>): Promise<number> {
  notices += 1
  const at = await now()
  const body = stripeEvent(type, object, { id: `evt_switch_${notices}`, at })
  const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': stripeSignature(body, at) }
  return (await fetch(`${service.paymentsUrl}/processor/notices`, { method: 'POST', headers, body })).status
}

test('who goes on with Stripe keeps what is at the simulated processor there, and nothing of it is asked of Stripe', async () => {
  await start()
  tenant = await seedTenant(service)
  const open = await link()
  const paid = await link()
  await operate(service, 'POST', `/card-processor/${paid._id}/succeed`)
  const { _id: old } = (await ask('POST', '/subscriptions', subscriptionBody(tenant))).body.data
  await drain()
  await start(stripeSettings(stripe))

  expect((await ask('DELETE', `/payment-links/${open._id}`)).body.data.status).toBe('cancelled')
  const refunded = await ask('POST', `/payment-links/${paid._id}/refund`, {})
  expect(refunded.body.data.refunds).toMatchObject([{ status: 'succeeded' }])
  await operate(service, 'POST', `/card-processor/${old}/succeed`)
  expect((await ask('DELETE', `/subscriptions/${old}`)).body.data.status).toBe('canceled')
  expect([stripe.requests.length, await alerts()]).toEqual([0, []])

  // the employer has no customer at Stripe yet
  const subscription = subscriptionBody(tenant, { payment_method_id: stripe.method('pm_new') })
  expect((await ask('POST', '/subscriptions', subscription)).status).toBe(409)
  expect((await ask('POST', '/payment-links', linkBody(tenant, { delivery: { email: false } }))).status).toBe(
    201,
  )
  expect(stripe.customers.size).toBe(1)
  expect((await ask('POST', '/subscriptions', subscription)).status).toBe(201)
})

test('what is at Stripe waits there while its keys are not set, and goes on with them, once', async () => {
  await start(stripeSettings(stripe))
  tenant = await seedTenant(service)
  const [open, paid, unpaid] = [await link(), await link(), await link()]
  expect(await paidAtStripe(paid._id)).toBe(200)
  const payment_method_id = stripe.method('pm_kept')
  const subscribed = await ask('POST', '/subscriptions', subscriptionBody(tenant, { payment_method_id }))
  const { _id: subscriptionId, processor_subscription_id } = subscribed.body.data
  await drain()
  stripe.fail('lost', { times: 2, path: /refunds$/, method: 'POST' })
  expect((await ask('POST', `/payment-links/${paid._id}/refund`, { amount_cents: 700 })).status).toBe(502)
  const refunds = async () => (await linkOf(service, tenant, paid._id)).refunds
  expect([await refunds(), stripe.refunds.size]).toMatchObject([[{ status: 'pending' }], 1])

  const known = stripe.requests.length
  const { updated_at } = await subscriptionOf(subscriptionId)
  await start()
  await advance(service, { seconds: 60 })
  const away = { status: 502, body: { message: expect.stringContaining('not configured any more (stripe)') } }
  expect(await ask('DELETE', `/payment-links/${open._id}`)).toMatchObject(away)
  expect(await ask('POST', `/payment-links/${paid._id}/refund`, { amount_cents: 700 })).toMatchObject(away)
  expect(await ask('DELETE', `/subscriptions/${subscriptionId}`)).toMatchObject(away)
  expect((await linkOf(service, tenant, open._id)).status).toBe('created')
  expect(await subscriptionOf(subscriptionId)).toMatchObject({ status: 'incomplete', updated_at })
  // its own timer asks for it as well
  await advance(service, { seconds: 15 * 60 })
  expect(await refunds()).toMatchObject([{ amount_cents: 700, status: 'pending' }])
  expect(await alerts()).toEqual([
    ...['payment_link_held_up cancel', 'payment_link_held_up settle-refund', 'subscription_held_up cancel'],
  ])
  // nobody plays what is at Stripe, and nobody is believed who speaks for it
  const played = await askOperator(service, 'POST', `/card-processor/${unpaid._id}/succeed`, {})
  expect([played.status, await paidAtStripe(unpaid._id)]).toEqual([409, 404])
  expect((await linkOf(service, tenant, unpaid._id)).status).toBe('created')
  const made = await link()
  expect(made.processor_url).not.toContain(stripe.url)
  expect(stripe.requests.length).toBe(known)

  await start({ ...stripeSettings(stripe), PROCESSOR: 'simulated' })
  await advance(service, { seconds: 6 * 3_600 })
  expect([await refunds(), stripe.refunds.size]).toMatchObject([[{ status: 'succeeded' }], 1])
  expect((await ask('DELETE', `/subscriptions/${subscriptionId}`)).body.data.status).toBe('canceled')
  expect(stripe.subscriptions.get(processor_subscription_id)!.status).toBe('canceled')
  expect((await ask('DELETE', `/payment-links/${open._id}`)).body.data.status).toBe('cancelled')
  expect(stripe.links.get(open.processor_payment_link_id)!.active).toBe(false)
  expect(await paidAtStripe(unpaid._id)).toBe(200)
  expect((await linkOf(service, tenant, unpaid._id)).status).toBe('paid')
  // of what is new, Stripe hears nothing, and tells nothing
  expect(await paidAtStripe(made._id)).toBe(200)
  expect((await linkOf(service, tenant, made._id)).status).toBe('created')
})

describe('a session whose checkout is open', () => {
  const simulate = (id: string) => operate(service, 'POST', `/card-processor/${id}/succeed`, {})

  test('at the simulated processor ends there before Stripe is asked, or is paid there', async () => {
    await start()
    tenant = await seedTenant(service)
    await enableCheckout(service, tenant)
    const [moved, played, cancelled] = [await sell(), await sell(), await sell()]
    const secrets = await Promise.all([moved, played, cancelled].map((one) => one().secret()))
    await start(stripeSettings(stripe))

    await simulate(played().id)
    expect((await cancelled().cancel()).status).toBe(200)
    expect([await played().status(), await cancelled().status(), stripe.requests]).toEqual([
      ...['paid', 'cancelled', []],
    ])
    const secret = await moved().secret()
    expect(secrets).not.toContain(secret)
    expect(await moved().secret()).toBe(secret)
    // nobody plays what is at Stripe
    await expect(simulate(moved().id)).rejects.toThrow('409')
    const [{ object }] = stripe.atCheckout.payByCard(secret) as unknown as [{ object: Json }]
    expect(await told('payment_intent.succeeded', object)).toBe(200)
    expect(await moved().status()).toBe('paid')
    expect([await alerts(), (await moved().told()).length]).toEqual([[], 1])
  })

  test('at Stripe waits while its keys are not set, and ends once with them', async () => {
    await start(stripeSettings(stripe))
    tenant = await seedTenant(service)
    await enableCheckout(service, tenant)
    const all = await Promise.all(Array.from({ length: 5 }, sell))
    const [open, debited, cancelled, reissued, paid] = all as [...typeof all, (typeof all)[0]]
    const secrets = await Promise.all(all.map((one) => one().secret()))
    stripe.atCheckout.payByCard(secrets[4]!)

    await start()
    for (const answer of [
      await open!().checkout(),
      await debited!().payFromBank(),
      await cancelled!().cancel(),
      await reissued!().reissue(),
      await paid!().cancel(),
    ]) {
      const message = expect.stringContaining('not configured any more (stripe)')
      expect(answer).toMatchObject({ status: 502, body: { message } })
    }
    expect(await Promise.all(all.map((one) => one().status()))).toEqual(Array(5).fill('pending'))
    await advance(service, { seconds: 24 * 3_600 })
    expect(await Promise.all(all.map((one) => one().status()))).toEqual(Array(5).fill('expired'))
    const heldUp = (work: string, times = 1) => Array(times).fill(`payment_session_held_up ${work}`)
    expect(await alerts()).toEqual([
      ...[...heldUp('arrange-debit'), ...heldUp('cancel', 2), ...heldUp('checkout'), ...heldUp('expire', 5)],
      ...heldUp('reissue'),
    ])

    await start({ ...stripeSettings(stripe), PROCESSOR: 'simulated' })
    await advance(service, { seconds: 6 * 3_600 })
    expect(secrets.map((secret) => stripe.atCheckout.of(secret).status)).toEqual([
      ...[...Array(4).fill('expired'), 'complete'],
    ])
    expect(await Promise.all(all.map((one) => one().status()))).toEqual([
      ...[...Array(4).fill('expired'), 'paid'],
    ])
    expect((await paid!().told()).map(([type, { late_payment }]) => [type, late_payment])).toEqual([
      ['payment.completed', true],
    ])
  })
})

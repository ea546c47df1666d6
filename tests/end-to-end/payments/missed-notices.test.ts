// @module-tag long: unit/payments/missed-notices catches up, contract/payments/stripe-card-processor lists what was told before
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allEvents } from '../../support/core.ts'
import { enableCheckout } from '../../support/payment-sessions.ts'
import { linkOf as linkOfTenant, raised } from '../../support/payments.ts'
import { operate, type SeededTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { SoldSession } from '../../support/session-payer.ts'
import {
  subscriptionInvoice as invoice,
  type StripeEventType,
  type StripeObject,
  stripeEvent,
  stripeSignature,
} from '../../support/stripe-events.ts'
import { StripeStandIn, stripeSettings } from '../../support/stripe-stand-in.ts'
import {
  createLink,
  subscribe,
  subscriptionOf,
  tenantWithCustomer,
  told,
} from '../../support/subscriptions.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/workbench.ts'

const dataDir = temporaryDirectory()
let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant
let listingsAtFirst: number

const start = async () => {
  service = await startService({ dataDir, env: stripeSettings(stripe) })
}
beforeAll(async () => {
  stripe = await StripeStandIn.start()
  stripe.eventsPage = 2
  await start()
  await operate(service, 'POST', '/drain')
  listingsAtFirst = stripe.listings
  tenant = await tenantWithCustomer(service)
})
afterAll(async () => {
  await service?.stop()
  await stripe?.stop()
})

let count = 0
/** Something happens at Stripe, and nothing tells of it. @returns the event. */
function happens<Type extends StripeEventType>(type: Type, object: StripeObject<Type>, at: number): string {
  count += 1
  return stripe.happened(stripeEvent(type, object, { id: `evt_missed_${count}`, at }))
}
const paid = (linkId: string, at: number) =>
  happens(
    'payment_intent.succeeded',
    { id: `pi_${linkId}`, amount_received: 10_500, payment_method: null, metadata: { link_id: linkId } },
    at,
  )
const linkOf = (id: string) => linkOfTenant(service, tenant, id)
/** Notices are listed oldest first: once this one has counted, all before it have. */
const untilPaid = (id: string) => until(async () => (await linkOf(id)).status === 'paid')
const deliver = async (body: string, at: number) => {
  const answer = await fetch(`${service.paymentsUrl}/processor/notices`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Stripe-Signature': stripeSignature(body, at) },
    body,
  })
  return answer.status
}

test('nobody is asked before the first live sale', () => expect(listingsAtFirst).toBe(0))

test('what happened while the service was away is learned at the next start, and counts once', async () => {
  const at = Date.parse((await operate(service, 'GET', '/clock')).now)
  const policy = await operate(service, 'POST', '/policies', {
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_number: 'WC-MISSED-1',
    status: 'in_progress',
    effective_date: '2020-01-01',
    expiration_date: '2099-12-31',
    class_codes: ['2812'],
    states: ['OR'],
    locations: [],
    rates: [],
    fees: [],
    payroll_frequency: 'WEEKLY',
    billing_type: 'DIRECT_BILLING',
  })
  const sold = await createLink(service, tenant, { policy_id: policy.policy_id })
  const [next, last] = [await createLink(service, tenant), await createLink(service, tenant)]
  const charged = await subscribe(service, tenant, { payment_method_id: stripe.method('pm_missed') })
  await operate(service, 'POST', '/drain')
  const first = await deliver(
    stripe.happened(stripeEvent('invoice.paid', invoice(charged._id, 'in_1', at), { id: 'evt_known', at })),
    at,
  )
  expect(first).toBe(200)
  const [, second] = (await subscriptionOf(service, tenant, charged._id)).scheduled_payments
  await service.end()

  const body = paid(sold._id, at + 1_000)
  const due = Date.parse(second.due_at)
  happens('invoice.payment_failed', invoice(charged._id, 'in_2', due), at + 2_000)
  happens('invoice.paid', invoice(charged._id, 'in_2', due), at + 3_000)
  // of somebody else's who uses the same account
  happens('payment_intent.succeeded', { id: 'pi_other', metadata: {} }, at + 4_000)
  happens('payment_intent.succeeded', { id: 'pi_other', metadata: { link_id: '0'.repeat(24) } }, at + 5_000)
  paid(next._id, at + 6_000)
  await start()
  await untilPaid(next._id)

  expect(await linkOf(sold._id)).toMatchObject({ status: 'paid', payment: { amount_cents: 10_500 } })
  const read = await operate(service, 'GET', `/policies/${policy.policy_id}`)
  expect(read.status).toBe('active')
  const { scheduled_payments } = await subscriptionOf(service, tenant, charged._id)
  expect(scheduled_payments[1]).toMatchObject({ status: 'paid', failed_attempts: 1 })
  const all = async () => [
    (await raised(service, tenant.tenantId, 'payment.completed')).length,
    ...(await told(service, tenant.tenantId)).map(([type]) => type),
  ]
  const installments = ['installment.paid', 'installment.failed', 'installment.paid']
  expect(await all()).toEqual([2, 'subscription.created', ...installments])

  // it comes all the same, and everything is listed once more
  expect(await deliver(body, at)).toBe(200)
  await operate(service, 'POST', '/drain')
  const before = await ofPayments()
  await service.end()
  paid(last._id, at + 7_000)
  await start()
  await untilPaid(last._id)
  expect(await all()).toEqual([3, 'subscription.created', ...installments])
  const others = ({ stream }: { readonly stream: string }) => !stream.endsWith(last._id)
  expect((await ofPayments()).filter(others)).toEqual(before.filter(others))
  expect(await operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}`)).toEqual([])
})

test('so is what became of checkouts, and of bank debits by the card processor', async () => {
  await enableCheckout(service, tenant)
  const sell = () => SoldSession.sell(service, tenant)
  const sessions = [await sell(), await sell(), await sell(), await sell()] as const
  const [byCard, byBank, declined, lapsed] = sessions
  const secrets = await Promise.all(sessions.map((one) => one.secret()))
  const at = Date.parse((await operate(service, 'GET', '/clock')).now)
  await service.end()
  const { atCheckout } = stripe
  stripe.keep(atCheckout.payByCard(secrets[0]!), at + 10_000)
  stripe.keep(atCheckout.payByBank(secrets[1]!), at + 11_000)
  stripe.keep(atCheckout.decline(secrets[2]!), at + 12_000)
  stripe.keep(atCheckout.lapse(secrets[3]!), at + 13_000)
  await start()
  // notices are listed oldest first: once the last one has counted, all before it have
  await until(async () =>
    (await allEvents(service, 'PaymentSessionCheckoutClosed')).some(
      ({ stream }) => stream === `paymentSession-${lapsed.id}`,
    ),
  )
  const found = (one: SoldSession) => new SoldSession(service, tenant, { id: one.id, url: null })
  const story = async (one: SoldSession) => {
    const session = found(one)
    return [await session.status(), ...(await session.told()).map(([type]) => type)]
  }
  expect(await Promise.all(sessions.map(story))).toEqual([
    ...[['paid', 'payment.completed'], ['scheduled'], ['pending', 'payment.failed'], ['pending']],
  ])
  await service.end()
  stripe.keep(atCheckout.settle(secrets[1]!, 'succeeded'), at + 20_000)
  stripe.keep(atCheckout.payByCard(secrets[2]!), at + 21_000)
  await start()
  await until(async () => (await found(declined).status()) === 'paid')
  expect(await Promise.all([byCard, byBank, declined].map(story))).toEqual([
    ...[
      ['paid', 'payment.completed'],
      ['paid', 'payment.completed'],
    ],
    ['paid', 'payment.failed', 'payment.completed'],
  ])
})

/** Where and what all events about links, subscriptions and policies are. */
async function ofPayments() {
  const events = await allEvents(service)
  return events
    .filter(({ stream }) => /^(paymentLink|subscription|policy)-/.test(stream))
    .map(({ stream, type }) => ({ stream, type }))
}

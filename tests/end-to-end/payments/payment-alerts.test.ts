import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serviceTime } from '../../support/core.ts'
import { partner } from '../../support/payments.ts'
import { operate, type SeededTenant } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import { subscriptionInvoice as invoiceOf } from '../../support/stripe-events.ts'
import { StripeStandIn } from '../../support/stripe-stand-in.ts'
import {
  advance,
  createLink,
  type Json,
  subscribeAtStripe,
  subscriptionOf,
  tenantWithCustomer,
  told,
} from '../../support/subscriptions.ts'

let stripe: StripeStandIn
let service: RunningService

beforeAll(async () => {
  stripe = await StripeStandIn.start()
  service = await stripe.startService()
})
afterAll(() => stripe?.stop())

const now = () => serviceTime(service)
const drain = () => operate(service, 'POST', '/drain')

/** Kind and subject of the alerts of a tenant, newest first. */
async function alertsOf({ tenantId }: SeededTenant): Promise<unknown[]> {
  await drain()
  const alerts = await operate(service, 'GET', `/alerts?tenant_id=${tenantId}`)
  return alerts.map(({ kind, about }: Json) => [kind, about])
}

const deleted = (subscriptionId: string) =>
  stripe.notify('customer.subscription.deleted', {
    status: 'canceled',
    metadata: { subscription_id: subscriptionId },
  })

/** @returns the id of a subscription whose first payment came. */
const active = async (tenant: SeededTenant): Promise<string> =>
  (await subscribeAtStripe(service, stripe, tenant))._id

const types = async ({ tenantId }: SeededTenant) => (await told(service, tenantId)).map(([type]) => type)

test('money that a subscription did not owe is kept, and the operator is told', async () => {
  const tenant = await tenantWithCustomer(service)
  const id = await active(tenant)
  await stripe.notify('invoice.paid', invoiceOf(id, `in_first_${id}`, await now()))
  expect(await alertsOf(tenant)).toEqual([])
  for (const _again of [1, 2])
    await stripe.notify('invoice.paid', invoiceOf(id, `in_more_${id}`, await now()))
  expect(await alertsOf(tenant)).toEqual([
    ['subscription_paid_again', { subscription_id: id, processor_payment_id: `in_more_${id}` }],
  ])
  expect(await types(tenant)).toEqual(['subscription.created', 'installment.paid'])
})

test('what is paid otherwise than agreed counts, and the operator is told', async () => {
  const tenant = await tenantWithCustomer(service)
  const [less, over] = [await active(tenant), await active(tenant)]
  const due = async (id: string) =>
    Date.parse((await subscriptionOf(service, tenant, id)).scheduled_payments[1].due_at)
  await stripe.notify('invoice.paid', invoiceOf(less, 'in_less', await due(less), 4_900))
  const dueOver = await due(over)
  await partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${over}`)
  await stripe.notify('invoice.paid', invoiceOf(over, 'in_over', dueOver), (await now()) + 60_000)
  expect(await alertsOf(tenant)).toEqual(
    [
      [over, 'in_over'],
      [less, 'in_less'],
    ].map(([subscription_id, processor_payment_id]) => [
      ...['subscription_payment_differs', { subscription_id, processor_payment_id }],
    ]),
  )
  expect((await types(tenant)).filter((type) => type === 'installment.paid')).toHaveLength(4)
})

describe('a cancellation', () => {
  const end = (tenant: SeededTenant, id: string) =>
    partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${id}`)

  test('that the processor refuses is off: what ends the subscription later is no wish of the partner', async () => {
    const tenant = await tenantWithCustomer(service)
    const id = await active(tenant)
    const { processor_subscription_id: theirs } = await subscriptionOf(service, tenant, id)
    const atStripe = stripe.subscriptions.get(theirs)!
    stripe.subscriptions.delete(theirs)
    expect((await end(tenant, id)).status).toBe(409)
    stripe.subscriptions.set(theirs, atStripe)
    await advance(service, { seconds: 86_400 })
    const { status, scheduled_payments } = await subscriptionOf(service, tenant, id)
    expect(status).toBe('active')
    const due = Date.parse(scheduled_payments[1].due_at)
    await advance(service, { to: due })
    await stripe.notify('invoice.payment_failed', invoiceOf(id, `in_second_${id}`, due))
    await deleted(id)
    expect(await subscriptionOf(service, tenant, id)).toMatchObject({ cancellation_reason: 'payment_failed' })
    expect(await types(tenant)).toEqual(['subscription.created', 'installment.paid', 'installment.failed'])
  })

  test('whose answer is lost is finished after a while', async () => {
    const tenant = await tenantWithCustomer(service)
    const id = await active(tenant)
    stripe.fail('lost', { times: 3, path: /subscriptions\/sub/ })
    expect((await end(tenant, id)).status).toBe(502)
    stripe.fail('lost', { times: 0 })
    await advance(service, { seconds: 15 * 60 })
    expect(await subscriptionOf(service, tenant, id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'requested',
    })
    expect(await types(tenant)).toEqual([
      ...['subscription.created', 'installment.paid', 'subscription.cancelled'],
    ])
  })
})

const linkOf = async (tenant: SeededTenant, id: string): Promise<Json> =>
  (await partner(service, tenant.clientHeaders, 'GET', `/payment-links/${id}`)).body.data

/** Has Stripe tell that a link was paid. */
function paid(
  linkId: string,
  amount_received: number,
  payment_method: string | null = null,
): Promise<string> {
  const id = `pi_${linkId}`
  const metadata = { link_id: linkId }
  return stripe.notify('payment_intent.succeeded', { id, metadata, amount_received, payment_method })
}

describe('a notice of a payment', () => {
  test('of another amount than the link asks for counts, and the operator is told', async () => {
    const tenant = await tenantWithCustomer(service)
    const { _id } = await createLink(service, tenant)
    await paid(_id, 9_000)
    expect(await linkOf(tenant, _id)).toMatchObject({ status: 'paid', payment: { amount_cents: 9_000 } })
    expect(await alertsOf(tenant)).toEqual([
      ['payment_link_amount_differs', { payment_link_id: _id, processor_payment_id: `pi_${_id}` }],
    ])
  })

  test('of a link of the sandbox is believed by nobody', async () => {
    const tenant = await tenantWithCustomer(service, { environment: 'sandbox' })
    const { _id } = await createLink(service, tenant)
    await paid(_id, 10_500)
    expect((await linkOf(tenant, _id)).status).toBe('created')
  })
})

describe('a plan whose down payment is paid', () => {
  const terms = { payment_type: 'DIRECT_BILLING', total_installments: 3, down_payment_months: 1 }
  const newPlan = async (tenant: SeededTenant): Promise<string> =>
    (await createLink(service, tenant, { ...terms, premium_cents: 60_000 }))._id
  const subscriptionsOf = async (tenant: SeededTenant) =>
    (await partner(service, tenant.clientHeaders, 'GET', '/subscriptions')).body.data
  const about = (tenant: SeededTenant, payment_link_id: string) => ({
    payment_link_id,
    policy_id: tenant.policyId,
  })

  test('and that the processor refuses is told to the operator', async () => {
    const tenant = await tenantWithCustomer(service)
    const id = await newPlan(tenant)
    await paid(id, 20_000, 'pm_unknown')
    expect(await alertsOf(tenant)).toEqual([['plan_not_started', about(tenant, id)]])
    expect(await subscriptionsOf(tenant)).toEqual([])
  })

  describe('ends with its policy', () => {
    /** A plan that is charged at Stripe. @returns the subscription as it is shown, and as Stripe has it. */
    const startedPlan = async (tenant: SeededTenant) => {
      const id = await newPlan(tenant)
      await paid(id, 20_000, stripe.method(`pm_plan_${id}`))
      await drain()
      const plan = (await subscriptionsOf(tenant)).find((one: Json) => one.payment_link_id === id)
      return { plan, atStripe: () => stripe.subscriptions.get(plan.processor_subscription_id)! }
    }
    const cancelPolicy = async (tenant: SeededTenant) => {
      await operate(service, 'POST', `/policies/${tenant.policyId}/cancel`, { reason: 'non-payment' })
      await drain()
    }
    const read = async (tenant: SeededTenant, id: string) => {
      const { status, cancellation_reason, scheduled_payments } = await subscriptionOf(service, tenant, id)
      return [status, cancellation_reason, ...scheduled_payments.map((one: Json) => one.status)]
    }

    test('at the processor, too; what a partner subscribed to goes on', async () => {
      const tenant = await tenantWithCustomer(service)
      const own = await active(tenant)
      const { plan, atStripe } = await startedPlan(tenant)
      await stripe.notify(
        'invoice.paid',
        invoiceOf(plan._id, 'in_plan', Date.parse(plan.scheduled_payments[0].due_at), 20_000),
      )
      await cancelPolicy(tenant)
      expect(await read(tenant, plan._id)).toEqual(['canceled', 'policy_cancelled', 'paid', 'cancelled'])
      expect(atStripe().status).toBe('canceled')
      await deleted(plan._id)
      expect(await alertsOf(tenant)).toEqual([['plan_cancelled', { subscription_id: plan._id }]])
      expect((await types(tenant)).filter((type) => type === 'subscription.cancelled')).toHaveLength(1)
      expect((await subscriptionOf(service, tenant, own)).status).toBe('active')
      expect((await subscriptionOf(service, tenant, own)).cancellation_reason).toBeNull()
    })

    // the one before it ends with its policy
    test('though it was cancelled while the processor began to charge it', { tags: 'long' }, async () => {
      const tenant = await tenantWithCustomer(service)
      stripe.meanwhile = async (method, path) => {
        if (method !== 'POST' || path !== '/v1/subscriptions') return
        stripe.meanwhile = null
        await operate(service, 'POST', `/policies/${tenant.policyId}/cancel`, {})
      }
      const { plan, atStripe } = await startedPlan(tenant)
      expect(await read(tenant, plan._id)).toEqual([
        ...['canceled', 'policy_cancelled', 'cancelled', 'cancelled'],
      ])
      expect(atStripe().status).toBe('canceled')
    })

    test('unless the processor refuses: the operator is told, and ends it there', async () => {
      const tenant = await tenantWithCustomer(service)
      const { plan, atStripe } = await startedPlan(tenant)
      stripe.subscriptions.delete(atStripe().id)
      await cancelPolicy(tenant)
      const heldUp = ['subscription_held_up', { subscription_id: plan._id, work: 'finish-cancellation' }]
      expect(await alertsOf(tenant)).toEqual([heldUp])
      const shown = await subscriptionOf(service, tenant, plan._id)
      expect(shown).toMatchObject({ status: 'active', cancellation_reason: null })
      await deleted(plan._id)
      expect((await read(tenant, plan._id)).slice(0, 2)).toEqual(['canceled', 'policy_cancelled'])
      expect(await alertsOf(tenant)).toEqual([['plan_cancelled', { subscription_id: plan._id }], heldUp])
      expect((await types(tenant)).filter((type) => type === 'subscription.cancelled')).toHaveLength(1)
      const { failed } = await operate(service, 'GET', '/work')
      expect(failed.filter(({ key }: Json) => key === plan._id)).toEqual([])
    })

    // the first one ends with its policy
    test('while the processor has not answered about another of its plans', { tags: 'long' }, async () => {
      const tenant = await tenantWithCustomer(service)
      const [first, second] = [await startedPlan(tenant), await startedPlan(tenant)]
      const asked: string[] = []
      let secondAsked = () => {}
      const untilSecond = new Promise<void>((resolve) => {
        secondAsked = resolve
      })
      stripe.meanwhile = async (method, path) => {
        const id = path.split('/').at(-1)!
        if (method !== 'DELETE') return
        asked.push(id)
        if (id === second.atStripe().id) secondAsked()
        else await untilSecond
      }
      await cancelPolicy(tenant)
      stripe.meanwhile = null
      expect(asked.sort()).toEqual([first.atStripe().id, second.atStripe().id].sort())
      for (const { plan } of [first, second])
        expect((await read(tenant, plan._id)).slice(0, 2)).toEqual(['canceled', 'policy_cancelled'])
    })
  })

  test('when its policy is cancelled charges nothing, and the operator is told', async () => {
    const tenant = await tenantWithCustomer(service)
    const id = await newPlan(tenant)
    await operate(service, 'POST', `/policies/${tenant.policyId}/cancel`, {})
    await paid(id, 20_000, stripe.method('pm_of_cancelled'))
    expect(await alertsOf(tenant)).toContainEqual(['plan_not_started', about(tenant, id)])
    expect(await subscriptionsOf(tenant)).toEqual([])
  })
})

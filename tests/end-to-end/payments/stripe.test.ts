import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allEvents, serviceTime } from '../../support/core.ts'
import { partner, raised } from '../../support/payments.ts'
import { untilRefused } from '../../support/rate-limits.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import {
  subscriptionInvoice as invoiceOf,
  STRIPE_KEYS,
  stripeSignature,
} from '../../support/stripe-events.ts'
import { StripeStandIn } from '../../support/stripe-stand-in.ts'
import {
  advance,
  createLink,
  type Json,
  subscribe,
  subscribeAtStripe,
  subscriptionBody,
  subscriptionOf,
  tenantWithCustomer,
  told,
} from '../../support/subscriptions.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  stripe = await StripeStandIn.start()
  // of addresses without a credential it is another one, which no test but one comes near
  service = await stripe.startService({ RATE_LIMIT_RPS: '1000' })
  tenant = await tenantWithCustomer(service)
})
afterAll(() => stripe?.stop())

const now = () => serviceTime(service)
const drain = () => operate(service, 'POST', '/drain')
const asks = (method: string, path: string, body?: unknown, of = tenant) =>
  partner(service, of.clientHeaders, method, path, body)

const metadataOf = (subscriptionId: string) => ({ metadata: { subscription_id: subscriptionId } })
const active = (of: SeededTenant) => subscribeAtStripe(service, stripe, of)
/** Without those of the service's own looks for what it missed, which come in real time. */
const events = async () =>
  (await allEvents(service)).filter(({ type }) => type !== 'ProcessorNoticesCaughtUp')
const countEvents = async () => (await events()).length

describe('links', () => {
  test('are made at Stripe, and taken down there', async () => {
    const link = await createLink(service, tenant)
    const atStripe = stripe.links.get(link.processor_payment_link_id)!
    expect(link.processor_url).toBe(atStripe.url)
    expect((await asks('DELETE', `/payment-links/${link._id}`)).body.data.status).toBe('cancelled')
    expect(stripe.links.get(atStripe.id)!.active).toBe(false)
  })

  test('bring one customer for an employer, though several ask at once and Stripe is slow to answer', async () => {
    const other = await seedTenant(service)
    const before = stripe.customers.size
    stripe.fail('lost', { times: 2, path: /customers$/ })
    const body = {
      employer_id: other.employerId,
      carrier_id: other.carrierId,
      policy_id: other.policyId,
      premium_cents: 100,
      payment_type: 'ONE_TIME',
      payment_context: 'premium_due',
      delivery: { email: false },
    }
    const ask = (name: string) =>
      asks('POST', '/payment-links', { ...body, customer: { name, email: 'a@b.example' } }, other)
    expect((await ask('Lost')).status).toBe(502)
    const answers = await Promise.all(['One', 'Two', 'Three', 'Four'].map(ask))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    expect(stripe.customers.size - before).toBe(1)
  })

  test('are paid by a notice, once, and refunded at Stripe', async () => {
    const link = await createLink(service, tenant)
    const paid = {
      id: 'pi_1',
      payment_method: 'pm_of_payer',
      amount_received: 10_500,
      metadata: { link_id: link._id },
    }
    const body = await stripe.notify('payment_intent.succeeded', paid)
    await drain()
    const count = await countEvents()
    expect((await stripe.deliver(body)).status).toBe(200)
    expect(
      (await stripe.deliver(stripe.newEvent('payment_intent.succeeded', paid, await now()))).status,
    ).toBe(200)
    await drain()
    expect(await countEvents()).toBe(count)
    expect((await asks('GET', `/payment-links/${link._id}`)).body.data.status).toBe('paid')
    const refund = await asks('POST', `/payment-links/${link._id}/refund`, { amount_cents: 500 })
    expect(refund.body.data.refunded_cents).toBe(500)
    expect([...stripe.refunds.values()].at(-1)).toMatchObject({ payment_intent: 'pi_1', amount: 500 })
  })

  test('are told with what was collected, though it is not what was asked for', async () => {
    const { _id: id } = await createLink(service, tenant)
    const paid = { id: 'pi_less', payment_method: 'pm_of_payer', amount_received: 10_400 }
    await stripe.notify('payment_intent.succeeded', { ...paid, metadata: { link_id: id } })
    const heard = (await raised(service, tenant.tenantId, 'payment.completed')).at(-1)
    const amounts = { premium_cents: 10_500, amount_cents: 10_400, amount_paid_cents: 10_400 }
    expect(heard).toMatchObject({ payment_link_id: id, ...amounts })
    expect((await asks('GET', `/payment-links/${id}`)).body.data.payment.amount_cents).toBe(10_400)
  })

  test('are made although Stripe fails once for their employer, which it keeps for a day', async () => {
    const other = await seedTenant(service)
    stripe.fail(500, { path: /customers$/ })
    await createLink(service, other)
    stripe.fail(500, { times: 2, path: /payment_links$/ })
    const ask = () => createLink(service, other)
    await expect(ask()).rejects.toThrow()
    await ask()
  })

  describe('are refunded', () => {
    let payments = 0
    /** A link that was paid. @returns its id, and how to refund it and read it. */
    const paidLink = async () => {
      const of = await seedTenant(service)
      const { _id } = await createLink(service, of)
      payments += 1
      await stripe.notify('payment_intent.succeeded', {
        id: `pi_refunds_${payments}`,
        payment_method: 'pm_of_payer',
        amount_received: 10_500,
        metadata: { link_id: _id },
      })
      await drain()
      const refund = (body: unknown, key?: string) =>
        partner(service, of.clientHeaders, 'POST', `/payment-links/${_id}/refund`, body, key)
      const read = async () => (await asks('GET', `/payment-links/${_id}`, undefined, of)).body.data
      const toldOf = async () => (await raised(service, of.tenantId, 'payment.refunded')).length
      const tell = (type: 'refund.updated' | 'refund.failed', status: string, refund_id: string) => {
        const [id] = [...stripe.refunds.values()].flatMap((one) =>
          one.metadata?.refund_id === refund_id ? [one.id] : [],
        )
        return stripe.notify(type, { id: id!, status, metadata: { link_id: _id, refund_id } })
      }
      return { of, id: _id, refund, read, toldOf, tell }
    }
    const made = (id: string) =>
      [...stripe.refunds.values()]
        .filter(({ metadata }) => metadata?.link_id === id)
        .map(({ amount }) => amount)
    const alerts = async (of: SeededTenant) =>
      (await operate(service, 'GET', `/alerts?kind=refund_failed&tenant_id=${of.tenantId}`)) as Json[]

    test('as soon as Stripe is through with it, and no other one meanwhile', async () => {
      const { of, id, refund, read, toldOf, tell } = await paidLink()
      stripe.refundsBegin = 'pending'
      try {
        const first = await refund({ amount_cents: 1_000 })
        expect([first.status, first.body.data]).toMatchObject([
          200,
          { refunded_cents: 0, refunds: [{ amount_cents: 1_000, status: 'pending' }] },
        ])
        const other = await refund({ amount_cents: 2_000 })
        expect([other.status, other.body.message]).toEqual([409, expect.stringContaining('under way')])
        expect((await refund({ amount_cents: 1_000 })).body.data.refunds).toHaveLength(1)
        await advance(service, { seconds: 15 * 60 })
        await drain()
        const [{ refund_id }] = (await read()).refunds
        expect([await toldOf(), made(id), (await read()).refunded_cents]).toEqual([0, [1_000], 0])
        await tell('refund.updated', 'succeeded', refund_id)
        await drain()
        expect(await read()).toMatchObject({ refunded_cents: 1_000, refunds: [{ status: 'succeeded' }] })
        expect([await toldOf(), await alerts(of)]).toEqual([1, []])
        // the notice may be lost: it is asked for
        expect((await refund({ amount_cents: 500 })).status).toBe(200)
        const [, second] = [...stripe.refunds.values()].filter(({ metadata }) => metadata?.link_id === id)
        await advance(service, { seconds: 15 * 60 })
        stripe.settleRefund(second!.id, 'succeeded')
        await advance(service, { seconds: 6 * 3_600 })
        expect((await read()).refunded_cents).toBe(1_500)
      } finally {
        stripe.refundsBegin = 'succeeded'
      }
    })

    test('until it comes back from the bank: an operator is told, and it may be refunded anew', async () => {
      const { of, id, refund, read, tell } = await paidLink()
      const [{ refund_id }] = (await refund({})).body.data.refunds
      await tell('refund.failed', 'failed', refund_id)
      await tell('refund.updated', 'succeeded', refund_id)
      expect(await read()).toMatchObject({ refunded_cents: 0, refunds: [] })
      await drain()
      expect(await alerts(of)).toMatchObject([{ about: { payment_link_id: id, refund_id } }])
      expect((await refund({})).body.data.refunded_cents).toBe(10_500)
      expect(made(id)).toEqual([10_500, 10_500])
    })

    test('not at all where Stripe says so at once', async () => {
      const { refund, read } = await paidLink()
      stripe.refundsBegin = 'failed'
      expect((await refund({})).status).toBe(409)
      stripe.refundsBegin = 'succeeded'
      expect(await read()).toMatchObject({ refunded_cents: 0, refunds: [] })
      expect((await refund({})).body.data.refunded_cents).toBe(10_500)
    })
  })

  test('of a plan are charged monthly from then on, with the payer as their customer', async () => {
    const other = await tenantWithCustomer(service)
    const link = await createLink(service, other, {
      payment_type: 'DIRECT_BILLING',
      premium_cents: 60_000,
      total_installments: 3,
      down_payment_months: 1,
    })
    const { asked } = stripe.links.get(link.processor_payment_link_id)!
    expect(asked).toMatchObject({ customer_creation: 'always' })
    stripe.customers.set('cus_payer', {
      id: 'cus_payer',
      object: 'customer',
      name: 'Payer',
      email: null,
      metadata: {},
      defaultMethod: null,
    })
    const payment_method = stripe.method('pm_kept', 'cus_payer')
    await stripe.notify('payment_intent.succeeded', {
      id: 'pi_2',
      payment_method,
      amount_received: 20_000,
      metadata: { link_id: link._id },
    })
    await drain()
    const [plan] = (await asks('GET', '/subscriptions', undefined, other)).body.data
    expect(plan).toMatchObject({ status: 'active', amount_cents: 20_000, payment_link_id: link._id })
    const [first, second] = plan.scheduled_payments
    expect(stripe.subscriptions.get(plan.processor_subscription_id)).toMatchObject({
      customer: 'cus_payer',
      trial_end: Date.parse(first.due_at) / 1000,
    })

    // the empty invoice of the beginning, then two months
    await stripe.notify('invoice.paid', invoiceOf(plan._id, 'in_0', await now(), 0))
    for (const [id, { due_at }] of [
      ['in_1', first],
      ['in_2', second],
    ] as const) {
      await advance(service, { to: Date.parse(due_at) + 60 * MINUTE })
      await stripe.notify('invoice.paid', invoiceOf(plan._id, id, Date.parse(due_at) + 2_000, 20_000))
    }
    await drain()
    expect(await subscriptionOf(service, other, plan._id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'completed',
      scheduled_payments: [{ status: 'paid' }, { status: 'paid' }],
    })
    expect(stripe.subscriptions.get(plan.processor_subscription_id)!.status).toBe('canceled')
    await stripe.notify('customer.subscription.deleted', { status: 'canceled', ...metadataOf(plan._id) })
    expect((await told(service, other.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      'installment.paid',
      'installment.paid',
    ])
  })
})

describe('subscriptions', () => {
  test('wait for Stripe to take the first payment', async () => {
    const other = await tenantWithCustomer(service)
    const payment_method_id = stripe.method()
    const made = await subscribe(service, other, { payment_method_id })
    expect(made.status).toBe('incomplete')
    const atStripe = () => stripe.subscriptions.get(made.processor_subscription_id)!
    const customer = stripe.customers.get(String(atStripe().customer))!
    expect(customer).toMatchObject({
      defaultMethod: payment_method_id,
      metadata: { employer_id: other.employerId },
    })
    await drain()
    expect(stripe.invoices.get(String(atStripe().latest_invoice))!.status).toBe('paid')
    expect((await subscriptionOf(service, other, made._id)).status).toBe('incomplete')
    await stripe.notify('invoice.paid', invoiceOf(made._id, 'in_1', await now()))
    expect((await subscriptionOf(service, other, made._id)).status).toBe('active')
  })

  test('stay incomplete when the card is declined, and end here and there after 23 hours', async () => {
    stripe.fail('declined', { path: /pay$/ })
    const made = await subscribe(service, tenant, { payment_method_id: stripe.method() })
    await drain()
    await stripe.notify('invoice.payment_failed', invoiceOf(made._id, 'in_1', await now()))
    expect((await subscriptionOf(service, tenant, made._id)).status).toBe('incomplete')
    await advance(service, { seconds: 23 * 3_600 })
    expect(await subscriptionOf(service, tenant, made._id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'never_paid',
    })
    expect(stripe.subscriptions.get(made.processor_subscription_id)!.status).toBe('canceled')
  })

  test('are not made with a method of somebody else', async () => {
    const other = await tenantWithCustomer(service)
    const { _id } = await subscribe(service, other, { payment_method_id: stripe.method() })
    const { payment_method_id } = await subscriptionOf(service, other, _id)
    for (const method of [payment_method_id, 'pm_nobody']) {
      const answer = await asks(
        'POST',
        '/subscriptions',
        subscriptionBody(tenant, { payment_method_id: method }),
      )
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringContaining('payment_method_id'),
      ])
    }
  })

  test('follow what Stripe tells, month by month', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id } = await active(other)
    const [, second] = (await subscriptionOf(service, other, id)).scheduled_payments
    const due = Date.parse(second.due_at)
    await advance(service, { to: due })
    await stripe.notify('invoice.payment_failed', invoiceOf(id, 'in_2', due))
    await stripe.notify('customer.subscription.updated', { status: 'past_due', ...metadataOf(id) })
    expect((await subscriptionOf(service, other, id)).status).toBe('past_due')
    // Stripe tries again when it will; nobody here does
    await advance(service, { to: due + 10 * DAY })
    expect(await subscriptionOf(service, other, id)).toMatchObject({
      status: 'past_due',
      scheduled_payments: [{}, { failed_attempts: 1 }, {}],
    })
    await stripe.notify('invoice.paid', invoiceOf(id, 'in_2', due))
    expect(await subscriptionOf(service, other, id)).toMatchObject({
      status: 'active',
      scheduled_payments: [{ status: 'paid' }, { status: 'paid' }, {}],
    })
    await stripe.notify('invoice.payment_failed', invoiceOf(id, 'in_3', due + 31 * DAY), due + 31 * DAY)
    await stripe.notify(
      'customer.subscription.deleted',
      { status: 'canceled', ...metadataOf(id) },
      due + 38 * DAY,
    )
    expect(await subscriptionOf(service, other, id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'payment_failed',
    })
    expect(
      (await told(service, other.tenantId)).map(([type, body]) => [type, body.installment_number]),
    ).toEqual([
      ['subscription.created', undefined],
      ['installment.paid', 1],
      ['installment.failed', 2],
      ['installment.paid', 2],
      ['installment.failed', 3],
    ])
  })

  test('are cancelled at Stripe; if its answer is lost, its notice tells whose wish it was', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id, processor_subscription_id } = await active(other)
    stripe.fail('lost', { times: 3, path: /subscriptions\/sub/ })
    expect((await asks('DELETE', `/subscriptions/${id}`, undefined, other)).status).toBe(502)
    expect((await subscriptionOf(service, other, id)).status).toBe('active')
    stripe.fail('lost', { times: 0 })
    await stripe.notify('customer.subscription.deleted', { status: 'canceled', ...metadataOf(id) })
    expect(await subscriptionOf(service, other, id)).toMatchObject({ cancellation_reason: 'requested' })
    expect((await asks('DELETE', `/subscriptions/${id}`, undefined, other)).status).toBe(200)
    expect((await told(service, other.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      'installment.paid',
      'subscription.cancelled',
    ])
    expect(processor_subscription_id).toMatch(/^sub_/)
  })
})

describe('notices', () => {
  test('that are forged change nothing', async () => {
    const { _id: id } = await active(tenant)
    await drain()
    const count = await countEvents()
    const at = await now()
    const body = stripe.newEvent(
      'customer.subscription.deleted',
      { status: 'canceled', ...metadataOf(id) },
      at,
    )
    const altered = `${body} `
    for (const [sent, signature] of [
      [body, null],
      [body, ''],
      [body, 't=1,v1=00'],
      [body, `t=${Math.floor(at / 1000)},v1=`],
      [body, 't=1,t=2,v1'],
      [body, stripeSignature(body, at, 'whsec_other')],
      [body, stripeSignature(body, at - 6 * MINUTE)],
      [altered, stripeSignature(body, at)],
      ['', stripeSignature(body, at)],
      ['no json', stripeSignature(body, at)],
    ] as const) {
      expect(await stripe.deliver(sent, signature)).toMatchObject({ status: 401, body: { ok: false } })
    }
    expect(await countEvents()).toBe(count)
    expect((await subscriptionOf(service, tenant, id)).status).toBe('active')
  })

  test.each([
    'null',
    '[]',
    '7',
    'no json',
    '{}',
    '{"id":"evt_1","type":"invoice.paid","created":1767225600}',
    '{"id":"evt_1","type":"invoice.paid","created":1767225600,"data":null}',
    '{"id":"evt_1","type":"refund.updated","created":"today","data":{"object":{}}}',
    '{"id":"evt_1","type":"payment_intent.succeeded","created":1767225600,"data":{"object":{}}}',
    '{"id":"evt_1","type":"payment_intent.succeeded","created":1767225600,"data":{"object":{"id":"pi","metadata":{"link_id":"x"}}}}',
  ])('that are signed and no notices are refused: %s', async (body) => {
    expect(await stripe.deliver(body, stripeSignature(body, await now()))).toMatchObject({
      status: 400,
      body: { ok: false },
    })
  })

  test('of what is unknown are accepted', async () => {
    const body = '{"id":"evt_2","type":"account.updated","created":1767225600,"data":{"object":{}}}'
    expect(await stripe.deliver(body, stripeSignature(body, await now()))).toMatchObject({ status: 200 })
  })

  test('about something of ours that are not understood are kept, and the operator is told', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id } = await active(other)
    const alerts = async () =>
      (await operate(service, 'GET', `/alerts?tenant_id=${other.tenantId}`)) as Json[]
    const failed = async () =>
      (await operate(service, 'GET', '/work')).failed.filter((one: Json) => one.kind === 'carry-out')
    const odd = { id: 'in_2', totals: [{ due: 5_000 }], customer_email: 'pat@payer.example' }
    const body = stripe.newEvent(
      'invoice.paid',
      { ...odd, subscription_details: metadataOf(id) } as object,
      await now(),
    )
    for (const sent of [body, body]) expect((await stripe.deliver(sent)).status).toBe(200)
    await drain()
    const [alert, ...others] = await alerts()
    const about = { about_id: id, type: 'invoice.paid', processor_notice_id: JSON.parse(body).id }
    expect([alert, others]).toMatchObject([
      { kind: 'processor_notice_not_understood', status: 'open', count: 1, about },
      [],
    ])
    const { notice_id } = alert!.about
    expect(await failed()).toMatchObject([{ key: notice_id, error: 'The notice is not understood' }])
    expect(JSON.stringify([await events(), await alerts(), service.output])).not.toContain('payer.example')

    const key = { process_manager: 'processor-notices', kind: 'carry-out', key: notice_id }
    await operate(service, 'POST', '/work/redrive', key)
    await drain()
    expect(await failed()).toHaveLength(1)
    const resolved = await operate(service, 'POST', `/processor-notices/${notice_id}/resolve`, {
      note: 'by hand',
    })
    expect(resolved).toMatchObject({ status: 'resolved', note: 'by hand', about_id: id })
    await drain()
    expect([await failed(), (await alerts())[0]!.status]).toEqual([[], 'acknowledged'])

    // what names nothing that is here is nobody's
    const count = await countEvents()
    const foreign = stripe.newEvent(
      'invoice.paid',
      { ...odd, subscription: 'sub_foreign' } as object,
      await now(),
    )
    expect((await stripe.deliver(foreign)).status).toBe(200)
    expect(await countEvents()).toBe(count)
  })

  test('of one second that do not agree have Stripe asked', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id, processor_subscription_id: atStripe } = await active(other)
    const status = async () => (await subscriptionOf(service, other, id)).status
    const at = (await now()) + MINUTE
    const tell = (status: 'active' | 'past_due') =>
      stripe.newEvent('customer.subscription.updated', { status, ...metadataOf(id) }, at)
    for (const one of [tell('active'), tell('past_due')]) expect((await stripe.deliver(one)).status).toBe(200)
    expect([stripe.subscriptions.get(atStripe)!.status, await status()]).toEqual(['active', 'active'])
    // nothing is decided while it cannot be asked
    stripe.fail('unreachable', { times: 2, path: /subscriptions\/sub/ })
    const again = tell('past_due')
    expect((await stripe.deliver(again)).status).toBe(502)
    expect([(await stripe.deliver(again)).status, await status()]).toEqual([200, 'active'])
  })

  test('that never come are missed after three days, until they do', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id } = await active(other)
    const alerts = async () =>
      (await operate(service, 'GET', `/alerts?tenant_id=${other.tenantId}`)) as Json[]
    const [, second] = (await subscriptionOf(service, other, id)).scheduled_payments
    const due = Date.parse(second.due_at)
    await advance(service, { to: due + 3 * DAY - 1 })
    expect(await alerts()).toEqual([])
    await advance(service, { to: due + 3 * DAY })
    const about = { subscription_id: id, installment_number: '2', due_at: second.due_at }
    expect(await alerts()).toMatchObject([{ kind: 'subscription_charge_overdue', status: 'open', about }])
    await stripe.notify('invoice.paid', invoiceOf(id, 'in_2', due), due)
    await drain()
    expect(await alerts()).toMatchObject([{ status: 'acknowledged' }])
  })

  test('at the same time count once each', async () => {
    const other = await tenantWithCustomer(service)
    const { _id: id } = await active(other)
    const due = (await now()) + 31 * DAY
    const bodies = await Promise.all(
      [1, 2, 3, 4].map(async () =>
        stripe.newEvent('invoice.payment_failed', invoiceOf(id, 'in_2', due), await now()),
      ),
    )
    const answers = await Promise.all([...bodies, ...bodies, ...bodies].map((body) => stripe.deliver(body)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const { scheduled_payments } = await subscriptionOf(service, other, id)
    expect(scheduled_payments[1].failed_attempts).toBe(4)
  })

  // subscription-charges has the 23 hours, the ones before it the same at Stripe
  test('go on after 23 hours where Stripe has the payment and no notice came', {
    tags: 'long',
  }, async () => {
    const other = await tenantWithCustomer(service)
    const made = await subscribe(service, other, { payment_method_id: stripe.method() })
    await drain()
    const expiring = () => advance(service, { seconds: 23 * 3_600 })
    stripe.fail('unreachable', { times: 1_000, path: /subscriptions\/sub/ })
    await expiring()
    expect((await subscriptionOf(service, other, made._id)).status).toBe('incomplete')
    stripe.fail('unreachable', { times: 0 })
    await advance(service, { seconds: 15 * 60 })
    expect((await subscriptionOf(service, other, made._id)).status).toBe('active')
    expect(stripe.subscriptions.get(made.processor_subscription_id)!.status).toBe('active')
  })

  test('about what nobody knows are taken and forgotten', async () => {
    const sandbox = await tenantWithCustomer(service, { environment: 'sandbox' })
    const { _id: simulated } = await subscribe(service, sandbox)
    await drain()
    const before = await events()
    for (const id of ['0'.repeat(24), 'x', '', '../y', simulated]) {
      await stripe.notify('customer.subscription.deleted', { status: 'canceled', ...metadataOf(id) })
      await stripe.notify('invoice.paid', invoiceOf(id, 'in_9', await now()))
      if (id !== simulated) {
        const payment = { id: 'pi_9', amount_received: 100, metadata: { link_id: id } }
        await stripe.notify('payment_intent.succeeded', payment)
        await stripe.notify('payment_intent.payment_failed', { metadata: { link_id: id } })
      }
    }
    await stripe.notify('charge.refunded', { id: 'ch_9' })
    await drain()
    expect((await events()).slice(before.length)).toEqual([])
    expect((await subscriptionOf(service, sandbox, simulated)).status).toBe('active')
  })
})

test('the sandbox never reaches Stripe, and is simulated while Stripe serves the others', async () => {
  const before = stripe.requests.length
  const sandbox = await tenantWithCustomer(service, { environment: 'sandbox' })
  const made = await subscribe(service, sandbox)
  await operate(service, 'POST', `/card-processor/${made._id}/decline`)
  expect((await subscriptionOf(service, sandbox, made._id)).status).toBe('past_due')
  await asks('DELETE', `/subscriptions/${made._id}`, undefined, sandbox)
  await drain()
  expect(stripe.requests.length).toBe(before)

  const { _id: live } = await active(tenant)
  for (const id of [live, (await createLink(service, tenant))._id]) {
    const answer = await send(`${service.opsUrl}/ops/v1/card-processor/${id}/succeed`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}` },
      body: {},
    })
    expect([answer.status, answer.body.error]).toEqual([409, 'Conflict'])
  }
})

test('notices that are forged are limited, malformed ones too', async () => {
  const forged = await untilRefused(() => stripe.deliver('{}', 't=1,v1='))
  expect(new Set(forged.map(({ status }) => status))).toEqual(new Set([401, 429]))
})

test('no key of Stripe stands in a log line', () => {
  const lines = service.output.join('\n')
  for (const secret of Object.values(STRIPE_KEYS)) expect(lines).not.toContain(secret)
})

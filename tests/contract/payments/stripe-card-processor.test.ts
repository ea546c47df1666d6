import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { NewProcessorSubscription } from '../../../application/ports/card-processor.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { StripeCardProcessor } from '../../../infrastructure/providers/card/stripe.ts'
import { shortPauses } from '../../support/short-pauses.ts'
import type { StripeAct } from '../../support/stripe-answers.ts'
import {
  STRIPE_KEYS,
  type StripeEventType,
  type StripeObject,
  stripeEvent,
  stripeSignature,
} from '../../support/stripe-events.ts'
import { type StripeFault, StripeStandIn } from '../../support/stripe-stand-in.ts'
import { describeCardProcessor } from './card-processor.contract.ts'

/** Shorter than a slow answer, and longer than any other takes on a busy machine. */
const SHORT_MS = 1_500

let stripe: StripeStandIn
let processor: StripeCardProcessor

/** The one to ask where the stand-in has a fault: whether it answers at all is known by time alone. */
function facing(fault: StripeFault): StripeCardProcessor {
  if (fault !== 'silent' && fault !== 'slow') return processor
  return new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: stripe.url, timeoutMs: SHORT_MS })
}

beforeEach(async () => {
  stripe = await StripeStandIn.start()
  processor = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: stripe.url })
})
afterEach(() => stripe.stop())
// it is asked again after half a second
beforeEach(shortPauses)

describeCardProcessor('Stripe', () => ({ processor, method: () => stripe.method() }))

const employer = { employerId: 'e'.repeat(24), name: 'Rosen Masonry', email: 'office@rosen.example' }
const SUBSCRIPTION_ID = 'a'.repeat(24)
const LINK_ID = 'b'.repeat(24)
const link = {
  linkId: LINK_ID,
  customerId: 'cus_1',
  amountCents: 10_500,
  description: 'Full payment',
  afterCompletionUrl: null,
  keepsMethod: false,
}
const asked = (customerId: string, changes: Partial<NewProcessorSubscription> = {}) => ({
  subscriptionId: SUBSCRIPTION_ID,
  customerId,
  paymentMethodId: null,
  isPayersMethod: false,
  amountCents: 5_000,
  firstChargeAt: null,
  charges: null,
  ...changes,
})
const REFUND_ID = 'c'.repeat(24)
const refund = {
  linkId: LINK_ID,
  refundId: REFUND_ID,
  isRepeated: false,
  processorPaymentId: 'pi_1',
  amountCents: 100,
  reason: null,
}
const again = { ...refund, isRepeated: true }
const newCustomer = async () => (await processor.createCustomer(employer, 'customer-1')).customerId

describe('what is asked of Stripe', () => {
  test('for a customer: its key does not depend on who asks', async () => {
    const id = await newCustomer()
    expect(stripe.customers.get(id)).toMatchObject({
      name: employer.name,
      email: employer.email,
      metadata: { employer_id: employer.employerId },
    })
    expect(stripe.requests[0]).toMatchObject({
      path: '/v1/customers',
      key: 'customer-1',
      params: { metadata: { employer_id: employer.employerId } },
    })
  })

  test('for a link that is paid once', async () => {
    const { processorLinkId, url } = await processor.createPaymentLink(link, 'link-1')
    expect(url).toBe(`${stripe.url}/pay/${processorLinkId}`)
    expect(stripe.links.get(processorLinkId)!.asked).toEqual({
      line_items: [
        {
          price_data: { currency: 'usd', unit_amount: '10500', product_data: { name: 'Full payment' } },
          quantity: '1',
        },
      ],
      metadata: { link_id: LINK_ID, customer_id: 'cus_1' },
      payment_intent_data: { metadata: { link_id: LINK_ID, customer_id: 'cus_1' } },
      customer_creation: 'if_required',
      restrictions: { completed_sessions: { limit: '1' } },
    })
    await processor.deactivatePaymentLink(processorLinkId, 'end-1')
    expect(stripe.links.get(processorLinkId)!.active).toBe(false)
  })

  test('for a link that keeps the method, and sends the payer back', async () => {
    const after = { afterCompletionUrl: 'https://partner.example/done?x=1', keepsMethod: true }
    const { processorLinkId } = await processor.createPaymentLink({ ...link, ...after }, 'link-1')
    expect(stripe.links.get(processorLinkId)!.asked).toMatchObject({
      payment_intent_data: { setup_future_usage: 'off_session' },
      customer_creation: 'always',
      after_completion: { type: 'redirect', redirect: { url: after.afterCompletionUrl } },
    })
  })

  test('for a refund', async () => {
    const asked = { ...refund, processorPaymentId: 'pi_9', amountCents: 700, reason: 'duplicate' } as const
    const { processorRefundId } = await processor.refund(asked, 'refund-1')
    expect(stripe.refunds.get(processorRefundId)).toMatchObject({ payment_intent: 'pi_9', amount: 700 })
    expect(stripe.sent(/refunds/)[0]!.params).toEqual({
      payment_intent: 'pi_9',
      amount: '700',
      reason: 'duplicate',
      metadata: { link_id: LINK_ID, refund_id: REFUND_ID },
    })
  })

  test('for a subscription: its method becomes the default, and no money moves before it is asked for', async () => {
    const customer = await newCustomer()
    const paymentMethodId = stripe.method()
    const made = await processor.createSubscription(asked(customer, { paymentMethodId }), 's-1')
    expect(made.status).toBe('incomplete')
    expect(stripe.customers.get(customer)!.defaultMethod).toBe(paymentMethodId)
    const { asked: params, latest_invoice } = stripe.subscriptions.get(made.processorSubscriptionId)!
    expect(params).toEqual({
      customer,
      metadata: { subscription_id: SUBSCRIPTION_ID },
      default_payment_method: paymentMethodId,
      payment_behavior: 'default_incomplete',
      proration_behavior: 'none',
      items: [
        {
          price_data: {
            currency: 'usd',
            unit_amount: '5000',
            product: 'compstream_premium',
            recurring: { interval: 'month' },
          },
        },
      ],
    })
    expect(stripe.invoices.get(String(latest_invoice))!.status).toBe('open')
    await processor.chargeFirst(made.processorSubscriptionId, 'first-1')
    expect(stripe.invoices.get(String(latest_invoice))!.status).toBe('paid')
    await processor.cancelSubscription(made.processorSubscriptionId)
    expect(stripe.subscriptions.get(made.processorSubscriptionId)!.status).toBe('canceled')
  })

  test('for a plan: it begins with the first charge and ends a month after the last', async () => {
    const customer = await newCustomer()
    const first = Date.UTC(2027, 0, 31, 17)
    const made = await processor.createSubscription(
      asked(customer, { firstChargeAt: first, charges: 3 }),
      's-1',
    )
    expect(made.status).toBe('active')
    expect(stripe.subscriptions.get(made.processorSubscriptionId)).toMatchObject({
      trial_end: first / 1000,
      cancel_at: Date.UTC(2027, 3, 30, 17) / 1000,
    })
  })

  describe('for a plan that was paid on a day that the next month has not', () => {
    const first = Date.UTC(2027, 1, 28, 17)
    const start = async (now: number, changes: Partial<NewProcessorSubscription> = {}) => {
      stripe.now = () => now
      const at = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: stripe.url, now: stripe.now })
      const { customerId } = await at.createCustomer(employer, 'customer-1')
      const plan = asked(customerId, { firstChargeAt: first, chargeDay: 31, charges: 3, ...changes })
      const { processorSubscriptionId, status } = await at.createSubscription(plan, 's-1')
      expect(status).toBe('active')
      const { asked: params } = stripe.subscriptions.get(processorSubscriptionId)!
      const { trial_end, cancel_at, billing_cycle_anchor_config: config } = params
      return { trial_end, cancel_at, config, key: stripe.requests.at(-1)!.key }
    }
    const configured = (hour: string) => ({ day_of_month: '31', hour, minute: '0', second: '0' })
    const secondsOf = (...parts: Parameters<typeof Date.UTC>) => String(Date.UTC(...parts) / 1000)

    test.each([
      ['at the hour of charges or later', Date.UTC(2027, 0, 31, 17, 11), 17],
      ['on the days after', Date.UTC(2027, 1, 5, 3), 17],
      // else the same day would be the next one
      ['earlier on that day', Date.UTC(2027, 0, 31, 12, 15), 12],
      ['earlier on that day, by the clock of Stripe', Date.UTC(2027, 0, 31, 12, 5), 11],
    ])('%s: the day is kept', async (_name, now, hour) => {
      expect(await start(now)).toMatchObject({
        trial_end: undefined,
        config: configured(String(hour)),
        cancel_at: secondsOf(2027, 4, 28, hour),
      })
    })

    test('as the day begins, or where Stripe will not have it: from the first charge on', async () => {
      const trial = { config: undefined, trial_end: secondsOf(2027, 1, 28, 17) }
      const none = { ...trial, cancel_at: secondsOf(2027, 4, 28, 17), key: 's-1' }
      expect(await start(Date.UTC(2027, 0, 31, 0, 5))).toMatchObject(none)
      stripe.subscriptions.clear()
      stripe.forgetKeys()
      stripe.knowsAnchors = false
      expect(await start(Date.UTC(2027, 1, 5))).toMatchObject(none)
    })

    test('and is started after its first charge was due: on the next day', async () => {
      const late = Date.UTC(2027, 2, 2, 16, 30)
      expect(await start(late)).toMatchObject({
        config: undefined,
        trial_end: secondsOf(2027, 2, 3, 17),
        cancel_at: secondsOf(2027, 5, 3, 17),
      })
    })
  })

  test("charges a payer's method with the customer that it is of", async () => {
    const customer = await newCustomer()
    const { customerId: payer } = await processor.createCustomer(employer, 'customer-2')
    const paymentMethodId = stripe.method('pm_payers', payer)
    const charges = { paymentMethodId, firstChargeAt: Date.UTC(2027, 0, 31, 17), charges: 3 }
    const { processorSubscriptionId } = await processor.createSubscription(
      asked(customer, { ...charges, isPayersMethod: true }),
      's-1',
    )
    expect(stripe.subscriptions.get(processorSubscriptionId)!.customer).toBe(payer)
    const theft = processor.createSubscription(asked(customer, charges), 's-2')
    await expect(theft).rejects.toMatchObject({ name: 'ProviderRefused', about: 'payment_method' })
  })

  test("charges a copy of Stripe's methods for tests", async () => {
    const customer = await newCustomer()
    const paymentMethodId = stripe.method('pm_card_visa')
    await processor.createSubscription(asked(customer, { paymentMethodId }), 's-1')
    const { defaultMethod } = stripe.customers.get(customer)!
    expect(defaultMethod).not.toBe('pm_card_visa')
    expect(stripe.methods.get(defaultMethod!)!.customer).toBe(customer)
    expect(stripe.methods.get('pm_card_visa')!.customer).toBeNull()
  })

  test('names its product once, by whoever comes first', async () => {
    const customer = await newCustomer()
    const another = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: stripe.url })
    const start = (of: StripeCardProcessor, id: string) =>
      of.createSubscription(asked(customer, { subscriptionId: id.repeat(24) }), id)
    await Promise.all(['1', '2'].map((id) => start(processor, id)))
    await start(another, '3')
    expect(stripe.subscriptions.size).toBe(3)
  })

  test('carries a key with every POST', async () => {
    const customer = await newCustomer()
    await processor.createSubscription(asked(customer, { paymentMethodId: stripe.method() }), 's-1')
    expect(stripe.requests.filter(({ method, key }) => method === 'POST' && key === null)).toEqual([])
  })
})

describe('what goes wrong at Stripe', () => {
  test.each<StripeFault>(['unreachable', 'lost', 'silent', 500, 'broken'])(
    'once (%s) is asked again',
    async (fault) => {
      stripe.fail(fault)
      await facing(fault).refund(refund, 'refund-1')
      expect(stripe.refunds.size).toBe(1)
    },
  )

  test.each<StripeFault>(['unreachable', 'lost', 'silent', 500, 'broken', 429])(
    'for longer (%s) is an outage',
    async (fault) => {
      stripe.fail(fault, { times: 10 })
      await expect(facing(fault).refund(refund, 'refund-1')).rejects.toThrow(ProviderUnavailable)
      stripe.fail(fault, { times: 0 })
      await processor.refund(again, 'refund-1')
      expect(stripe.refunds.size).toBe(1)
    },
  )

  const isNoAnswer = async (fault: StripeFault) => {
    stripe.fail(fault)
    await facing(fault).refund(refund, 'refund-1')
    stripe.fail(fault, { times: 10 })
    await expect(facing(fault).refund(again, 'refund-1')).rejects.toThrow(ProviderUnavailable)
    stripe.fail(fault, { times: 0 })
    await processor.refund(again, 'refund-1')
    expect(stripe.refunds.size).toBe(1)
  }
  test.each<StripeFault>([
    'cut',
    ...['<html>', '', '{"id"', 'null', '{}', '[]', '"re_1"'].map((body) => ({ body })),
    ...['{ "object": "other", "id": "re_1" }', '{ "object": "refund", "id": 5 }'].map((body) => ({ body })),
    ...[302, 400, 503].map((status) => ({ status, body: '{ "object": "product", "id": "prod_1" }' })),
  ])('is no answer of its own (%o): once it is asked again, for longer it is an outage', isNoAnswer)
  // it takes as long as Stripe is waited for, as a silent one does
  test('is no answer either, when it goes on without end', { tags: 'long' }, () => isNoAnswer('slow'))

  test('and was kept under a key is passed by, for whatever is called', async () => {
    stripe.fail(500, { times: 2, path: /customers$/ })
    await expect(newCustomer()).rejects.toThrow(ProviderUnavailable)
    const customer = await newCustomer()
    expect(stripe.requests.filter(({ path }) => path === '/v1/customers').map(({ key }) => key)).toEqual([
      ...['customer-1', 'customer-1/1', 'customer-1', 'customer-1/1', 'customer-1/2'],
    ])
    for (const path of [/products$/, /subscriptions$/, /pay$/, /payment_links$/, /payment_links\/plink/]) {
      stripe.fail(500, { path, method: 'POST' })
      const { processorSubscriptionId } = await processor.createSubscription(asked(customer), 's-1')
      await processor.chargeFirst(processorSubscriptionId, 'first-1')
      const { processorLinkId } = await processor.createPaymentLink(link, `link-${path}`)
      await processor.deactivatePaymentLink(processorLinkId, `end-${path}`)
      expect(stripe.links.get(processorLinkId)!.active).toBe(false)
    }
    expect(stripe.subscriptions.size).toBe(1)
  })

  test('hides no money that moved: it is looked up before a further key is taken', async () => {
    const customer = await newCustomer()
    stripe.fail('broken', { path: /subscriptions$/, method: 'POST' })
    const { processorSubscriptionId } = await processor.createSubscription(asked(customer), 's-1')
    stripe.fail('broken', { path: /pay$/ })
    await processor.chargeFirst(processorSubscriptionId, 'first-1')
    expect(stripe.sent(/pay$/)).toHaveLength(1)
    stripe.fail('broken', { path: /refunds$/, method: 'POST' })
    await processor.refund(refund, 'refund-1')
    expect([stripe.subscriptions.size, stripe.refunds.size]).toEqual([1, 1])
  })

  test('a day ago moves no money twice, although Stripe has forgotten the key', async () => {
    const customer = await newCustomer()
    const plan = asked(customer, { firstChargeAt: Date.UTC(2030, 0, 15, 17), charges: 3 })
    stripe.fail('lost', { times: 2, path: /refunds$/, method: 'POST' })
    await expect(processor.refund(refund, 'refund-1')).rejects.toThrow(ProviderUnavailable)
    stripe.fail('lost', { times: 2, path: /subscriptions$/, method: 'POST' })
    await expect(processor.createSubscription(plan, 's-1')).rejects.toThrow(ProviderUnavailable)
    const [[subscription], [refunded]] = [[...stripe.subscriptions.keys()], [...stripe.refunds.keys()]]
    stripe.forgetKeys()
    const made = await processor.createSubscription(plan, 's-1')
    expect(made).toEqual({ processorSubscriptionId: subscription, status: 'active' })
    const answer = await processor.refund(again, 'refund-1')
    expect(answer).toEqual({ processorRefundId: refunded, status: 'succeeded' })
    // nor does a refusal of the repeated call hide it
    stripe.fail('declined', { path: /refunds$/, method: 'POST' })
    expect(await processor.refund(refund, 'refund-2')).toEqual(answer)
    expect([stripe.subscriptions.size, stripe.refunds.size]).toEqual([1, 1])
  })

  test('is a refusal when a refund is refused, and was never made', async () => {
    stripe.fail('declined', { times: 2, path: /refunds$/, method: 'POST' })
    await expect(processor.refund(refund, 'refund-1')).rejects.toThrow(ProviderRefused)
    stripe.forgetKeys()
    await expect(processor.refund(again, 'refund-1')).rejects.toThrow(ProviderRefused)
  })

  test.each(['pending', 'failed'] as const)('with a refund is told: it is %s', async (status) => {
    stripe.refundsBegin = status
    expect(await processor.refund(refund, 'refund-1')).toMatchObject({ status })
    const [id] = stripe.refunds.keys()
    stripe.settleRefund(id!, 'succeeded')
    expect(await processor.refund(again, 'refund-1')).toMatchObject({ status: 'succeeded' })
  })

  test('is an outage when nobody is there, or the key is wrong', async () => {
    const elsewhere = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: 'http://127.0.0.1:9' })
    await expect(elsewhere.refund(refund, 'r')).rejects.toThrow(ProviderUnavailable)
    const stranger = new StripeCardProcessor({ ...STRIPE_KEYS, apiKey: 'sk_other', apiBase: stripe.url })
    await expect(stranger.refund(refund, 'r')).rejects.toThrow(ProviderUnavailable)
  })

  test('is a refusal when the card is declined, without a word of what was sent', async () => {
    const customer = await newCustomer()
    const { processorSubscriptionId } = await processor.createSubscription(asked(customer), 's-1')
    stripe.fail('declined', { path: /pay$/ })
    const paying = processor.chargeFirst(processorSubscriptionId, 'first-1')
    await expect(paying).rejects.toThrow(ProviderRefused)
    await expect(paying).rejects.toThrow('The card processor refused (card_declined)')
    stripe.fail('declined', { path: /attach$/ })
    const attaching = processor.createSubscription(
      asked(customer, { paymentMethodId: stripe.method() }),
      's-2',
    )
    await expect(attaching).rejects.toMatchObject({ about: 'payment_method' })
  })

  test('is a refusal when a key comes with another request', async () => {
    await processor.refund(refund, 'refund-1')
    await expect(processor.refund({ ...refund, amountCents: 200 }, 'refund-1')).rejects.toThrow(
      ProviderRefused,
    )
  })
})

describe('notices of Stripe', () => {
  const AT = Date.UTC(2027, 0, 5, 12)
  const read = (body: string, { at = AT, now = AT, secret = STRIPE_KEYS.webhookSecret as string } = {}) =>
    processor.readNotices({
      body: Buffer.from(body),
      headers: { 'stripe-signature': stripeSignature(body, at, secret) },
      now,
    })
  const event = <Type extends StripeEventType>(type: Type, object: StripeObject<Type>) =>
    stripeEvent(type, object, { id: 'evt_1', at: AT })
  const invoice = (total: number, amount_due = total) => ({
    id: 'in_1',
    total,
    amount_due,
    amount_paid: amount_due,
    created: AT / 1000,
    parent: { subscription_details: { metadata: { subscription_id: SUBSCRIPTION_ID } } },
  })
  const told = { noticeId: 'evt_1', at: AT }
  const charge = {
    subscriptionId: SUBSCRIPTION_ID,
    processorPaymentId: 'in_1',
    amountCents: 5_000,
    dueAt: AT,
  }
  const ofLink = { metadata: { link_id: LINK_ID } }
  const ofRefund = { metadata: { link_id: LINK_ID, refund_id: REFUND_ID } }
  const ofSubscription = { metadata: { subscription_id: SUBSCRIPTION_ID } }
  const payment = { id: 'pi_1', payment_method: 'pm_1', amount_received: 700 }
  const refunded = (type: 'refund.updated' | 'refund.failed', status: string) =>
    event(type, { id: 're_1', status, ...ofRefund })
  const updated = (status: string) => event('customer.subscription.updated', { status, ...ofSubscription })

  const link = { linkId: LINK_ID }
  const paid = {
    about: 'link_paid',
    ...link,
    processorPaymentId: 'pi_1',
    paymentMethodId: 'pm_1',
    amountCents: 700,
  }
  const failed = { about: 'link_failed', ...link, failureMessage: 'Declined.' }
  const refund = { about: 'link_refund', ...link, refundId: REFUND_ID, processorRefundId: 're_1' }
  const charged = { about: 'subscription_paid', ...charge }
  const notCharged = { about: 'subscription_failed', ...charge, failureCode: null }
  const standing = { about: 'subscription_status', subscriptionId: SUBSCRIPTION_ID }

  test.each<readonly [what: string, body: string, notice: object]>([
    ['a link is paid', event('payment_intent.succeeded', { ...payment, ...ofLink }), paid],
    [
      'a payment failed',
      event('payment_intent.payment_failed', { ...ofLink, last_payment_error: { message: 'Declined.' } }),
      failed,
    ],
    ['a refund succeeded', refunded('refund.updated', 'succeeded'), { ...refund, status: 'succeeded' }],
    ['a refund is cancelled', refunded('refund.updated', 'canceled'), { ...refund, status: 'failed' }],
    ['a refund failed', refunded('refund.failed', 'failed'), { ...refund, status: 'failed' }],
    ['a charge is paid', event('invoice.paid', invoice(5_000)), charged],
    ["the customer's balance paid it", event('invoice.paid', invoice(5_000, 0)), charged],
    ['the balance paid a part of it', event('invoice.paid', invoice(5_000, 1_000)), charged],
    ['a charge failed', event('invoice.payment_failed', invoice(5_000)), notCharged],
    ['a plan waits for its first charge', updated('trialing'), { ...standing, status: 'active' }],
    ['a charge is overdue', updated('past_due'), { ...standing, status: 'past_due' }],
    ['charges are given up', updated('unpaid'), { ...standing, status: 'past_due' }],
    ['nothing was ever paid', updated('incomplete_expired'), { ...standing, status: 'canceled' }],
    [
      'a subscription has ended',
      event('customer.subscription.deleted', { status: 'canceled', ...ofSubscription }),
      { ...standing, status: 'canceled' },
    ],
  ])('tell that %s', (_what, body, notice) => {
    expect(read(body)).toEqual([{ ...told, ...notice }])
  })

  test.each([
    ['a payment of others', event('payment_intent.succeeded', { id: 'pi_1', metadata: {} })],
    ['an invoice of nothing', event('invoice.paid', invoice(0))],
    ['an invoice of others', event('invoice.paid', { id: 'in_2', parent: null, total: 5, amount_due: 5 })],
    ['a subscription that pauses', updated('paused')],
    ['what is not asked for', event('charge.refunded', { id: 'ch_1' })],
    ['a refund of others', event('refund.updated', { id: 're_1', status: 'succeeded', metadata: {} })],
    ['a refund under way', refunded('refund.updated', 'pending')],
  ])('tell nothing of ours by %s', (_what, body) => {
    expect(read(body)).toEqual([])
  })

  test('are believed only with a signature over their bytes, made lately', () => {
    const body = event('invoice.paid', invoice(5_000))
    expect(read(body, { secret: 'whsec_other' })).toBeNull()
    expect(read(body, { now: AT + 301_000 })).toBeNull()
    expect(read(body, { now: AT + 299_000 })).toHaveLength(1)
    const headers = { 'stripe-signature': stripeSignature(body, AT) }
    const altered = Buffer.from(body.replace('5000', '5001'))
    expect(processor.readNotices({ body: altered, headers, now: AT })).toBeNull()
    expect(processor.readNotices({ body: Buffer.from(body), headers: {}, now: AT })).toBeNull()
  })
})

describe('notices that were told before', () => {
  const NOW = Date.UTC(2027, 2, 31, 12)
  const DAY = 86_400_000
  const at = (days: number) => NOW - days * DAY
  const happened = (id: string, days: number, linkId = LINK_ID) => {
    const object = { id: `pi_${id}`, metadata: { link_id: linkId } }
    stripe.happened(stripeEvent('payment_intent.succeeded', object, { id, at: at(days) }))
  }
  const listed = async (since: number) => {
    const now = () => NOW
    const late = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: stripe.url, now })
    const parts: { readonly ids: readonly (string | null)[]; readonly until: number }[] = []
    for await (const { notices, until } of late.noticesSince(since)) {
      parts.push({ ids: notices.map(({ noticeId }) => noticeId), until })
    }
    return { ids: parts.flatMap(({ ids }) => ids), until: parts.at(-1)!.until }
  }

  test('are listed oldest first, page by page, as far back as Stripe keeps them', async () => {
    stripe.eventsPage = 2
    happened('evt_forgotten', 30.5)
    for (const [id, days] of [
      ...([
        ['evt_1', 29.5],
        ['evt_2', 2],
        ['evt_3', 1.2],
        ['evt_4', 1.2],
        ['evt_5', 1.1],
      ] as const),
      ...([
        ['evt_6', 0.2],
        ['evt_7', 0.1],
        ['evt_8', 0.05],
      ] as const),
    ]) {
      happened(id, days)
    }
    stripe.happened(stripeEvent('charge.refunded', { id: 'ch_1' }, { id: 'evt_other', at: at(0.01) }))
    const ids = ['evt_1', 'evt_2', 'evt_3', 'evt_4', 'evt_5', 'evt_6', 'evt_7', 'evt_8']
    expect(await listed(0)).toEqual({ ids, until: at(0.05) })
    expect(await listed(at(1.2))).toEqual({ ids: ids.slice(2), until: at(0.05) })
    expect(await listed(at(0.05))).toEqual({ ids: ['evt_8'], until: at(0.05) })
    // one that cannot be read holds up no other
    stripe.happened(stripeEvent('payment_intent.succeeded', {}, { id: 'evt_odd', at: at(0.04) }))
    expect(await listed(at(0.05))).toEqual({ ids: ['evt_8'], until: at(0.04) })
  })

  test('of which there are none are looked for from later on', async () => {
    expect(await listed(0)).toEqual({ ids: [], until: at(1) })
    expect(await listed(at(0.5))).toEqual({ ids: [], until: at(0.5) })
    // the clocks may differ
    expect(await listed(NOW + DAY)).toEqual({ ids: [], until: NOW + DAY })
  })

  test('cannot be listed while Stripe is away', async () => {
    stripe.fail('unreachable', { times: 2, path: /events$/ })
    await expect(listed(at(1))).rejects.toThrow(ProviderUnavailable)
  })
})

describe('a checkout at Stripe', () => {
  const [SESSION, CHECKOUT] = ['d'.repeat(24), 'e'.repeat(24)]
  const ours = { sessionId: SESSION, checkoutId: CHECKOUT }
  const begin = () =>
    processor.openCheckout({ ...ours, amountCents: 10_500, description: 'Policy 2026' }, 'checkout-1')
  const close = (id: string) => processor.closeCheckout(id)
  const told = (acts: readonly StripeAct[]) =>
    acts.flatMap(({ type, object }, index): readonly unknown[] => {
      const body = stripeEvent(type, object as never, { id: `evt_${index}`, at: 5_000 })
      const headers = { 'stripe-signature': stripeSignature(body, 5_000) }
      return [processor.readNotices({ body: Buffer.from(body), headers, now: 5_000 }) ?? 'not signed'].flat()
    })
  const notice = (about: string, more: object = {}) => [
    { noticeId: expect.any(String), at: 5_000, about, ...ours, ...more },
  ]

  test('is embedded, asks for the amount once, and names what it is for', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    expect(stripe.atCheckout.of(clientSecret).id).toBe(processorCheckoutId)
    const metadata = { session_id: SESSION, checkout_id: CHECKOUT }
    expect(stripe.atCheckout.checkouts.get(processorCheckoutId)!.asked).toEqual({
      mode: 'payment',
      ui_mode: 'embedded_page',
      redirect_on_completion: 'never',
      line_items: [
        {
          price_data: { currency: 'usd', unit_amount: '10500', product_data: { name: 'Policy 2026' } },
          quantity: '1',
        },
      ],
      metadata,
      payment_intent_data: { metadata },
    })
  })

  test('is named by the beginning of what it is for, where that is long', async () => {
    // two code units each, the last of them beyond what Stripe takes
    const description = `${'💶'.repeat(250)}x`
    const name = '💶'.repeat(250)
    const checkout = { sessionId: SESSION, checkoutId: CHECKOUT, amountCents: 10_500, description }
    const { processorCheckoutId } = await processor.openCheckout(checkout, 'long-1')
    const { processorLinkId } = await processor.createPaymentLink({ ...link, description }, 'long-2')
    for (const { asked } of [
      stripe.atCheckout.checkouts.get(processorCheckoutId)!,
      stripe.links.get(processorLinkId)!,
    ]) {
      expect(asked.line_items).toMatchObject([{ price_data: { product_data: { name } } }])
    }
  })

  test('that is closed can be paid by nobody', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    await close(processorCheckoutId)
    expect(() => stripe.atCheckout.payByCard(clientSecret)).toThrow('session_not_open')
    expect(await processor.secretOf(processorCheckoutId)).toBeNull()
  })

  test('that is paid by card has one notice, and says so when it is closed', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    expect(told(stripe.atCheckout.decline(clientSecret))).toEqual(
      notice('checkout_failed', { failureMessage: 'Your card was declined.' }),
    )
    expect(await processor.secretOf(processorCheckoutId)).toBe(clientSecret)
    const acts = stripe.atCheckout.payByCard(clientSecret)
    const paid = { processorPaymentId: expect.stringMatching(/^pi_/), amountCents: 10_500 }
    expect(told(acts)).toEqual(notice('checkout_paid', paid))
    expect(await processor.secretOf(processorCheckoutId)).toBeNull()
    expect(await close(processorCheckoutId)).toEqual({ outcome: 'paid', ...paid, at: 0 })
  })

  test('that is paid by bank debit is waited for, and has one notice when it succeeds', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    expect(told(stripe.atCheckout.payByBank(clientSecret))).toEqual(notice('checkout_processing'))
    expect(await close(processorCheckoutId)).toEqual({ outcome: 'processing' })
    const paid = { processorPaymentId: expect.any(String), amountCents: 10_500 }
    expect(told(stripe.atCheckout.settle(clientSecret, 'succeeded'))).toEqual(notice('checkout_paid', paid))
    expect(await close(processorCheckoutId)).toMatchObject({ outcome: 'paid', ...paid })
  })

  test('whose bank debit fails has one notice, and nothing came of it', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    stripe.atCheckout.payByBank(clientSecret)
    expect(told(stripe.atCheckout.settle(clientSecret, 'failed'))).toEqual(
      notice('checkout_failed', { failureMessage: expect.stringContaining('bank account') }),
    )
    expect(await close(processorCheckoutId)).toEqual({ outcome: 'nothing' })
  })

  test('lapses after a day', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    stripe.now = () => 86_400_000
    expect(await processor.secretOf(processorCheckoutId)).toBeNull()
    expect(told(stripe.atCheckout.lapse(clientSecret))).toEqual(notice('checkout_expired'))
    expect(await close(processorCheckoutId)).toEqual({ outcome: 'nothing' })
  })

  test('that is paid while it is closed took the money', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    stripe.meanwhile = async (_method, path) => {
      if (path.endsWith('/expire')) stripe.atCheckout.payByCard(clientSecret)
    }
    expect(await close(processorCheckoutId)).toMatchObject({ outcome: 'paid', amountCents: 10_500 })
  })

  test('that Stripe will not expire at this moment is not closed, and is asked for again', async () => {
    const { processorCheckoutId, clientSecret } = await begin()
    stripe.fail('declined', { path: /expire$/ })
    await expect(close(processorCheckoutId)).rejects.toThrow(ProviderUnavailable)
    expect(stripe.atCheckout.of(clientSecret).status).toBe('open')
    expect(await close(processorCheckoutId)).toEqual({ outcome: 'nothing' })
  })

  test.each<StripeFault>(['unreachable', 'lost', 500, 'broken'])(
    'is closed in the end, whatever goes wrong (%s)',
    async (fault) => {
      const { processorCheckoutId } = await begin()
      stripe.fail(fault, { times: 5, path: /expire$/ })
      await expect(close(processorCheckoutId)).rejects.toThrow(ProviderUnavailable)
      stripe.fail(fault, { times: 0 })
      expect(await close(processorCheckoutId)).toEqual({ outcome: 'nothing' })
    },
  )

  test('that is too small, or that nobody knows, is refused', async () => {
    const small = processor.openCheckout({ ...ours, amountCents: 49, description: null }, 'checkout-2')
    await expect(small).rejects.toMatchObject({ name: 'ProviderRefused', about: 'amount' })
    await expect(close('cs_test_nobody')).rejects.toThrow(ProviderRefused)
  })
})

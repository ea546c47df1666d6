import { Stripe } from 'stripe'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type {
  CardProcessor,
  ClosedCheckout,
  ListedNotices,
  NewCheckout,
  NewCustomer,
  NewProcessorLink,
  NewProcessorSubscription,
  NewRefund,
  ProcessorNotice,
  UnreadNotice,
} from '../../../application/ports/card-processor.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { stripeHttp } from './stripe-answers.ts'
import { fixedDay, type StripeCalendar, seconds, trialUntilFirst } from './stripe-calendar.ts'
import { onceUnder } from './stripe-calls.ts'
import { refusalOf } from './stripe-errors.ts'
import { NOTICE_TYPES, readNotice, refundStatusOf, statusOf } from './stripe-notices.ts'

/** The version of Stripe's API that is spoken here; notices may be of others. */
export const STRIPE_API_VERSION = '2026-10-28.endive'

const TIMEOUT_MS = 10_000
const DAY_MS = 86_400_000
/** How long Stripe keeps events. */
const EVENTS_KEPT_MS = 30 * DAY_MS
/** Every call carries a key, or has the same effect again. */
const RETRIES = 1

/** Characters that Stripe takes as the name of a product. */
const LONGEST_NAME = 250
/** What prices of subscriptions belong to, by an id of our own, so that there is one. */
const PRODUCT = { id: 'compstream_premium', name: 'Insurance premium' } as const

/** Signs of a subscription that no longer charges. */
const ENDED: readonly string[] = ['canceled', 'incomplete_expired']

export interface StripeSettings {
  readonly apiKey: string
  /** `https://api.stripe.com`, or what stands in for it. */
  readonly apiBase: string
  readonly webhookSecret: string
  readonly publishableKey: string | null
  /** Real milliseconds that Stripe may take for a whole answer, default 10000. */
  readonly timeoutMs?: number
  /** Stripe's clock in epoch milliseconds, default that of the machine. */
  readonly now?: () => number
}

/** Stripe, by its own SDK. What is created there names what it is for by its metadata, which notices bring back. */
export class StripeCardProcessor implements CardProcessor {
  readonly kind = 'stripe'
  readonly publishableKey: string
  readonly #stripe: Stripe
  readonly #webhookSecret: string
  readonly #now: () => number
  #product: Promise<string> | null = null

  constructor({
    apiKey,
    apiBase,
    webhookSecret,
    publishableKey,
    timeoutMs = technicalDeadline(TIMEOUT_MS),
    now = Date.now,
  }: StripeSettings) {
    const { protocol, hostname, port } = new URL(apiBase)
    this.#webhookSecret = webhookSecret
    this.publishableKey = publishableKey ?? ''
    this.#now = now
    this.#stripe = new Stripe(apiKey, {
      apiVersion: STRIPE_API_VERSION,
      protocol: protocol === 'http:' ? 'http' : 'https',
      host: hostname,
      ...(port === '' ? {} : { port }),
      timeout: timeoutMs,
      maxNetworkRetries: RETRIES,
      telemetry: false,
      httpClient: stripeHttp(),
    })
  }

  /** The call under the key is the same in concurrent requests; name and email, which may differ, come after it. */
  createCustomer({ employerId, name, email }: NewCustomer, key: string) {
    return answered(async () => {
      const { customers } = this.#stripe
      const metadata = { employer_id: employerId }
      const { id } = await onceUnder(key, (options) => customers.create({ metadata }, options))
      await customers.update(id, { name, email })
      return { customerId: id }
    })
  }

  createPaymentLink(link: NewProcessorLink, key: string) {
    return answered(async () => {
      const { amountCents, description, afterCompletionUrl, keepsMethod } = link
      const metadata = { link_id: link.linkId, customer_id: link.customerId }
      const price_data = {
        currency: 'usd',
        unit_amount: amountCents,
        product_data: { name: productName(description) },
      }
      const asked: Stripe.PaymentLinkCreateParams = {
        line_items: [{ price_data, quantity: 1 }],
        metadata,
        // what notices of the payment bring back
        payment_intent_data: {
          metadata,
          ...(keepsMethod ? { setup_future_usage: 'off_session' as const } : {}),
        },
        // the page cannot be opened for an existing customer: a payer that leaves a method for later gets a new one
        customer_creation: keepsMethod ? 'always' : 'if_required',
        restrictions: { completed_sessions: { limit: 1 } },
        ...(afterCompletionUrl === null
          ? {}
          : { after_completion: { type: 'redirect', redirect: { url: afterCompletionUrl } } }),
      }
      const { paymentLinks } = this.#stripe
      const { id, url } = await onceUnder(key, (options) => paymentLinks.create(asked, options))
      return { processorLinkId: id, url }
    })
  }

  deactivatePaymentLink(processorLinkId: string, key: string) {
    return answered(async () => {
      const { paymentLinks } = this.#stripe
      await onceUnder(key, (options) => paymentLinks.update(processorLinkId, { active: false }, options))
    })
  }

  openCheckout(checkout: NewCheckout, key: string) {
    return answered(async () => {
      const { amountCents, description } = checkout
      const metadata = { session_id: checkout.sessionId, checkout_id: checkout.checkoutId }
      const price_data = {
        currency: 'usd',
        unit_amount: amountCents,
        product_data: { name: productName(description ?? PRODUCT.name) },
      }
      const asked: Stripe.Checkout.SessionCreateParams = {
        mode: 'payment',
        ui_mode: 'embedded_page',
        redirect_on_completion: 'never',
        line_items: [{ price_data, quantity: 1 }],
        metadata,
        // what notices of the payment bring back
        payment_intent_data: { metadata },
      }
      const { sessions } = this.#stripe.checkout
      const { id, client_secret } = await onceUnder(key, (options) => sessions.create(asked, options))
      return { processorCheckoutId: id, clientSecret: client_secret! }
    })
  }

  secretOf(processorCheckoutId: string) {
    return answered(async () => {
      const { status, client_secret } = await this.#stripe.checkout.sessions.retrieve(processorCheckoutId)
      return status === 'open' ? client_secret : null
    })
  }

  /** Without a key of its own: an attempt that is refused must not be the answer to all others for a day. */
  closeCheckout(processorCheckoutId: string) {
    return answered(async () => {
      const { sessions } = this.#stripe.checkout
      const now = () => sessions.retrieve(processorCheckoutId, { expand: ['payment_intent.latest_charge'] })
      let checkout = await now()
      if (checkout.status === 'open') {
        // one that is paid meanwhile cannot expire any more
        await sessions.expire(processorCheckoutId).catch((error) => {
          if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error
        })
        checkout = await now()
      }
      return closedAs(checkout)
    })
  }

  refund(refund: NewRefund, key: string) {
    return answered(async () => {
      const { linkId, refundId, processorPaymentId: payment_intent, amountCents, reason } = refund
      const { refunds } = this.#stripe
      const metadata = { link_id: linkId, refund_id: refundId }
      const asked = { payment_intent, amount: amountCents, metadata, ...(reason === null ? {} : { reason }) }
      const find = () =>
        first(refunds.list({ payment_intent, limit: 100 }), (one) => one.metadata?.refund_id === refundId)
      // Stripe forgets keys after a day
      const made = refund.isRepeated ? await find() : null
      const { id, status } = made ?? (await onceUnder(key, (options) => refunds.create(asked, options), find))
      return { processorRefundId: id, status: refundStatusOf(status) ?? 'pending' }
    })
  }

  createSubscription(asked: NewProcessorSubscription, key: string) {
    return answered(async () => {
      const { subscriptionId, amountCents, firstChargeAt, chargeDay, charges } = asked
      const { customer, method } = await this.#chargeable(asked, key)
      const { subscriptions } = this.#stripe
      const find = () =>
        first(
          subscriptions.list({ customer, status: 'all', limit: 100 }),
          ({ metadata }) => metadata.subscription_id === subscriptionId,
        )
      // a repetition may come after Stripe forgot the key, which is after a day
      const made = await find()
      if (made) return startedAs(made)
      const price_data = {
        currency: 'usd',
        unit_amount: amountCents,
        product: await this.#productId(),
        recurring: { interval: 'month' as const },
      }
      const wanted: Stripe.SubscriptionCreateParams = {
        customer,
        items: [{ price_data }],
        metadata: { subscription_id: subscriptionId },
        // the first invoice waits for `chargeFirst`, and lapses without it
        payment_behavior: 'default_incomplete',
        proration_behavior: 'none',
        ...(method === null ? {} : { default_payment_method: method }),
      }
      const create = ({ name, params }: StripeCalendar) =>
        onceUnder(`${key}${name}`, (options) => subscriptions.create({ ...wanted, ...params }, options), find)
      if (firstChargeAt === null) return startedAs(await create({ name: '', params: {} }))
      const now = this.#now()
      const trial = trialUntilFirst({ firstChargeAt, chargeDay, charges }, now)
      const fixed = fixedDay({ firstChargeAt, chargeDay, charges }, now)
      if (fixed === null) return startedAs(await create(trial))
      try {
        return startedAs(await create(fixed))
      } catch (error) {
        // better on a day that is somewhat off than never
        if (!isAboutAnchor(error)) throw error
        return startedAs(await create(trial))
      }
    })
  }

  chargeFirst(processorSubscriptionId: string, key: string) {
    return answered(async () => {
      const { subscriptions, invoices } = this.#stripe
      const invoice = idOf((await subscriptions.retrieve(processorSubscriptionId)).latest_invoice)
      if (invoice === null) return
      const find = async () => {
        const now = await invoices.retrieve(invoice)
        return now.status === 'paid' ? now : null
      }
      await onceUnder(key, (options) => invoices.pay(invoice, {}, options), find)
    })
  }

  readSubscription(processorSubscriptionId: string) {
    return answered(async () => {
      const { status, metadata } = await this.#stripe.subscriptions.retrieve(processorSubscriptionId)
      return { subscriptionId: metadata.subscription_id ?? null, status: statusOf(status) }
    })
  }

  cancelSubscription(processorSubscriptionId: string) {
    return answered(async () => {
      const { subscriptions } = this.#stripe
      const { status } = await subscriptions.retrieve(processorSubscriptionId)
      if (!ENDED.includes(status)) await subscriptions.cancel(processorSubscriptionId)
    })
  }

  readNotices({ body, headers, now }: Parameters<CardProcessor['readNotices']>[0]) {
    const signature = headers['stripe-signature']
    if (typeof signature !== 'string') return null
    try {
      const { signature: signed, DEFAULT_TOLERANCE: within } = this.#stripe.webhooks
      signed!.verifyHeader(body, signature, this.#webhookSecret, within, undefined, now)
    } catch {
      // a malformed header fails otherwise than a wrong signature does, and proves as little
      return null
    }
    try {
      const notice = this.readNotice(body.toString('utf8'))
      return notice === null ? [] : [notice]
    } catch {
      return 'unreadable'
    }
  }

  readNotice(body: string) {
    return readNotice(JSON.parse(body))
  }

  /** A day at a time. Stripe lists events of the last 30 days, those of a day newest first. */
  async *noticesSince(since: number): AsyncGenerator<ListedNotices> {
    const now = this.#now()
    for (let from = Math.max(since, now - EVENTS_KEPT_MS); ; from += DAY_MS) {
      const isLast = from + DAY_MS >= now
      const created = { gte: seconds(from), ...(isLast ? {} : { lt: seconds(from + DAY_MS) }) }
      const notices: (ProcessorNotice | UnreadNotice)[] = []
      let newest = from
      await answered(async () => {
        const asked = { created, types: [...NOTICE_TYPES], limit: 100 }
        for await (const event of this.#stripe.events.list(asked)) {
          newest = Math.max(newest, event.created * 1000)
          const notice = listed(event)
          if (notice) notices.push(notice)
        }
      })
      // by Stripe's clock, which ours may be ahead of
      yield { notices: notices.reverse(), until: isLast ? newest : from + DAY_MS }
      if (isLast) return
    }
  }

  /** The customer that is charged, and the method that is made its default. */
  async #chargeable(
    { customerId, paymentMethodId, isPayersMethod }: NewProcessorSubscription,
    key: string,
  ): Promise<{ readonly customer: string; readonly method: string | null }> {
    if (paymentMethodId === null) return { customer: customerId, method: null }
    const { paymentMethods, customers } = this.#stripe
    try {
      const owner = idOf((await paymentMethods.retrieve(paymentMethodId)).customer)
      if (owner !== null && owner !== customerId && !isPayersMethod) throw ofAnother()
      const customer = owner ?? customerId
      const attached =
        owner === null &&
        (await onceUnder(`${key}-attach`, (options) =>
          paymentMethods.attach(paymentMethodId, { customer }, options),
        ))
      // those for tests are copied as they are attached
      const method = attached ? attached.id : paymentMethodId
      const invoice_settings = { default_payment_method: method }
      await onceUnder(`${key}-default`, (options) =>
        customers.update(customer, { invoice_settings }, options),
      )
      return { customer, method }
    } catch (error) {
      throw refusalOf(error, 'payment_method')
    }
  }

  /** The product, made by the first call that needs it. */
  async #productId(): Promise<string> {
    const { products } = this.#stripe
    const creating = () => onceUnder(`product-${PRODUCT.id}`, (options) => products.create(PRODUCT, options))
    this.#product ??= creating().then(
      ({ id }) => id,
      (error) => {
        if (error instanceof Stripe.errors.StripeError && error.code === 'resource_already_exists') {
          return PRODUCT.id
        }
        this.#product = null
        throw error
      },
    )
    return this.#product
  }
}

/** What Stripe answers. @throws ProviderUnavailable, ProviderRefused. */
async function answered<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call()
  } catch (error) {
    throw refusalOf(error)
  }
}

/** What an event of a list tells; one that names nothing of ours and cannot be read holds up no other. */
function listed(event: Stripe.Event): ProcessorNotice | UnreadNotice | null {
  try {
    return readNotice(event)
  } catch {
    return null
  }
}

/** The first one of a list that matches, null when there is none. */
async function first<One>(all: AsyncIterable<One>, matches: (one: One) => boolean): Promise<One | null> {
  for await (const one of all) if (matches(one)) return one
  return null
}

function startedAs({ id, status }: Pick<Stripe.Subscription, 'id' | 'status'>) {
  return { processorSubscriptionId: id, status: statusOf(status) ?? ('incomplete' as const) }
}

/** What came of a checkout that is not open any more. @throws ProviderUnavailable: it still is. */
function closedAs({ status, payment_intent }: Stripe.Checkout.Session): ClosedCheckout {
  if (status === 'open') throw new ProviderUnavailable('The card processor is carrying out a payment')
  const payment = typeof payment_intent === 'string' ? null : payment_intent
  switch (payment?.status) {
    case 'succeeded': {
      const { id, amount_received, created, latest_charge } = payment
      const at = typeof latest_charge === 'string' ? created : (latest_charge?.created ?? created)
      return { outcome: 'paid', processorPaymentId: id, amountCents: amount_received, at: at * 1000 }
    }
    case 'processing':
      return { outcome: 'processing' }
    // the account that is debited is still to be verified
    case 'requires_action':
      return { outcome: status === 'complete' ? 'processing' : 'nothing' }
    default:
      return { outcome: 'nothing' }
  }
}

/** The beginning of what something is for, as long as Stripe takes it. */
function productName(description: string): string {
  return Array.from(description).slice(0, LONGEST_NAME).join('')
}

function ofAnother(): ProviderRefused {
  return new ProviderRefused('The payment method is of another customer', 'payment_method')
}

function idOf(reference: string | { readonly id: string } | null): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

/** Stripe will not have the day that charges were to fall on. */
function isAboutAnchor(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    error.param?.startsWith('billing_cycle_anchor') === true
  )
}

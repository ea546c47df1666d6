import { Stripe } from 'stripe'
import type {
  CardProcessor,
  NewCustomer,
  NewProcessorLink,
  NewProcessorSubscription,
  NewRefund,
  ProcessorNotice,
} from '../../../application/ports/card-processor.ts'
import { ProviderRefused } from '../../../application/ports/provider.ts'
import { monthsAfter } from '../../../domain/kernel/calendar.ts'
import { refusalOf } from './stripe-errors.ts'
import { noticeOf, statusOf } from './stripe-notices.ts'

/** The version of Stripe's API that is spoken here; the endpoint for notices must be of the same. */
export const STRIPE_API_VERSION = '2026-10-28.endive'

const TIMEOUT_MS = 10_000
/** Every call carries a key, or has the same effect again. */
const RETRIES = 1

/** What prices of subscriptions belong to, by an id of our own, so that there is one. */
const PRODUCT = { id: 'compstream_premium', name: 'Insurance premium' } as const

/** Signs of a subscription that no longer charges. */
const ENDED: readonly string[] = ['canceled', 'incomplete_expired']

export interface StripeSettings {
  readonly apiKey: string
  /** `https://api.stripe.com`, or what stands in for it. */
  readonly apiBase: string
  readonly webhookSecret: string
  /** Real milliseconds that Stripe may take for an answer, default 10000. */
  readonly timeoutMs?: number
}

/** Stripe, by its own SDK. What is created there names what it is for by its metadata, which notices bring back. */
export class StripeCardProcessor implements CardProcessor {
  readonly kind = 'stripe'
  readonly #stripe: Stripe
  readonly #webhookSecret: string
  #product: Promise<string> | null = null

  constructor({ apiKey, apiBase, webhookSecret, timeoutMs = TIMEOUT_MS }: StripeSettings) {
    const { protocol, hostname, port } = new URL(apiBase)
    this.#webhookSecret = webhookSecret
    this.#stripe = new Stripe(apiKey, {
      apiVersion: STRIPE_API_VERSION,
      ...{ protocol: protocol === 'http:' ? 'http' : 'https', host: hostname },
      ...(port === '' ? {} : { port }),
      ...{ timeout: timeoutMs, maxNetworkRetries: RETRIES, telemetry: false },
    })
  }

  /** The call under the key is the same for everybody who asks at once; name and e-mail, which may differ, come after it. */
  createCustomer({ employerId, name, email }: NewCustomer, key: string) {
    return answered(async () => {
      const { customers } = this.#stripe
      const { id } = await customers.create(
        { metadata: { employer_id: employerId } },
        { idempotencyKey: key },
      )
      await customers.update(id, { name, email })
      return { customerId: id }
    })
  }

  createPaymentLink(link: NewProcessorLink, key: string) {
    return answered(async () => {
      const { amountCents, description, afterCompletionUrl, keepsMethod } = link
      const metadata = { link_id: link.linkId, customer_id: link.customerId }
      const price_data = {
        ...{ currency: 'usd', unit_amount: amountCents },
        product_data: { name: description },
      }
      const { id, url } = await this.#stripe.paymentLinks.create(
        {
          line_items: [{ price_data, quantity: 1 }],
          metadata,
          // what notices of the payment bring back
          payment_intent_data: {
            metadata,
            ...(keepsMethod ? { setup_future_usage: 'off_session' as const } : {}),
          },
          // the page cannot be opened for a customer that is there: who leaves a method for later gets one of its own
          customer_creation: keepsMethod ? 'always' : 'if_required',
          restrictions: { completed_sessions: { limit: 1 } },
          ...(afterCompletionUrl === null
            ? {}
            : { after_completion: { type: 'redirect' as const, redirect: { url: afterCompletionUrl } } }),
        },
        { idempotencyKey: key },
      )
      return { processorLinkId: id, url }
    })
  }

  deactivatePaymentLink(processorLinkId: string, key: string) {
    return answered(async () => {
      await this.#stripe.paymentLinks.update(processorLinkId, { active: false }, { idempotencyKey: key })
    })
  }

  refund({ processorPaymentId, amountCents, reason }: NewRefund, key: string) {
    return answered(async () => {
      const { id } = await this.#stripe.refunds.create(
        { payment_intent: processorPaymentId, amount: amountCents, ...(reason === null ? {} : { reason }) },
        { idempotencyKey: key },
      )
      return { processorRefundId: id }
    })
  }

  createSubscription(asked: NewProcessorSubscription, key: string) {
    return answered(async () => {
      const { subscriptionId, amountCents, firstChargeAt, charges } = asked
      const { customer, method } = await this.#chargeable(asked, key)
      const price_data = {
        ...{ currency: 'usd', unit_amount: amountCents, product: await this.#productId() },
        recurring: { interval: 'month' as const },
      }
      const { id, status } = await this.#stripe.subscriptions.create(
        {
          customer,
          items: [{ price_data }],
          metadata: { subscription_id: subscriptionId },
          // the first invoice waits for `chargeFirst`, and lapses without it
          payment_behavior: 'default_incomplete',
          proration_behavior: 'none',
          ...(method === null ? {} : { default_payment_method: method }),
          ...(firstChargeAt === null ? {} : { trial_end: seconds(firstChargeAt) }),
          // on the end of a month that it counts, so that the last one is charged in full
          ...(charges === null || firstChargeAt === null
            ? {}
            : { cancel_at: seconds(monthsAfter(firstChargeAt, charges)) }),
        },
        { idempotencyKey: key },
      )
      return { processorSubscriptionId: id, status: statusOf(status) ?? 'incomplete' }
    })
  }

  chargeFirst(processorSubscriptionId: string, key: string) {
    return answered(async () => {
      const { latest_invoice } = await this.#stripe.subscriptions.retrieve(processorSubscriptionId)
      const invoice = idOf(latest_invoice)
      if (invoice !== null) await this.#stripe.invoices.pay(invoice, {}, { idempotencyKey: key })
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
    let event: Stripe.Event
    try {
      event = this.#stripe.webhooks.constructEvent(
        body,
        signature,
        this.#webhookSecret,
        undefined,
        undefined,
        now,
      )
    } catch {
      return null
    }
    const notice: ProcessorNotice | null = noticeOf(event)
    return notice === null ? [] : [notice]
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
        (await paymentMethods.attach(paymentMethodId, { customer }, { idempotencyKey: `${key}-attach` }))
      // those for tests are copied as they are attached
      const method = attached ? attached.id : paymentMethodId
      const invoice_settings = { default_payment_method: method }
      await customers.update(customer, { invoice_settings }, { idempotencyKey: `${key}-default` })
      return { customer, method }
    } catch (error) {
      throw refusalOf(error, 'payment_method')
    }
  }

  /** The product, made by whoever needs it first. */
  async #productId(): Promise<string> {
    this.#product ??= this.#stripe.products.create(PRODUCT, { idempotencyKey: `product-${PRODUCT.id}` }).then(
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

function ofAnother(): ProviderRefused {
  return new ProviderRefused('The payment method is of another customer', 'payment_method')
}

function idOf(reference: string | { readonly id: string } | null): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

function seconds(epochMs: number): number {
  return Math.floor(epochMs / 1000)
}

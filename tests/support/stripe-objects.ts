import type { Stripe } from 'stripe'
import {
  type Answer,
  found,
  listed,
  missing,
  type Names,
  newId,
  ok,
  only,
  type Params,
  Refusal,
  refuseLongNames,
} from './stripe-answers.ts'
import { StripeCheckouts } from './stripe-checkouts.ts'

/**
 * What Stripe keeps and does, as far as this service uses it. Names of parameters and shapes of answers are held to the
 * types of Stripe's own SDK; a parameter that is not named here is refused, as Stripe refuses those it does not know.
 */

const CUSTOMER: Names<Stripe.CustomerCreateParams & Stripe.CustomerUpdateParams> = [
  ...(['name', 'email', 'metadata', 'invoice_settings'] as const),
]
const PRODUCT: Names<Stripe.ProductCreateParams> = ['id', 'name']
const LINK: Names<Stripe.PaymentLinkCreateParams> = [
  ...(['line_items', 'metadata', 'payment_intent_data', 'customer_creation'] as const),
  ...(['restrictions', 'after_completion'] as const),
]
const LINK_CHANGE: Names<Stripe.PaymentLinkUpdateParams> = ['active']
const ATTACH: Names<Stripe.PaymentMethodAttachParams> = ['customer']
const REFUND: Names<Stripe.RefundCreateParams> = ['payment_intent', 'amount', 'reason', 'metadata']
const REFUNDS: Names<Stripe.RefundListParams> = ['payment_intent', 'limit']
const EVENTS: Names<Stripe.EventListParams> = ['created', 'types', 'limit', 'starting_after']
const SUBSCRIPTIONS: Names<Stripe.SubscriptionListParams> = ['customer', 'status', 'limit']
const SUBSCRIPTION: Names<Stripe.SubscriptionCreateParams> = [
  ...(['customer', 'items', 'metadata', 'payment_behavior', 'proration_behavior'] as const),
  ...(['default_payment_method', 'trial_end', 'billing_cycle_anchor_config', 'cancel_at'] as const),
]

type Customer = Pick<Stripe.Customer, 'id' | 'object' | 'name' | 'email' | 'metadata'>
type Link = Pick<Stripe.PaymentLink, 'id' | 'object' | 'url' | 'active' | 'metadata'>
type Method = Pick<Stripe.PaymentMethod, 'id' | 'object' | 'customer'>
type Refund = Pick<Stripe.Refund, 'id' | 'object' | 'amount' | 'payment_intent' | 'status' | 'metadata'>
type Invoice = Pick<Stripe.Invoice, 'id' | 'object' | 'status' | 'amount_due'>
type Subscription = Pick<
  Stripe.Subscription,
  'id' | 'object' | 'status' | 'customer' | 'metadata' | 'latest_invoice' | 'trial_end' | 'cancel_at'
>

export abstract class StripeObjects {
  readonly customers = new Map<string, Customer & { defaultMethod: string | null }>()
  readonly links = new Map<string, Link & { readonly asked: Params }>()
  readonly methods = new Map<string, Method>()
  readonly refunds = new Map<string, Refund>()
  readonly subscriptions = new Map<string, Subscription & { readonly asked: Params }>()
  readonly invoices = new Map<string, Invoice & { readonly subscription: string }>()
  readonly #events: { readonly id: string; readonly type: string; readonly created: number }[] = []
  readonly #products = new Set<string>()
  /** Epoch milliseconds. */
  now: () => number = () => 0
  /** Events of a page at the most. */
  eventsPage = 100
  /** Takes the day of the month for charges. */
  knowsAnchors = true
  /** What becomes of refunds as they are asked for. */
  refundsBegin: 'succeeded' | 'pending' | 'failed' = 'succeeded'

  readonly atCheckout = new StripeCheckouts(() => this.now())

  abstract readonly url: string

  /** What becomes of a refund later. */
  settleRefund(id: string, status: 'succeeded' | 'failed'): void {
    this.refunds.set(id, { ...found(this.refunds, id, 'id'), status })
  }

  /** Keeps an event to be listed. @param body of it. @returns the body. */
  happened(body: string): string {
    this.#events.push(JSON.parse(body))
    return body
  }

  /** Makes a payment method, of nobody yet unless said. */
  method(id: string = newId('pm'), customer: string | null = null): string {
    this.methods.set(id, { id, object: 'payment_method', customer })
    return id
  }

  /** What an authorized call does. @throws Refusal */
  carryOut(method: string, path: string, params: Params, isDeclined: boolean): Answer {
    const checkouts = '/v1/checkout/sessions'
    if (path.startsWith(checkouts))
      return this.atCheckout.carryOut(method, path.slice(checkouts.length), params)
    const [, , resource, id, verb] = path.split('/')
    const does = [method, resource, id === undefined ? '' : '{id}', verb ?? ''].filter(Boolean).join(' ')
    const decline = () => new Refusal(402, { type: 'card_error', code: 'card_declined' })
    switch (does) {
      case 'POST customers':
        return ok(this.#createCustomer(only(params, CUSTOMER)))
      case 'POST customers {id}':
        return ok(this.#updateCustomer(id!, only(params, CUSTOMER)))
      case 'POST products':
        return ok(this.#createProduct(only(params, PRODUCT)))
      case 'POST payment_links':
        return ok(this.#createLink(only(params, LINK)))
      case 'POST payment_links {id}': {
        const link = found(this.links, id!, 'payment_link')
        const changed = { ...link, active: only(params, LINK_CHANGE).active === 'true' }
        this.links.set(id!, changed)
        return ok(changed)
      }
      case 'GET payment_methods {id}':
        return ok(found(this.methods, id!, 'payment_method'))
      case 'POST payment_methods {id} attach': {
        if (isDeclined) throw decline()
        found(this.methods, id!, 'payment_method')
        const customer = String(only(params, ATTACH).customer)
        // as the real one: methods for tests are copied
        const attached = this.method(id!.startsWith('pm_card_') ? newId('pm') : id!, customer)
        return ok(this.methods.get(attached))
      }
      case 'POST refunds': {
        const { amount, payment_intent, metadata } = only(params, REFUND)
        if (isDeclined) throw new Refusal(400, { type: 'invalid_request_error', code: 'charge_disputed' })
        const refund: Refund = {
          id: newId('re'),
          object: 'refund',
          amount: Number(amount),
          payment_intent: String(payment_intent),
          status: this.refundsBegin,
          metadata: (metadata ?? {}) as Stripe.Metadata,
        }
        this.refunds.set(refund.id, refund)
        return ok(refund)
      }
      case 'GET refunds': {
        const { payment_intent } = only(params, REFUNDS)
        return listed(this.refunds, (one) => one.payment_intent === payment_intent)
      }
      case 'POST subscriptions':
        return ok(this.#createSubscription(only(params, SUBSCRIPTION)))
      case 'GET subscriptions': {
        const { customer, status } = only(params, SUBSCRIPTIONS)
        // as the real one: those that have ended only when they are asked for
        return listed(
          this.subscriptions,
          (one) => one.customer === customer && (status === 'all' || one.status !== 'canceled'),
        )
      }
      case 'GET subscriptions {id}':
        return ok(found(this.subscriptions, id!, 'id'))
      case 'DELETE subscriptions {id}': {
        const one = found(this.subscriptions, id!, 'id')
        // as the real one: what has ended cannot be ended again
        if (one.status === 'canceled') throw missing('id')
        const canceled = { ...one, status: 'canceled' as const }
        this.subscriptions.set(id!, canceled)
        return ok(canceled)
      }
      case 'GET events':
        return this.#listEvents(only(params, EVENTS))
      case 'GET invoices {id}':
        return ok(found(this.invoices, id!, 'invoice'))
      case 'POST invoices {id} pay': {
        const invoice = found(this.invoices, id!, 'invoice')
        if (invoice.status === 'paid') {
          throw new Refusal(400, { type: 'invalid_request_error', code: 'invoice_already_paid' })
        }
        if (isDeclined) throw decline()
        const paid = { ...invoice, status: 'paid' as const }
        this.invoices.set(id!, paid)
        const one = this.subscriptions.get(invoice.subscription)!
        this.subscriptions.set(one.id, { ...one, status: 'active' })
        return ok(paid)
      }
      default:
        throw new Error(`The stand-in for Stripe does not do ${does}`)
    }
  }

  /** As the real one: those of 30 days, newest first, a page at a time. */
  #listEvents({ created, types, limit, starting_after }: Params): Answer {
    const { gte = 0, lt = Number.MAX_SAFE_INTEGER } = created as Readonly<Record<string, string>>
    const wanted = types as readonly string[]
    if (wanted.length > 20) throw new Refusal(400, { type: 'invalid_request_error', param: 'types' })
    const all = this.#events
      .filter((one) => one.created >= Number(gte) && one.created < Number(lt) && wanted.includes(one.type))
      .reverse()
      .sort((one, other) => other.created - one.created)
    const from = starting_after === undefined ? 0 : all.findIndex(({ id }) => id === starting_after) + 1
    const to = from + Math.min(Number(limit), this.eventsPage)
    return ok({ object: 'list', data: all.slice(from, to), has_more: to < all.length, url: '/v1/events' })
  }

  #createCustomer(params: Params): Customer {
    const customer: Customer = {
      id: newId('cus'),
      object: 'customer',
      name: null,
      email: null,
      metadata: (params.metadata ?? {}) as Stripe.Metadata,
    }
    this.customers.set(customer.id, { ...customer, defaultMethod: null })
    return customer
  }

  #updateCustomer(id: string, { name, email, invoice_settings }: Params): Customer {
    const customer = found(this.customers, id, 'customer')
    const settings = invoice_settings as { default_payment_method?: string } | undefined
    const method = settings?.default_payment_method
    if (method !== undefined && this.methods.get(method)?.customer !== id)
      throw missing('default_payment_method')
    const changed = {
      ...customer,
      name: (name as string | undefined) ?? customer.name ?? null,
      email: (email as string | undefined) ?? customer.email ?? null,
      defaultMethod: method ?? customer.defaultMethod,
    }
    this.customers.set(id, changed)
    return changed
  }

  #createProduct({ id }: Params): Pick<Stripe.Product, 'id' | 'object'> {
    if (this.#products.has(String(id))) {
      throw new Refusal(400, { type: 'invalid_request_error', code: 'resource_already_exists' })
    }
    this.#products.add(String(id))
    return { id: String(id), object: 'product' }
  }

  #createLink(asked: Params): Link {
    refuseLongNames(asked)
    const id = newId('plink')
    const metadata = asked.metadata as Stripe.Metadata
    const link: Link = { id, object: 'payment_link', url: `${this.url}/pay/${id}`, active: true, metadata }
    this.links.set(id, { ...link, asked })
    return link
  }

  #createSubscription(asked: Params): Subscription {
    const { customer, metadata, trial_end, cancel_at, items, default_payment_method: method } = asked
    found(this.customers, String(customer), 'customer')
    if (method !== undefined && this.methods.get(String(method))?.customer !== customer) {
      throw missing('default_payment_method')
    }
    const { product, unit_amount } = (items as [{ price_data: Record<string, string> }])[0].price_data
    if (!this.#products.has(product!)) throw missing('items[0][price_data][product]')
    const id = newId('sub')
    const isTrial = trial_end !== undefined
    const isAnchored = asked.billing_cycle_anchor_config !== undefined
    if (isAnchored && (isTrial || !this.knowsAnchors)) {
      throw new Refusal(400, { type: 'invalid_request_error', param: 'billing_cycle_anchor_config' })
    }
    // as the real one: not before now, nor now
    if (isTrial && Number(trial_end) * 1000 <= this.now()) {
      throw new Refusal(400, { type: 'invalid_request_error', param: 'trial_end' })
    }
    const isLater = isTrial || isAnchored
    const invoice = newId('in')
    this.invoices.set(invoice, {
      id: invoice,
      object: 'invoice',
      status: isLater ? 'paid' : 'open',
      amount_due: isLater ? 0 : Number(unit_amount),
      subscription: id,
    })
    const subscription: Subscription = {
      id,
      object: 'subscription',
      status: isTrial ? 'trialing' : isLater ? 'active' : 'incomplete',
      customer: String(customer),
      metadata: metadata as Stripe.Metadata,
      latest_invoice: invoice,
      trial_end: isTrial ? Number(trial_end) : null,
      cancel_at: cancel_at === undefined ? null : Number(cancel_at),
    }
    this.subscriptions.set(id, { ...subscription, asked })
    return subscription
  }
}

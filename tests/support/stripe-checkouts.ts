import type { Stripe } from 'stripe'
import {
  type Answer,
  found,
  type Names,
  newId,
  ok,
  only,
  type Params,
  Refusal,
  refuseLongNames,
  type StripeAct,
} from './stripe-answers.ts'

const CHECKOUT: Names<Stripe.Checkout.SessionCreateParams> = [
  ...(['mode', 'ui_mode', 'redirect_on_completion', 'line_items', 'metadata'] as const),
  ...(['payment_intent_data', 'expires_at'] as const),
]
const RETRIEVE: Names<Stripe.Checkout.SessionRetrieveParams> = ['expand']

type Checkout = Pick<
  Stripe.Checkout.Session,
  | 'id'
  | 'object'
  | 'amount_total'
  | 'client_secret'
  | 'created'
  | 'expires_at'
  | 'metadata'
  | 'mode'
  | 'payment_status'
  | 'status'
  | 'ui_mode'
> & { readonly payment_intent: string | null }
type Payment = Pick<
  Stripe.PaymentIntent,
  'id' | 'object' | 'amount' | 'amount_received' | 'created' | 'metadata' | 'status'
> & {
  readonly payment_method: string | null
  readonly latest_charge: Pick<Stripe.Charge, 'id' | 'object' | 'created'> | null
  readonly last_payment_error: Pick<Stripe.StripeRawError, 'message' | 'code'> | null
}

const MINUTE = 60
const DAY = 24 * 60 * MINUTE
/** Cents that a checkout in dollars asks for at least. */
const LEAST = 50

/**
 * Checkout sessions of Stripe, as far as this service uses them, and what somebody does who has the client secret of one.
 * A checkout is open for a day, unless it is paid or expired before; only an open one can be expired. The payment begins with
 * the first attempt. A card is charged at once; a bank debit is `processing` for days, of a checkout that is `complete` and
 * `unpaid`.
 */
export class StripeCheckouts {
  readonly checkouts = new Map<string, Checkout & { readonly asked: Params }>()
  readonly payments = new Map<string, Payment>()
  readonly #now: () => number

  /** @param now epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** What an authorized call does, `path` being what follows `/v1/checkout/sessions`. @throws Refusal */
  carryOut(method: string, path: string, params: Params): Answer {
    const [, id, verb] = path.split('/')
    if (method === 'POST' && id === undefined) return ok(this.#create(only(params, CHECKOUT)))
    const checkout = this.#current(id!)
    if (method === 'GET' && verb === undefined) return ok(this.#retrieved(checkout, only(params, RETRIEVE)))
    if (method === 'POST' && verb === 'expire') {
      only(params, [])
      // as the real one: an error for whatever is not open
      if (checkout.status !== 'open') throw notOpen()
      return ok(this.#change(checkout.id, { status: 'expired' }))
    }
    throw new Error(`The stand-in for Stripe does not do ${method} ${path} of checkouts`)
  }

  /** The checkout that a client secret mounts. */
  of(clientSecret: string): Checkout {
    const id = [...this.checkouts.values()].find((one) => one.client_secret === clientSecret)?.id
    if (id === undefined) throw new Error('Nobody has that client secret')
    return this.#current(id)
  }

  /** Somebody pays by card. @throws Refusal where nobody can pay any more. */
  payByCard(clientSecret: string): readonly StripeAct[] {
    const { checkout, payment } = this.#attempt(clientSecret)
    const paid = this.#succeeded(payment, payment.amount)
    const complete = this.#change(checkout.id, { status: 'complete', payment_status: 'paid' })
    return [
      { type: 'payment_intent.succeeded', object: paid },
      { type: 'checkout.session.completed', object: complete },
    ]
  }

  /** A card is declined: the checkout stays open. */
  decline(clientSecret: string): readonly StripeAct[] {
    const { payment } = this.#attempt(clientSecret)
    const failed = this.#failed(payment, { code: 'card_declined', message: 'Your card was declined.' })
    return [{ type: 'payment_intent.payment_failed', object: failed }]
  }

  /** Somebody pays by bank debit, which takes days. */
  payByBank(clientSecret: string): readonly StripeAct[] {
    const { checkout, payment } = this.#attempt(clientSecret)
    const latest_charge = this.#charge()
    this.payments.set(payment.id, { ...payment, status: 'processing', latest_charge })
    const complete = this.#change(checkout.id, { status: 'complete', payment_status: 'unpaid' })
    return [{ type: 'checkout.session.completed', object: complete }]
  }

  /** What becomes of a bank debit days later. */
  settle(clientSecret: string, outcome: 'succeeded' | 'failed'): readonly StripeAct[] {
    const checkout = this.of(clientSecret)
    const payment = found(this.payments, checkout.payment_intent ?? '', 'payment_intent')
    if (outcome === 'succeeded') {
      const paid = this.#succeeded(payment, payment.amount)
      const complete = this.#change(checkout.id, { payment_status: 'paid' })
      return [
        { type: 'payment_intent.succeeded', object: paid },
        { type: 'checkout.session.async_payment_succeeded', object: complete },
      ]
    }
    const message = 'The customer’s bank account could not be located.'
    const failed = this.#failed(payment, { code: 'payment_method_not_available', message })
    return [
      { type: 'payment_intent.payment_failed', object: failed },
      { type: 'checkout.session.async_payment_failed', object: checkout },
    ]
  }

  /** Somebody cancels what is not paid, at Stripe. */
  cancel(clientSecret: string): readonly StripeAct[] {
    const payment = found(this.payments, this.of(clientSecret).payment_intent ?? '', 'payment_intent')
    const cancelled = { ...payment, status: 'canceled' as const }
    this.payments.set(payment.id, cancelled)
    return [{ type: 'payment_intent.canceled', object: cancelled }]
  }

  /** Nobody paid for a day. */
  lapse(clientSecret: string): readonly StripeAct[] {
    const expired = this.#change(this.of(clientSecret).id, { status: 'expired' })
    return [{ type: 'checkout.session.expired', object: expired }]
  }

  #create(asked: Params): Checkout {
    const { mode, ui_mode, redirect_on_completion, line_items, metadata, expires_at } = asked
    const [{ price_data, quantity }] = line_items as [{ price_data: Params; quantity: string }]
    const amount = Number(price_data.unit_amount) * Number(quantity)
    refuseLongNames(asked)
    if (mode !== 'payment' || price_data.currency !== 'usd') throw invalid('mode')
    // as the real one: such a page goes nowhere, or says where
    if (ui_mode !== 'embedded_page' || redirect_on_completion !== 'never') throw invalid('return_url')
    if (amount < LEAST) throw invalid('line_items', 'amount_too_small')
    const created = Math.floor(this.#now() / 1000)
    const expires = expires_at === undefined ? created + DAY : Number(expires_at)
    if (expires < created + 30 * MINUTE || expires > created + DAY) throw invalid('expires_at')
    const id = newId('cs_test')
    const checkout: Checkout = {
      id,
      object: 'checkout.session',
      mode: 'payment',
      ui_mode: 'embedded_page',
      created,
      amount_total: amount,
      client_secret: `${id}_secret_of_it`,
      expires_at: expires,
      metadata: metadata as Stripe.Metadata,
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
    }
    this.checkouts.set(id, { ...checkout, asked })
    return checkout
  }

  #retrieved(checkout: Checkout, { expand = [] }: Params): unknown {
    const payment = this.payments.get(checkout.payment_intent ?? '')
    const wanted = expand as readonly string[]
    if (!payment || !wanted.some((one) => one.startsWith('payment_intent'))) return checkout
    const isWhole = wanted.includes('payment_intent.latest_charge')
    const latest_charge = isWhole ? payment.latest_charge : (payment.latest_charge?.id ?? null)
    return { ...checkout, payment_intent: { ...payment, latest_charge } }
  }

  /** The attempt of somebody who has the secret. */
  #attempt(clientSecret: string): { readonly checkout: Checkout; readonly payment: Payment } {
    const checkout = this.of(clientSecret)
    if (checkout.status !== 'open') throw notOpen()
    const known = this.payments.get(checkout.payment_intent ?? '')
    if (known) return { checkout, payment: known }
    const { payment_intent_data } = this.checkouts.get(checkout.id)!.asked
    const payment: Payment = {
      id: newId('pi'),
      object: 'payment_intent',
      amount: checkout.amount_total!,
      amount_received: 0,
      created: Math.floor(this.#now() / 1000),
      status: 'requires_payment_method',
      metadata: (payment_intent_data as { metadata: Stripe.Metadata }).metadata,
      payment_method: null,
      latest_charge: null,
      last_payment_error: null,
    }
    this.payments.set(payment.id, payment)
    return { checkout: this.#change(checkout.id, { payment_intent: payment.id }), payment }
  }

  #succeeded(payment: Payment, amount_received: number): Payment {
    const latest_charge = payment.latest_charge ?? this.#charge()
    const paid: Payment = { ...payment, amount_received, status: 'succeeded', latest_charge }
    this.payments.set(payment.id, paid)
    return paid
  }

  #failed(payment: Payment, last_payment_error: Payment['last_payment_error']): Payment {
    const failed: Payment = { ...payment, status: 'requires_payment_method', last_payment_error }
    this.payments.set(payment.id, failed)
    return failed
  }

  #charge(): Payment['latest_charge'] {
    return { id: newId('ch'), object: 'charge', created: Math.floor(this.#now() / 1000) }
  }

  /** A checkout as it is now: one that nobody paid for a day has expired. */
  #current(id: string): Checkout {
    const checkout = found(this.checkouts, id, 'session')
    const isOver = checkout.status === 'open' && checkout.expires_at * 1000 <= this.#now()
    return isOver ? this.#change(id, { status: 'expired' }) : checkout
  }

  #change(id: string, change: Partial<Checkout>): Checkout {
    const { asked, ...checkout } = { ...found(this.checkouts, id, 'session'), ...change }
    this.checkouts.set(id, { ...checkout, asked })
    return checkout
  }
}

function invalid(param: string, code?: string): Refusal {
  return new Refusal(400, { type: 'invalid_request_error', param, ...(code && { code }) })
}

function notOpen(): Refusal {
  return new Refusal(400, { type: 'invalid_request_error', code: 'session_not_open' })
}

import { Stripe } from 'stripe'
import { z } from 'zod'
import { traceHeaders } from '../../../application/ports/tracing.ts'

/**
 * The answers of Stripe, as far as they are used. What is none of them is taken for a connection that failed, as is what
 * comes too late, in part or from elsewhere: it is asked again under the same key, and is an outage then.
 */

const id = () => z.string().min(1)
const metadata = () => z.record(z.string(), z.string())
const reference = () => z.union([id(), z.object({ id: id() })]).nullish()
const payment = z.object({
  id: id(),
  status: z.string(),
  amount_received: z.int(),
  created: z.int(),
  latest_charge: z.union([id(), z.object({ created: z.int() })]).nullish(),
})

const OBJECTS = [
  z.object({ object: z.literal('customer'), id: id() }),
  z.object({ object: z.literal('product'), id: id() }),
  z.object({ object: z.literal('payment_link'), id: id(), url: z.string() }),
  z.object({ object: z.literal('payment_method'), id: id(), customer: reference() }),
  z.object({ object: z.literal('invoice'), id: id(), status: z.string().nullable() }),
  z.object({
    object: z.literal('refund'),
    id: id(),
    status: z.string().nullable(),
    metadata: metadata().nullable(),
  }),
  z.object({
    object: z.literal('subscription'),
    id: id(),
    status: z.string(),
    metadata: metadata(),
    latest_invoice: reference(),
  }),
  z
    .object({
      object: z.literal('checkout.session'),
      id: id(),
      status: z.string().nullable(),
      client_secret: z.string().nullish(),
      payment_intent: z.union([id(), payment]).nullish(),
    })
    .refine(({ status, client_secret }) => status !== 'open' || client_secret),
  z.object({
    object: z.literal('event'),
    id: id(),
    type: z.string(),
    created: z.int(),
    data: z.object({ object: z.looseObject({}) }),
  }),
] as const
const LIST = z.object({
  object: z.literal('list'),
  has_more: z.boolean(),
  data: z.array(z.discriminatedUnion('object', OBJECTS)),
})
const SUCCESS = z.discriminatedUnion('object', [...OBJECTS, LIST])
const FAILURE = z.object({ error: z.object({ type: z.string() }) })

/** What carries calls to Stripe: each has its time for the whole answer, which is one of Stripe's. */
export function stripeHttp(): Stripe.HttpClient {
  return Stripe.createFetchHttpClient(async (url, options) => {
    // the key goes nowhere else
    const headers = new Headers(options?.headers)
    for (const [name, value] of Object.entries(traceHeaders())) headers.set(name, value)
    const response = await fetch(url, { ...options, headers, redirect: 'error' })
    const text = await response.text()
    const kind = response.ok ? SUCCESS : FAILURE
    if (!kind.safeParse(JSON.parse(text)).success) throw new TypeError('No answer of Stripe')
    return new Response(text, { status: response.status, headers: response.headers })
  })
}

import { Stripe } from 'stripe'
import { STRIPE_API_VERSION } from '../../infrastructure/providers/card/stripe.ts'

export const STRIPE_KEYS = {
  apiKey: 'sk_test_stand_in',
  webhookSecret: 'whsec_stand_in',
  publishableKey: 'pk_test_stand_in',
} as const

type Deep<T> = { readonly [Key in keyof T]?: T[Key] extends object | null ? Deep<T[Key]> | null : T[Key] }
export type StripeEventType = Stripe.Event['type']
/** As much of the object of an event as a test is about. */
export type StripeObject<Type extends StripeEventType> = Deep<
  Extract<Stripe.Event, { type: Type }>['data']['object']
>

/** An event of Stripe about an object, as its body. @param at when it happened, epoch milliseconds. */
export function stripeEvent<Type extends StripeEventType>(
  type: Type,
  object: StripeObject<Type>,
  { id, at }: { readonly id: string; readonly at: number },
): string {
  const event: Omit<Stripe.EventBase, 'data' | 'type'> & { readonly type: string; readonly data: unknown } = {
    id,
    object: 'event',
    api_version: STRIPE_API_VERSION,
    created: Math.floor(at / 1000),
    livemode: true,
    pending_webhooks: 1,
    request: null,
    type,
    data: { object },
  }
  return JSON.stringify(event)
}

/** An invoice of a subscription, as events of Stripe tell of it. @param due epoch milliseconds. */
export function subscriptionInvoice(subscriptionId: string, id: string, due: number, amount = 5_000) {
  return {
    id,
    total: amount,
    amount_due: amount,
    amount_paid: amount,
    created: Math.floor(due / 1000),
    parent: { subscription_details: { metadata: { subscription_id: subscriptionId } } },
  }
}

/** The header that Stripe signs a body with. @param at epoch milliseconds. */
export function stripeSignature(
  payload: string,
  at: number,
  secret: string = STRIPE_KEYS.webhookSecret,
): string {
  const timestamp = Math.floor(at / 1000)
  return new Stripe(STRIPE_KEYS.apiKey).webhooks.generateTestHeaderString({ payload, secret, timestamp })
}

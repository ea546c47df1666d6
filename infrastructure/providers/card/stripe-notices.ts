import type { Stripe } from 'stripe'
import { z } from 'zod'
import type {
  CheckoutNotice,
  LinkNotice,
  ProcessorNotice,
  ProcessorRefundStatus,
  ProcessorSubscriptionStatus,
  SubscriptionNotice,
} from '../../../application/ports/card-processor.ts'

/** The events that tell something. */
export const NOTICE_TYPES = [
  ...([
    'payment_intent.succeeded',
    'payment_intent.payment_failed',
    'payment_intent.canceled',
    'refund.updated',
    'refund.failed',
  ] as const),
  ...(['checkout.session.completed', 'checkout.session.expired'] as const),
  ...(['invoice.paid', 'invoice.payment_failed'] as const),
  ...(['customer.subscription.updated', 'customer.subscription.deleted'] as const),
] satisfies readonly Stripe.Event['type'][]

/**
 * {@link noticeOf} an event that anybody may have made who signs as Stripe does.
 * @throws Error for what is no event, or lacks what such an event has.
 */
export function readNotice(event: unknown): ProcessorNotice | null {
  const whole = EVENT.parse(event)
  const notice = noticeOf(whole as unknown as Stripe.Event)
  for (const [name, value] of Object.entries(notice ?? {})) {
    const isRight = NUMBERS.has(name)
      ? Number.isSafeInteger(value)
      : value === null || typeof value === 'string'
    if (!isRight) throw new Error(`The ${whole.type} has no ${name}`)
  }
  return notice
}

const EVENT = z.object({
  id: z.string().min(1),
  type: z.string(),
  created: z.int(),
  data: z.object({ object: z.looseObject({}) }),
})
/** Fields of notices that are no text. */
const NUMBERS: ReadonlySet<string> = new Set(['at', 'dueAt', 'amountCents'])

/** What an event of Stripe tells about links, checkouts and subscriptions of this service, null when it tells nothing of them. */
export function noticeOf(event: Stripe.Event): ProcessorNotice | null {
  const told = toldBy(event)
  return told && { noticeId: event.id, at: event.created * 1000, ...told }
}

function toldBy(event: Stripe.Event): LinkNotice | CheckoutNotice | SubscriptionNotice | null {
  switch (event.type) {
    case 'payment_intent.succeeded': {
      const { id, metadata, payment_method, amount_received } = event.data.object
      const linkId = metadata.link_id
      const checkout = checkoutOf(metadata)
      if (checkout) {
        return { about: 'checkout_paid', ...checkout, processorPaymentId: id, amountCents: amount_received }
      }
      if (linkId === undefined) return null
      return {
        about: 'link_paid',
        linkId,
        processorPaymentId: id,
        amountCents: amount_received,
        paymentMethodId: typeof payment_method === 'string' ? payment_method : (payment_method?.id ?? null),
      }
    }
    case 'payment_intent.payment_failed': {
      const { metadata, last_payment_error } = event.data.object
      const linkId = metadata.link_id
      const checkout = checkoutOf(metadata)
      const failureMessage = last_payment_error?.message ?? 'The payment was declined'
      if (checkout) return { about: 'checkout_failed', ...checkout, failureMessage }
      if (linkId === undefined) return null
      return { about: 'link_failed', linkId, failureMessage }
    }
    case 'payment_intent.canceled': {
      const checkout = checkoutOf(event.data.object.metadata)
      return checkout && { about: 'checkout_payment_cancelled', ...checkout }
    }
    // what is paid at once, its payment tells
    case 'checkout.session.completed': {
      const { metadata, payment_status } = event.data.object
      const checkout = payment_status === 'unpaid' ? checkoutOf(metadata) : null
      return checkout && { about: 'checkout_processing', ...checkout }
    }
    case 'checkout.session.expired': {
      const checkout = checkoutOf(event.data.object.metadata)
      return checkout && { about: 'checkout_expired', ...checkout }
    }
    case 'refund.updated':
    case 'refund.failed': {
      const { id, metadata, status: theirs } = event.data.object
      const [linkId, refundId, status] = [metadata?.link_id, metadata?.refund_id, refundStatusOf(theirs)]
      if (linkId === undefined || refundId === undefined || status === null || status === 'pending')
        return null
      return { about: 'link_refund', linkId, refundId, processorRefundId: id, status }
    }
    case 'invoice.paid':
    case 'invoice.payment_failed': {
      const { id, parent, total, created } = event.data.object
      const subscriptionId = parent?.subscription_details?.metadata?.subscription_id
      // nothing is charged until the first month of a plan is over; what a balance pays has a total all the same
      if (subscriptionId === undefined || total === 0) return null
      const due = { dueAt: created * 1000, amountCents: total }
      const charge = { subscriptionId, processorPaymentId: id, ...due }
      return event.type === 'invoice.paid'
        ? { about: 'subscription_paid', ...charge }
        : { about: 'subscription_failed', ...charge, failureCode: null }
    }
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted': {
      const { metadata, status: theirs } = event.data.object
      const subscriptionId = metadata.subscription_id
      const status = event.type === 'customer.subscription.deleted' ? 'canceled' : statusOf(theirs)
      if (subscriptionId === undefined || status === null) return null
      return { about: 'subscription_status', subscriptionId, status }
    }
    default:
      return null
  }
}

/** The session and the checkout that metadata names; null when it is about something else. */
function checkoutOf(metadata: Stripe.Metadata | null) {
  const [sessionId, checkoutId] = [metadata?.session_id, metadata?.checkout_id]
  return sessionId === undefined || checkoutId === undefined ? null : { sessionId, checkoutId }
}

/** What became of a refund, in our words; null when Stripe has a new word for it. */
export function refundStatusOf(status: string | null): ProcessorRefundStatus | null {
  switch (status) {
    case 'succeeded':
      return 'succeeded'
    case 'pending':
    case 'requires_action':
      return 'pending'
    case 'failed':
    case 'canceled':
      return 'failed'
    default:
      return null
  }
}

/** A status in our words; null when it says nothing of the payments. */
export function statusOf(status: string): ProcessorSubscriptionStatus | null {
  switch (status) {
    case 'incomplete':
    case 'active':
    case 'past_due':
    case 'canceled':
      return status
    // the months before the first charge of a plan
    case 'trialing':
      return 'active'
    case 'unpaid':
      return 'past_due'
    case 'incomplete_expired':
      return 'canceled'
    default:
      return null
  }
}

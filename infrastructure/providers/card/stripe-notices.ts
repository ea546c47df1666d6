import type { Stripe } from 'stripe'
import { z } from 'zod'
import type {
  CheckoutNotice,
  LinkNotice,
  ProcessorNotice,
  ProcessorRefundStatus,
  ProcessorSubscriptionStatus,
  SubscriptionNotice,
  UnreadNotice,
} from '../../../application/ports/card-processor.ts'
import { isId } from '../../../domain/kernel/ids.ts'

/** The events that tell something. */
export const NOTICE_TYPES = [
  ...([
    'payment_intent.succeeded',
    'payment_intent.payment_failed',
    'payment_intent.canceled',
    'refund.updated',
    'refund.failed',
    // the name of `refund.updated` before it had one of its own
    'charge.refund.updated',
  ] as const),
  ...(['checkout.session.completed', 'checkout.session.expired'] as const),
  ...(['invoice.paid', 'invoice.payment_failed'] as const),
  ...(['customer.subscription.updated', 'customer.subscription.deleted'] as const),
] satisfies readonly Stripe.Event['type'][]
type NoticeType = (typeof NOTICE_TYPES)[number]

/**
 * What an event of Stripe tells about links, checkouts and subscriptions of this service, in whichever version of Stripe's
 * API it was written; null when it names nothing that may be ours, or tells nothing of it.
 * @throws Error for what is no event, or lacks what such an event has, and names nothing that may be ours.
 */
export function readNotice(event: unknown): ProcessorNotice | UnreadNotice | null {
  const unread = (why: unknown) => {
    const names = namesIn(event)
    if (names.length === 0) throw why
    return unreadNotice(event, names)
  }
  const whole = EVENT.safeParse(event)
  if (!whole.success) return unread(whole.error)
  const { id, type, created, data } = whole.data
  if (!isNoticeType(type)) return null
  try {
    const told = noticeOf(type, data.object)
    if (told === UNNAMED) return namesIn(data.object).length === 0 ? null : unread(told)
    return told && { noticeId: id, at: created * 1000, ...told }
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    return unread(error)
  }
}

const EVENT = z.object({
  id: z.string().min(1),
  type: z.string(),
  created: z.int(),
  data: z.object({ object: z.looseObject({}) }),
})

function isNoticeType(type: string): type is NoticeType {
  return (NOTICE_TYPES as readonly string[]).includes(type)
}

const metadata = z.record(z.string(), z.string()).nullable()
const reference = z
  .union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
  .nullish()
  .transform((id) => id ?? null)

const NAMED = z.object({ metadata })
const PAID = z.object({ id: z.string(), amount_received: z.int(), payment_method: reference })
const DECLINED = z.object({ last_payment_error: z.object({ message: z.string().nullish() }).nullish() })
const COMPLETED = z.object({ payment_status: z.enum(['paid', 'unpaid', 'no_payment_required']) })
const REFUND_STATUSES = {
  succeeded: 'succeeded',
  pending: 'pending',
  requires_action: 'pending',
  failed: 'failed',
  canceled: 'failed',
} as const satisfies Readonly<Record<string, ProcessorRefundStatus>>
const REFUND = z.object({ id: z.string(), status: z.enum(Object.keys(REFUND_STATUSES)) })
const STATUSES = {
  incomplete: 'incomplete',
  active: 'active',
  past_due: 'past_due',
  canceled: 'canceled',
  // the months before the first charge of a plan
  trialing: 'active',
  unpaid: 'past_due',
  incomplete_expired: 'canceled',
  // it says nothing of the payments
  paused: null,
} as const satisfies Readonly<Record<string, ProcessorSubscriptionStatus | null>>
const STANDING = z.object({ status: z.enum(Object.keys(STATUSES)) })

/** Whose an invoice is: `parent` since API version 2025-03-31, before that the top, and before 2023 its lines alone. */
const ofSubscription = z.object({ metadata: metadata.optional(), subscription: reference })
const INVOICED = z.object({
  parent: z.object({ subscription_details: ofSubscription.nullish() }).nullish(),
  subscription_details: ofSubscription.nullish(),
  subscription: reference,
  lines: z.object({ data: z.array(z.object({ metadata: metadata.optional() })) }).nullish(),
})
/** `created` was called `date` before API version 2019-03-14. */
const CHARGE = z
  .object({ id: z.string(), total: z.int(), created: z.int().optional(), date: z.int().optional() })
  .transform(({ created, date, ...charge }) => ({ ...charge, due: created ?? date }))
  .pipe(z.object({ id: z.string(), total: z.int(), due: z.int() }))

/** Nothing stands where what an object is for is looked for. */
const UNNAMED = Symbol('unnamed')
type Notice = LinkNotice | CheckoutNotice | SubscriptionNotice

/** @throws ZodError for what is about something of ours, or may be, and cannot be read. */
function noticeOf(type: NoticeType, object: object): Notice | typeof UNNAMED | null {
  if (type === 'invoice.paid' || type === 'invoice.payment_failed') {
    const named = subscriptionOf(object)
    if (named === null || named === UNNAMED) return named
    const { id, total, due } = CHARGE.parse(object)
    // nothing is charged until the first month of a plan is over; what a balance pays has a total all the same
    if (total === 0) return null
    const charge = { ...named, processorPaymentId: id, dueAt: due * 1000, amountCents: total }
    return type === 'invoice.paid'
      ? { about: 'subscription_paid', ...charge }
      : { about: 'subscription_failed', ...charge, failureCode: null }
  }
  const names = NAMED.parse(object).metadata ?? {}
  const { link_id: linkId, refund_id: refundId, subscription_id: subscriptionId } = names
  const checkout = checkoutOf(names)
  switch (type) {
    case 'payment_intent.succeeded': {
      if (!checkout && linkId === undefined) return null
      const { id, amount_received: amountCents, payment_method: paymentMethodId } = PAID.parse(object)
      return checkout
        ? { about: 'checkout_paid', ...checkout, processorPaymentId: id, amountCents }
        : { about: 'link_paid', linkId: linkId!, processorPaymentId: id, amountCents, paymentMethodId }
    }
    case 'payment_intent.payment_failed': {
      if (!checkout && linkId === undefined) return null
      const failureMessage = DECLINED.parse(object).last_payment_error?.message ?? 'The payment was declined'
      return checkout
        ? { about: 'checkout_failed', ...checkout, failureMessage }
        : { about: 'link_failed', linkId: linkId!, failureMessage }
    }
    case 'payment_intent.canceled':
      return checkout && { about: 'checkout_payment_cancelled', ...checkout }
    // what is paid at once, its payment tells
    case 'checkout.session.completed': {
      const isUnpaid = checkout && COMPLETED.parse(object).payment_status === 'unpaid'
      return isUnpaid ? { about: 'checkout_processing', ...checkout } : null
    }
    case 'checkout.session.expired':
      return checkout && { about: 'checkout_expired', ...checkout }
    case 'refund.updated':
    case 'refund.failed':
    case 'charge.refund.updated': {
      if (linkId === undefined || refundId === undefined) return null
      const { id, status: theirs } = REFUND.parse(object)
      const status = refundStatusOf(theirs)
      if (status === null || status === 'pending') return null
      return { about: 'link_refund', linkId, refundId, processorRefundId: id, status }
    }
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted': {
      if (subscriptionId === undefined) return null
      if (type === 'customer.subscription.deleted')
        return { about: 'subscription_status', subscriptionId, status: 'canceled' }
      const status = statusOf(STANDING.parse(object).status)
      return status && { about: 'subscription_status', subscriptionId, status }
    }
  }
}

/** The session and the checkout that metadata names; null when it is about something else. */
function checkoutOf({ session_id: sessionId, checkout_id: checkoutId }: Readonly<Record<string, string>>) {
  return sessionId === undefined || checkoutId === undefined ? null : { sessionId, checkoutId }
}

/** The subscription of an invoice, by our id or else by Stripe's; null when it is of another. */
function subscriptionOf(
  object: object,
):
  | { readonly subscriptionId: string }
  | { readonly processorSubscriptionId: string }
  | typeof UNNAMED
  | null {
  const { parent, subscription_details, subscription, lines } = INVOICED.parse(object)
  const places = [parent?.subscription_details, subscription_details]
  const told = places.find((place) => place?.metadata)?.metadata
  const ours = [told, ...(told ? [] : (lines?.data ?? []).map((line) => line.metadata))]
    .map((names) => names?.subscription_id)
    .find((id) => id !== undefined)
  if (ours !== undefined) return { subscriptionId: ours }
  if (told) return null
  const theirs = [...places.map((place) => place?.subscription), subscription].find(Boolean)
  return theirs ? { processorSubscriptionId: theirs } : UNNAMED
}

/** Ids that may be ours in what cannot be read: our own form, and Stripe's of subscriptions. */
function namesIn(value: unknown): readonly string[] {
  const names = new Set<string>()
  const look = (one: unknown): void => {
    if (names.size === MOST_NAMES) return
    if (typeof one === 'string') {
      if (isId(one) || /^sub_\w{1,100}$/.test(one)) names.add(one)
    } else if (typeof one === 'object' && one !== null) Object.values(one).forEach(look)
  }
  look(value)
  return [...names]
}

/** Ids that are looked at, at the most. */
const MOST_NAMES = 20

const SKETCH = z.object({
  id: z
    .string()
    .regex(/^\w{1,100}$/)
    .nullable()
    .catch(null),
  type: z
    .string()
    .regex(/^[a-z_.]{1,100}$/)
    .nullable()
    .catch(null),
  api_version: z
    .string()
    .regex(/^[\w.-]{1,50}$/)
    .nullable()
    .catch(null),
})

/** What an event says all the same. */
function unreadNotice(event: unknown, names: readonly string[]): UnreadNotice {
  const { id, type, api_version: version } = SKETCH.parse(event)
  return { about: 'unread', noticeId: id, type, version, names, body: JSON.stringify(event) }
}

/** What became of a refund, in our words; null when Stripe has a new word for it. */
export function refundStatusOf(status: string | null): ProcessorRefundStatus | null {
  return REFUND_STATUSES[status as keyof typeof REFUND_STATUSES] ?? null
}

/** A status in our words; null when it says nothing of the payments. */
export function statusOf(status: string): ProcessorSubscriptionStatus | null {
  return STATUSES[status as keyof typeof STATUSES] ?? null
}

import { z } from 'zod'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { processorKind, withProcessor } from '../processor/processor-kinds.ts'

/** How a subscription stands, in the documented words. */
export const SUBSCRIPTION_STATUSES = ['active', 'past_due', 'canceled', 'incomplete'] as const
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number]

/** Whose wish it is that it ends: the partner's, or it follows from the cancellation of its policy. */
const cancellationReason = z.enum(['requested', 'policy_cancelled'])
export type CancellationReason = z.output<typeof cancellationReason>

/** A monthly charge of an employer at the card processor. Times are those of the processor. */
export const SubscriptionStarted = eventType(
  'SubscriptionStarted',
  {
    subscription_id: id(),
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    /** Asked for by a partner, or what remains of a plan whose down payment was paid. */
    source: z.enum(['api', 'plan']),
    /** The link whose plan it is. */
    link_id: id().nullable(),
    /** Where it is charged. */
    processor: processorKind,
    /** The processor's ids. */
    customer_id: z.string(),
    payment_method_id: z.string().nullable(),
    processor_subscription_id: z.string(),
    amount_cents: z.number().int().min(1),
    /** Charges in all; null: until it is cancelled. */
    charges: z.number().int().min(1).nullable(),
    /** Charges come monthly from here: the first at once, or of a plan a month later. */
    anchor_at: time(),
    /** The first charge was made as it was created. */
    first_charge_paid: z.boolean(),
    metadata: z.record(z.string(), z.string()),
    started_at: time(),
  },
  withProcessor('processor_subscription_id'),
)

const charge = {
  subscription_id: id(),
  /** Which of the charges it is, from 1. */
  number: z.number().int().min(1),
  processor_payment_id: z.string(),
  amount_cents: z.number().int(),
  at: time(),
}
export const SubscriptionChargePaid = eventType('SubscriptionChargePaid', charge)
/** The processor took money that was not owed: for a charge that had been paid, or beyond the last one. Somebody has to give it back. */
export const SubscriptionChargePaidAgain = eventType('SubscriptionChargePaidAgain', charge)
/** The processor took another amount for a charge than was agreed, or took it after the end, when nothing was owed. It counts. */
export const SubscriptionPaymentDiffered = eventType('SubscriptionPaymentDiffered', {
  ...charge,
  asked_cents: z.number().int(),
})
/** One try of a charge: the processor makes more of them. */
export const SubscriptionChargeFailed = eventType('SubscriptionChargeFailed', {
  ...charge,
  failure_code: z.string().nullable(),
})
/** The processor told how the subscription stands. It is kept also when that is no news: what was told earlier and comes later counts no more. */
export const SubscriptionStatusReported = eventType('SubscriptionStatusReported', {
  subscription_id: id(),
  status: z.enum(['active', 'past_due']),
  at: time(),
})
/**
 * The subscription is to end: a partner wants that, or the policy of a plan was cancelled. It has ended when the processor
 * has done so, whether that is learned by its answer or by its notice.
 */
export const SubscriptionCancellationRequested = eventType(
  'SubscriptionCancellationRequested',
  { subscription_id: id(), reason: cancellationReason, at: time() },
  (raw) => ({ ...(raw as object), reason: 'requested' }),
)
/** The processor did not do what a partner asked for, and is not asked again by itself: the subscription goes on. */
export const SubscriptionCancellationWithdrawn = eventType('SubscriptionCancellationWithdrawn', {
  subscription_id: id(),
  at: time(),
})
/** What the processor is to do waits: it has been away for hours, or is not configured any more. */
export const SubscriptionHeldUp = eventType('SubscriptionHeldUp', {
  subscription_id: id(),
  work: z.enum(['charge-first', 'expire', 'cancel', 'finish-cancellation', 'end-at-processor']),
  since: time(),
  at: time(),
})
/** A charge has been due for days, and the processor told neither that it was paid nor that it failed. */
export const SubscriptionChargeOverdue = eventType('SubscriptionChargeOverdue', {
  subscription_id: id(),
  number: z.number().int().min(1),
  due_at: time(),
  at: time(),
})
/** Nothing is charged any more: its status is `canceled`. */
export const SubscriptionEnded = eventType('SubscriptionEnded', {
  subscription_id: id(),
  /**
   * By the partner; with its policy; as its payments kept failing; as the first one never came; after its last charge;
   * by the processor.
   */
  reason: z.enum([
    ...cancellationReason.options,
    ...(['payment_failed', 'never_paid', 'completed', 'processor'] as const),
  ]),
  at: time(),
})

export const subscriptionEvents = [
  SubscriptionStarted,
  SubscriptionChargePaid,
  SubscriptionChargePaidAgain,
  SubscriptionPaymentDiffered,
  SubscriptionChargeFailed,
  SubscriptionStatusReported,
  SubscriptionCancellationRequested,
  SubscriptionCancellationWithdrawn,
  SubscriptionHeldUp,
  SubscriptionChargeOverdue,
  SubscriptionEnded,
] as const
export type SubscriptionEvent = EventOf<(typeof subscriptionEvents)[number]>

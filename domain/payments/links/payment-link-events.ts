import { z } from 'zod'
import { type DataOf, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { sealContext, sealed } from '../../kernel/sealed.ts'
import { PAYMENT_CONTEXTS } from '../pages/payment-contexts.ts'
import { processorKind, withProcessor } from '../processor/processor-kinds.ts'
import { installmentPlan } from './direct-billing-plan.ts'

/** What happens to a payment link. Amounts are cents, times ISO 8601. The payer is sealed under the employer's data key. */
const payer = () =>
  sealed({
    subject: 'employer',
    boundTo: ({ data, path }) =>
      sealContext(`paymentLink-${data.payment_link_id}`, 'PaymentLinkCreated', path.join('.')),
  })
const cents = () => z.int().min(0)
const link = { payment_link_id: id() }

export const paymentType = z.enum(['ONE_TIME', 'DIRECT_BILLING'])
export const refundReason = z.enum(['duplicate', 'fraudulent', 'requested_by_customer'])
export type RefundReason = z.output<typeof refundReason>
export const deliveryChannel = z.enum(['email', 'sms'])
export type DeliveryChannel = z.output<typeof deliveryChannel>

export const PaymentLinkCreated = eventType(
  'PaymentLinkCreated',
  {
    ...link,
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    premium_cents: cents(),
    fee_cents: cents(),
    fee_breakdown: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
    payment_type: paymentType,
    payment_context: z.enum(PAYMENT_CONTEXTS),
    customer: z.object({ name: payer(), email: payer(), phone: payer().nullable() }),
    delivery: z.object({ email: z.boolean(), sms: z.boolean() }),
    installment_plan: installmentPlan.nullable(),
    /** Of the plan: months that the down payment covers. */
    down_payment_months: z.int().nullable(),
    created_by: z.string().nullable(),
    after_completion_url: z.string().nullable(),
    invoice_id: z.string().nullable(),
    /** The caller's, and what the service adds. */
    metadata: z.record(z.string(), z.string()),
    /** Where it is paid. */
    processor: processorKind,
    processor_payment_link_id: z.string(),
    /** The page on which it is paid. */
    processor_url: z.string(),
    created_at: time(),
    expires_at: time(),
  },
  withProcessor('processor_payment_link_id'),
)
export const PaymentLinkSent = eventType('PaymentLinkSent', {
  ...link,
  channel: deliveryChannel,
  sent_at: time(),
})
/** The provider refused the message for good. */
export const PaymentLinkDeliveryFailed = eventType('PaymentLinkDeliveryFailed', {
  ...link,
  channel: deliveryChannel,
  failed_at: time(),
})
export const PaymentLinkPaid = eventType('PaymentLinkPaid', {
  ...link,
  payment_id: id(),
  amount_cents: cents(),
  /** Null of a simulated payment. */
  processor_payment_id: z.string().nullable(),
  payment_method_id: z.string().nullable(),
  paid_at: time(),
  /** The payment came when the link had been cancelled or had expired. */
  late: z.boolean(),
  simulated: z.boolean(),
})
/** The processor took money for a link that had been paid before: somebody has to give it back. */
export const PaymentLinkPaidAgain = eventType('PaymentLinkPaidAgain', {
  ...link,
  amount_cents: cents(),
  processor_payment_id: z.string(),
  paid_at: time(),
})
/** The processor took another amount for a link than it asks for: somebody has to see to the difference. */
export const PaymentLinkAmountDiffered = eventType('PaymentLinkAmountDiffered', {
  ...link,
  asked_cents: cents(),
  amount_cents: cents(),
  processor_payment_id: z.string().nullable(),
  paid_at: time(),
})
/** The down payment was paid, and the monthly charges of the plan do not come by themselves. */
export const PaymentLinkPlanNotStarted = eventType('PaymentLinkPlanNotStarted', {
  ...link,
  policy_id: id(),
  reason: z.enum(['processor_refused', 'policy_cancelled']),
  at: time(),
})
/** What the processor is to do waits: it has been away for hours, or is not configured any more. */
export const PaymentLinkHeldUp = eventType('PaymentLinkHeldUp', {
  ...link,
  work: z.enum(['start-plan', 'settle-refund', 'deactivate', 'cancel', 'refund']),
  since: time(),
  at: time(),
})
export const PaymentLinkPaymentFailed = eventType('PaymentLinkPaymentFailed', {
  ...link,
  failure_id: id(),
  failure_message: z.string(),
  failed_at: time(),
})
export const PaymentLinkCancelled = eventType('PaymentLinkCancelled', { ...link, cancelled_at: time() })
export const PaymentLinkExpired = eventType('PaymentLinkExpired', { ...link, expired_at: time() })
/** Stored before the processor is asked: the amount is bound until it is known what became of it. */
export const PaymentLinkRefundRequested = eventType('PaymentLinkRefundRequested', {
  ...link,
  refund_id: id(),
  amount_cents: z.int().min(1),
  reason: refundReason.nullable(),
  requested_at: time(),
})
export const PaymentLinkRefunded = eventType('PaymentLinkRefunded', {
  ...link,
  refund_id: id(),
  amount_cents: z.int().min(1),
  reason: refundReason.nullable(),
  /** Of all refunds up to this one. */
  refunded_cents: z.int().min(1),
  /** Null of a simulated payment. */
  processor_refund_id: z.string().nullable(),
  refunded_at: time(),
})
/** Nothing was refunded, or it came back from the payer's bank, perhaps after it had succeeded. */
export const PaymentLinkRefundFailed = eventType('PaymentLinkRefundFailed', {
  ...link,
  refund_id: id(),
  /** Of one that the processor had taken; null where it refused, or never heard of it. */
  processor_refund_id: z.string().nullable(),
  failed_at: time(),
})

export const paymentLinkEvents = [
  PaymentLinkCreated,
  PaymentLinkSent,
  PaymentLinkDeliveryFailed,
  PaymentLinkPaid,
  PaymentLinkPaidAgain,
  PaymentLinkAmountDiffered,
  PaymentLinkPlanNotStarted,
  PaymentLinkHeldUp,
  PaymentLinkPaymentFailed,
  PaymentLinkCancelled,
  PaymentLinkExpired,
  PaymentLinkRefundRequested,
  PaymentLinkRefunded,
  PaymentLinkRefundFailed,
] as const
export type PaymentLinkEvent = EventOf<(typeof paymentLinkEvents)[number]>
export type PaymentLinkData<Type extends PaymentLinkEvent['type']> = DataOf<PaymentLinkEvent, Type>

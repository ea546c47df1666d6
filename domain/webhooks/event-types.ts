import { z } from 'zod'
import { time } from '../kernel/event-type.ts'
import { refundReason } from '../payments/links/payment-link-events.ts'

/** What partners hear by webhook: the body of each type of event. A field that does not apply is left out, never null. */

const id = () => z.string()
const cents = () => z.int()
const currency = () => z.literal('usd')

/** What was paid for, as its link describes it. */
const charge = {
  payment_link_id: id().optional(),
  processor_payment_link_id: id().optional(),
  payment_session_id: id().optional(),
  policy_id: id().optional(),
  employer_id: id().optional(),
  carrier_id: id(),
  amount_cents: cents(),
  currency: currency(),
  premium_cents: cents(),
  fee_cents: cents(),
  fee_source: z.literal('partner').optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  payment_type: z.enum(['ONE_TIME', 'DIRECT_BILLING']),
  payment_context: z.string(),
}

const subscription = z.object({
  subscription_id: id(),
  employer_id: id(),
  policy_id: id(),
  carrier_id: id(),
  amount_cents: cents(),
  currency: currency(),
  status: z.enum(['active', 'past_due', 'canceled', 'incomplete']),
  metadata: z.record(z.string(), z.string()),
})

const installment = {
  subscription_id: id(),
  payment_id: id(),
  installment_number: z.int().min(1),
  amount_cents: cents(),
  currency: currency(),
}

const debit = {
  payment_session_id: id().optional(),
  leg_id: id(),
  amount_cents: cents(),
  currency: currency(),
  employer_id: id(),
  policy_id: id(),
  carrier_id: id(),
  description: z.string().optional(),
}

/** The types of events by name, in the order of the documents, with the schema of their bodies. */
export const WEBHOOK_EVENTS = {
  'payment.completed': z.object({
    payment_id: id(),
    ...charge,
    /** The same as `amount_cents`. */
    amount_paid_cents: cents(),
    paid_at: time(),
    /** The link had been cancelled or had expired when the processor took the money. */
    late_payment: z.literal(true).optional(),
  }),
  'payment.failed': z.object({
    payment_id: id().optional(),
    ...charge,
    premium_cents: cents().optional(),
    fee_cents: cents().optional(),
    payment_type: charge.payment_type.optional(),
    payment_context: z.string().optional(),
    /** Of a bank debit. */
    leg_id: id().optional(),
    return_code: z.string().optional(),
    failed_at: time(),
    failure_message: z.string(),
  }),
  'payment.refunded': z.object({
    payment_id: id(),
    payment_link_id: id(),
    /** Of this refund. */
    amount_cents: cents(),
    /** Of all refunds of the payment. */
    refunded_cents: cents(),
    reason: refundReason.optional(),
    currency: currency(),
    refunded_at: time(),
  }),
  'subscription.created': subscription,
  'subscription.cancelled': subscription,
  'installment.paid': z.object({ ...installment, paid_at: time() }),
  'installment.failed': z.object({ ...installment, failed_at: time() }),
  'payment.debit_minted': z.object({ ...debit, cancellation_deadline: time() }),
  'payment.debit_cancelled': z.object({ ...debit, cancelled_at: time() }),
  'payment.debit_cleared': z.object({
    ...debit,
    payment_session_id: id(),
    settlement_source: z.literal('bank'),
    bank_date: z.iso.date(),
    /** The same as `amount_cents`. */
    matched_cents: cents(),
    confidence: z.enum(['high', 'medium', 'low']),
    matcher_version: z.string().optional(),
  }),
  'payment.debit_settled': z.object({
    ...debit,
    payment_session_id: id(),
    settlement_source: z.literal('processor'),
    settled_at: time(),
    processor_status: z.string().optional(),
  }),
} as const

export type WebhookEventType = keyof typeof WEBHOOK_EVENTS
export type WebhookPayload<Type extends WebhookEventType> = z.input<(typeof WEBHOOK_EVENTS)[Type]>

export const WEBHOOK_EVENT_TYPES = Object.keys(WEBHOOK_EVENTS) as [WebhookEventType, ...WebhookEventType[]]

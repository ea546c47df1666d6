import { linkAmountCents, type PaymentLink } from '../../../domain/payments/links/payment-link.ts'
import type { PaymentLinkData } from '../../../domain/payments/links/payment-link-events.ts'
import type { NewWebhookEvent } from '../../webhooks/raise.ts'

/** What partners hear of a payment link; what does not apply is left out. */

export function completedPayload(link: PaymentLink): NewWebhookEvent<'payment.completed'> {
  const { payment_id, amount_cents, paid_at, late } = link.payment!
  return {
    type: 'payment.completed',
    of: link,
    payload: {
      payment_id,
      ...charge(link),
      // what was collected, though the processor took another amount than was asked for
      amount_cents,
      amount_paid_cents: amount_cents,
      paid_at,
      ...(late && { late_payment: true }),
    },
  }
}

export function failedPayload(
  link: PaymentLink,
  {
    failed_at,
    failure_message,
  }: Pick<PaymentLinkData<'PaymentLinkPaymentFailed'>, 'failed_at' | 'failure_message'>,
): NewWebhookEvent<'payment.failed'> {
  return { type: 'payment.failed', of: link, payload: { ...charge(link), failed_at, failure_message } }
}

export function refundedPayload(
  link: PaymentLink,
  { amount_cents, refunded_cents, reason, refunded_at }: PaymentLinkData<'PaymentLinkRefunded'>,
): NewWebhookEvent<'payment.refunded'> {
  return {
    type: 'payment.refunded',
    of: link,
    payload: {
      payment_id: link.payment!.payment_id,
      payment_link_id: link.payment_link_id,
      amount_cents,
      refunded_cents,
      ...(reason !== null && { reason }),
      currency: 'usd',
      refunded_at,
    },
  }
}

function charge(link: PaymentLink) {
  const { payment_link_id, processor_payment_link_id, policy_id, employer_id, carrier_id } = link
  const { premium_cents, fee_cents, metadata, payment_type, payment_context } = link
  return {
    payment_link_id,
    processor_payment_link_id,
    policy_id,
    employer_id,
    carrier_id,
    amount_cents: linkAmountCents(link),
    currency: 'usd' as const,
    premium_cents,
    fee_cents,
    ...(fee_cents > 0 && { fee_source: 'partner' as const }),
    metadata,
    payment_type,
    payment_context,
  }
}

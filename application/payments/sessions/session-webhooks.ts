import type { PaymentSessionData } from '../../../domain/payments/sessions/payment-session-events.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { NewWebhookEvent } from '../../webhooks/raise.ts'

type Charge = Pick<PaymentSessionData<'PaymentSessionPaid'>, 'payment_id' | 'amount_cents' | 'paid_at'> & {
  readonly late: boolean
}

/** What partners hear of a payment by the card processor. */
export function completedPayload(
  session: PaymentSession,
  { payment_id, amount_cents, paid_at, late }: Charge,
): NewWebhookEvent<'payment.completed'> {
  return {
    of: session,
    type: 'payment.completed',
    payload: {
      payment_id,
      ...chargeOf(session),
      amount_cents,
      amount_paid_cents: amount_cents,
      metadata: {},
      paid_at,
      ...(late ? { late_payment: true } : {}),
    },
  }
}

/** What partners hear of a declined attempt. */
export function failedPayload(
  session: PaymentSession,
  {
    failed_at,
    failure_message,
  }: Pick<PaymentSessionData<'PaymentSessionPaymentFailed'>, 'failed_at' | 'failure_message'>,
): NewWebhookEvent<'payment.failed'> {
  return {
    of: session,
    type: 'payment.failed',
    payload: { ...chargeOf(session), metadata: {}, failed_at, failure_message },
  }
}

function chargeOf(session: PaymentSession) {
  const { payment_session_id, policy_id, employer_id, carrier_id, amount_cents } = session
  const { premium_cents, fee_cents } = session
  return {
    payment_session_id,
    policy_id,
    employer_id,
    carrier_id,
    amount_cents,
    currency: 'usd' as const,
    premium_cents,
    fee_cents,
    ...(fee_cents > 0 ? { fee_source: 'partner' as const } : {}),
    payment_type: 'ONE_TIME' as const,
    payment_context: 'one_time_payment',
  }
}

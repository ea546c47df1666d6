import { z } from 'zod'
import { SUBSCRIPTION_STATUSES } from '../../../../domain/payments/subscriptions/subscription-events.ts'
import { id, idOf, word } from '../../../endpoints/fields.ts'

const time = () => z.string().meta({ format: 'date-time' })

const ScheduledPayment = z
  .object({
    _id: id().describe('`payment_id` of the webhooks `installment.paid` and `installment.failed`'),
    installment_number: z.int().describe('From 1, without the down payment of a plan'),
    due_at: time(),
    amount_cents: z.int(),
    status: z.enum(['scheduled', 'paid', 'failed', 'cancelled']),
    failed_attempts: z.int(),
    paid_at: time().nullable(),
  })
  .meta({ id: 'ScheduledPayment' })

export const status = word(...SUBSCRIPTION_STATUSES)

/** A subscription as partners see it. */
export const Subscription = z
  .object({
    _id: id(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    payment_link_id: id().nullable().describe('The link whose plan it charges; null of a standalone one'),
    amount_cents: z.int(),
    currency: z.literal('usd'),
    interval: z.literal('month'),
    payment_method_id: z.string().nullable(),
    status: status.describe(
      '`incomplete` until the first payment succeeds, `past_due` while one failed and is tried again',
    ),
    processor_subscription_id: z.string(),
    scheduled_payments: z
      .array(ScheduledPayment)
      .readonly()
      .describe('Of a plan all charges; else those that were tried, and the next one'),
    metadata: z.record(z.string(), z.string()),
    created_at: time(),
    updated_at: time(),
    canceled_at: time().nullable(),
    cancellation_reason: z
      .enum(['requested', 'policy_cancelled', 'payment_failed', 'never_paid', 'completed', 'processor'])
      .nullable()
      .describe('`completed`: all charges of its plan are paid'),
  })
  .meta({ id: 'Subscription' })

export const params = z.object({ subscription_id: idOf('subscription') })

export const REACH = {
  403: 'The subscription lies outside the scope of the key, or the key does not open this API',
  404: 'There is no such subscription in the account and environment of the key',
} as const

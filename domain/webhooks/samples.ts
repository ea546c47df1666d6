import { isoTime } from '../kernel/calendar.ts'
import { newYorkDate } from '../kernel/new-york.ts'
import type { WebhookEventType, WebhookPayload } from './event-types.ts'

/** Ids in samples: they name nothing. */
const sampleId = (n: number) => n.toString(16).padStart(24, '0')
const DAY_MS = 24 * 60 * 60 * 1000

const owner = { employer_id: sampleId(0xe1), policy_id: sampleId(0xa1), carrier_id: sampleId(0xc1) }
const dollars = (amount: number) => ({ amount_cents: 100 * amount, currency: 'usd' }) as const
const charge = {
  payment_link_id: sampleId(0xb1),
  processor_payment_link_id: 'plink_sample',
  ...owner,
  ...dollars(1_200),
  premium_cents: 118_000,
  fee_cents: 2_000,
  fee_source: 'partner',
  metadata: {},
  payment_type: 'ONE_TIME',
  payment_context: 'one_time_payment',
} as const
const subscription = { subscription_id: sampleId(0x51), ...owner, ...dollars(100), metadata: {} }
const installment = {
  subscription_id: sampleId(0x51),
  payment_id: sampleId(0xf1),
  installment_number: 1,
  ...dollars(100),
}
const debit = { leg_id: sampleId(0xd1), ...dollars(100), ...owner, description: 'Sample debit' }
const ofSession = { payment_session_id: sampleId(0x5e), ...debit }

/** @param at epoch milliseconds. */
type Samples = { readonly [Type in WebhookEventType]: (at: number) => WebhookPayload<Type> }

const SAMPLES: Samples = {
  'payment.completed': (at) => ({
    payment_id: sampleId(0xf1),
    ...charge,
    amount_paid_cents: charge.amount_cents,
    paid_at: isoTime(at),
  }),
  'payment.failed': (at) => ({
    payment_id: sampleId(0xf1),
    ...charge,
    failed_at: isoTime(at),
    failure_message: 'Your card was declined.',
  }),
  'payment.refunded': (at) => ({
    payment_id: sampleId(0xf1),
    payment_link_id: charge.payment_link_id,
    ...dollars(50),
    refunded_cents: 5_000,
    reason: 'requested_by_customer',
    refunded_at: isoTime(at),
  }),
  'subscription.created': () => ({ ...subscription, status: 'active' }),
  'subscription.cancelled': () => ({ ...subscription, status: 'canceled' }),
  'installment.paid': (at) => ({ ...installment, paid_at: isoTime(at) }),
  'installment.failed': (at) => ({ ...installment, failed_at: isoTime(at) }),
  'payment.debit_minted': (at) => ({ ...debit, cancellation_deadline: isoTime(at + DAY_MS) }),
  'payment.debit_cancelled': (at) => ({ ...debit, cancelled_at: isoTime(at) }),
  'payment.debit_cleared': (at) => ({
    ...ofSession,
    settlement_source: 'bank',
    bank_date: newYorkDate(at),
    matched_cents: debit.amount_cents,
    confidence: 'high',
    matcher_version: 'sample',
  }),
  'payment.debit_settled': (at) => ({
    ...ofSession,
    settlement_source: 'processor',
    settled_at: `${newYorkDate(at)}T12:00:00.000Z`,
    processor_status: 'SBRemit',
  }),
}

/** A body of a type of event as a test delivers it: what it names exists nowhere. @param at epoch milliseconds. */
export function samplePayload<Type extends WebhookEventType>(type: Type, at: number): WebhookPayload<Type> {
  return SAMPLES[type](at)
}

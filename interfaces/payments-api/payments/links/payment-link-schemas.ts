import { z } from 'zod'
import type { ShownLink } from '../../../../application/payments/links/show-links.ts'
import { MOST_INSTALLMENTS } from '../../../../domain/payments/links/direct-billing-plan.ts'
import {
  LINK_STATUSES,
  linkAmountCents,
  type PaymentLink,
  totalCents,
} from '../../../../domain/payments/links/payment-link.ts'
import { refundReason } from '../../../../domain/payments/links/payment-link-events.ts'
import { PAYMENT_CONTEXTS } from '../../../../domain/payments/pages/payment-contexts.ts'
import { REQUIRED } from '../../../endpoints/faults.ts'
import {
  email,
  id,
  isoMoment,
  optional,
  reference,
  text,
  wholeNumber,
  withDefault,
  word,
  wrongType,
} from '../../../endpoints/fields.ts'
import { metadata } from '../../host/metadata.ts'

const MOST_LINES = 200

const URL_EXPECTED = 'must be an http or https URL'
const url = z
  .string(wrongType(URL_EXPECTED))
  .max(2_000)
  .regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\]+$/, URL_EXPECTED)
  .refine((value) => URL.canParse(value), URL_EXPECTED)

const months = () => z.int(wrongType('must be a whole number')).nullish()

/** The request for a payment link. */
export const newPaymentLink = z
  .object({
    employer_id: reference(),
    carrier_id: optional(reference()).describe('Required unless the key is for exactly one carrier'),
    policy_id: reference(),
    premium_cents: wholeNumber(),
    fee_cents: withDefault(wholeNumber(), 0).describe('Charged on top of the premium'),
    fee_breakdown: withDefault(
      z.array(z.object({ label: text(200), amount_cents: z.int() })).max(MOST_LINES),
      [],
    ).describe('Kept for your records; nothing is computed of it'),
    payment_type: word('ONE_TIME', 'DIRECT_BILLING'),
    payment_context: z.enum(PAYMENT_CONTEXTS),
    customer: z.object({
      name: text(200).describe('Insured business'),
      email: email(),
      phone: optional(text(40)),
    }),
    delivery: withDefault(
      z.object({
        email: withDefault(z.boolean(), true).describe('Send the link by email'),
        sms: withDefault(z.boolean(), false).describe('Send the link by text message'),
      }),
      { email: true, sms: false },
    ).describe('How a live link is sent; nothing is sent from the sandbox'),
    total_installments: months().describe(
      `Months of the whole schedule, 2 to ${MOST_INSTALLMENTS}; required for DIRECT_BILLING, ignored otherwise`,
    ),
    down_payment_months: months().describe(
      'Months paid now, 1 or more and fewer than all; required for DIRECT_BILLING, ignored otherwise',
    ),
    created_by: optional(text(200)),
    after_completion_url: optional(url).describe('Where the payer goes on after the payment'),
    invoice_id: optional(text(200)).describe('Kept as it is'),
    metadata: metadata(),
  })
  .superRefine((body, context) => {
    const wrong = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
    const total = body.premium_cents + body.fee_cents
    if (total < 1 || !Number.isSafeInteger(total)) {
      wrong(['premium_cents'], `and fee_cents must be from 1 to ${Number.MAX_SAFE_INTEGER} together`)
    }
    if (body.delivery.sms && body.customer.phone === null) {
      wrong(['customer', 'phone'], `${REQUIRED} where delivery.sms is true`)
    }
    if (body.payment_type !== 'DIRECT_BILLING') return
    const bounds = { total_installments: [2, MOST_INSTALLMENTS], down_payment_months: [1, MOST_INSTALLMENTS] }
    for (const [name, [min, max]] of Object.entries(bounds) as [keyof typeof bounds, [number, number]][]) {
      const value = body[name]
      if (value === undefined || value === null) wrong([name], `${REQUIRED} for DIRECT_BILLING`)
      else if (value < min || value > max) wrong([name], `must be from ${min} to ${max}`)
    }
  })

const status = z.enum(LINK_STATUSES)

export const InstallmentPlan = z
  .object({
    total_installments: z.int(),
    down_payment_percentage: z.number(),
    down_payment_cents: z.int(),
    per_installment_cents: z.int(),
    extra_fee_cents: z.int(),
  })
  .meta({ id: 'InstallmentPlan' })

const created = {
  _id: id(),
  processor_payment_link_id: z.string(),
  processor_url: z.string().describe('Where it is paid'),
  status,
  billing_entity_type: z.literal('employer'),
  total_cents: z.int(),
  link_amount_cents: z.int().describe('What the link charges now: the total, or the down payment'),
  installment_plan: InstallmentPlan.nullable(),
}
export const CreatedPaymentLink = z.object(created).meta({ id: 'CreatedPaymentLink' })

const Refund = z
  .object({
    refund_id: id(),
    amount_cents: z.int(),
    reason: refundReason.nullable().describe('Why, as the card processor knows it; null: not said'),
    status: z.enum(['pending', 'succeeded']).describe('`pending`: the card processor has not answered yet'),
    created_at: isoMoment(),
  })
  .meta({ id: 'Refund' })

const Payment = z
  .object({
    payment_id: id(),
    amount_cents: z.int(),
    currency: z.literal('usd'),
    paid_at: isoMoment(),
    processor_payment_id: z.string().nullable().describe('Null of a simulated payment'),
    late_payment: z.boolean().describe('Whether it came when the link was cancelled or had expired'),
    fee_source: z.literal('partner').optional(),
    metadata: z.record(z.string(), z.string()),
    refunded_cents: z.int(),
    refunds: z.array(Refund),
  })
  .meta({ id: 'Payment' })

export const ShownPaymentLink = z
  .object({
    ...created,
    environment: z.enum(['live', 'sandbox']),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    premium_cents: z.int(),
    fee_cents: z.int(),
    fee_breakdown: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
    fee_source: z.literal('partner').optional().describe('Only with a fee'),
    currency: z.literal('usd'),
    payment_type: z.enum(['ONE_TIME', 'DIRECT_BILLING']),
    payment_context: z.enum(PAYMENT_CONTEXTS),
    customer: z.object({
      name: z.string().describe('`(erased)` after an erasure, as the rest'),
      email: z.string(),
      phone: z.string().nullable(),
    }),
    delivery: z
      .object({
        email: z.boolean().describe('Whether the link goes out by email'),
        sms: z.boolean().describe('Whether the link goes out by text message'),
      })
      .describe('How a live link is sent'),
    total_installments: z.int().nullable(),
    down_payment_months: z.int().nullable(),
    created_by: z.string().nullable(),
    after_completion_url: z.string().nullable(),
    invoice_id: z.string().nullable(),
    metadata: z.record(z.string(), z.string()),
    payment_id: id().optional().describe('Of a paid link'),
    payment: Payment.nullable(),
    refunded_cents: z.int(),
    refunds: z.array(Refund),
    created_at: isoMoment(),
    updated_at: isoMoment(),
    expires_at: isoMoment(),
    sent_at: isoMoment().nullable(),
    paid_at: isoMoment().nullable(),
    cancelled_at: isoMoment().nullable(),
  })
  .meta({ id: 'PaymentLink' })

export const RefundedPaymentLink = z
  .object({
    _id: id(),
    payment_id: id(),
    status: z.literal('paid'),
    refunded_cents: z.int().describe('Of all refunds of the payment'),
    refunds: z.array(Refund),
  })
  .meta({ id: 'RefundedPaymentLink' })

export const refundRequest = z.object({
  amount_cents: optional(z.int().min(1)).describe('Default: whatever is not refunded yet'),
  reason: optional(refundReason).describe('Why, as the card processor knows it'),
})

/** A link as its creation is answered. */
export function showCreated(link: PaymentLink) {
  return {
    ...link,
    _id: link.payment_link_id,
    billing_entity_type: 'employer' as const,
    total_cents: totalCents(link),
    link_amount_cents: linkAmountCents(link),
  }
}

/** A link as it is read. */
export function showPaymentLink({ link, status, refunded_cents, customer }: ShownLink) {
  const { installment_plan, payment, metadata } = link
  const money = {
    currency: 'usd' as const,
    ...(link.fee_cents > 0 && { fee_source: 'partner' as const }),
    refunded_cents,
    refunds: shownRefunds(link),
  }
  return {
    ...showCreated(link),
    ...money,
    status,
    customer,
    total_installments: installment_plan?.total_installments ?? null,
    ...(payment && { payment_id: payment.payment_id }),
    payment: payment && { ...payment, ...money, late_payment: payment.late, metadata },
    paid_at: payment?.paid_at ?? null,
  }
}

/** Refunds that came to something, or may; one that failed leaves nothing behind. */
export function shownRefunds({ refunds }: Pick<PaymentLink, 'refunds'>) {
  return refunds.flatMap(({ refund_id, amount_cents, reason, status, created_at }) =>
    status === 'failed' ? [] : [{ refund_id, amount_cents, reason, status, created_at }],
  )
}

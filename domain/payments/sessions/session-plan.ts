import { z } from 'zod'
import { monthsAfter } from '../../kernel/calendar.ts'

/** The hour, UTC, at which installments fall due; it is not shifted for daylight saving. */
const DUE_HOUR = 17
/** Installments of a plan, those after the down payment. */
export const MOST_SESSION_INSTALLMENTS = 60

/** How a total is paid over time: a down payment at signing, then monthly installments by bank debit. Amounts are cents. */
export const sessionPlanSchema = z.object({
  /** After the down payment. */
  total_installments: z.int().min(1).max(MOST_SESSION_INSTALLMENTS),
  down_payment_cents: z.int().min(0),
  /** Of all but the last. */
  per_installment_cents: z.int().min(0),
  last_installment_cents: z.int().min(0),
})
export type SessionPlan = z.output<typeof sessionPlanSchema>

/** An installment of a plan. */
export interface Installment {
  /** From 1. */
  readonly number: number
  readonly amount_cents: number
  /** Epoch milliseconds. */
  readonly dueAt: number
}

/** Cuts what is left after the down payment into whole cents; the last installment takes what that leaves over. */
export function sessionPlan(totalCents: number, downPaymentCents: number, installments: number): SessionPlan {
  const remaining = totalCents - downPaymentCents
  const each = Math.floor(remaining / installments)
  return {
    total_installments: installments,
    down_payment_cents: downPaymentCents,
    per_installment_cents: each,
    last_installment_cents: remaining - each * (installments - 1),
  }
}

/**
 * The installments of a plan: monthly, on the UTC day of its creation, in shorter months on the last one, at 17:00 UTC.
 * @param createdAt epoch milliseconds.
 */
export function schedule(plan: SessionPlan, createdAt: number): readonly Installment[] {
  const { total_installments: count } = plan
  const first = new Date(createdAt).setUTCHours(DUE_HOUR, 0, 0, 0)
  return Array.from({ length: count }, (_, index) => ({
    number: index + 1,
    amount_cents: index + 1 === count ? plan.last_installment_cents : plan.per_installment_cents,
    dueAt: monthsAfter(first, index + 1),
  }))
}

import { decimal } from '../../kernel/money.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import type { RejectionCode } from '../../kernel/rejection-codes.ts'
import { type SessionPlan, sessionPlan } from './session-plan.ts'

/** Cents that a session asks for in all, plan or not. */
export const LEAST_SESSION_CENTS = 50
export const MOST_SESSION_CENTS = 100_000_000

export interface LineItem {
  readonly label: string
  readonly amount_cents: number
}

/** What a request says of money: cents; null is left out. */
export interface AskedAmounts {
  readonly amount_cents: number | null
  readonly premium_cents: number | null
  readonly fee_cents: number | null
  readonly fee_breakdown: readonly LineItem[] | null
  readonly total_installments: number | null
  readonly down_payment_percent: number | null
  readonly down_payment_cents: number | null
}

export interface SessionAmounts {
  /** What is charged at signing: the total, or the down payment of the plan. */
  readonly amount_cents: number
  readonly premium_cents: number
  readonly fee_cents: number
  /** Premium, then the fees: never folded into one another. They sum to the total. */
  readonly line_items: readonly LineItem[]
  readonly plan: SessionPlan | null
}

/** What a session asks for, or what is wrong with the figures of its request. */
export function sessionAmounts(asked: AskedAmounts): SessionAmounts | Rejection {
  const { amount_cents: amountCents, fee_breakdown: feeBreakdown } = asked
  const feeCents = asked.fee_cents ?? 0
  const premiumCents = asked.premium_cents ?? (amountCents === null ? null : amountCents - feeCents)
  if (premiumCents === null) {
    return wrong('amount_missing', 'amount_cents', 'amount_cents or premium_cents is required')
  }
  if (premiumCents < 0) {
    const why = `fee_cents must not exceed amount_cents: ${feeCents} is more than ${amountCents}`
    return wrong('fee_exceeds_amount', 'fee_cents', why)
  }
  const total = premiumCents + feeCents
  if (amountCents !== null && amountCents !== total) {
    const why = `amount_cents must equal premium_cents + fee_cents: ${amountCents} is not ${total}`
    return wrong('amounts_disagree', 'amount_cents', why)
  }
  const itemised = feeBreakdown?.reduce((sum, { amount_cents }) => sum + amount_cents, 0) ?? feeCents
  if (itemised !== feeCents) {
    const why = `fee_breakdown must sum to fee_cents: ${itemised} is not ${feeCents}`
    return wrong('fee_breakdown_disagrees', 'fee_breakdown', why)
  }
  const field = amountCents === null ? 'premium_cents' : 'amount_cents'
  if (total < LEAST_SESSION_CENTS || total > MOST_SESSION_CENTS) {
    const why = `The total must be from ${LEAST_SESSION_CENTS} to ${MOST_SESSION_CENTS} cents: ${field} makes it ${total}`
    return wrong('total_out_of_bounds', field, why)
  }
  const plan = planOf(total, asked)
  if (plan !== null && 'rejected' in plan) return plan
  return {
    amount_cents: plan?.down_payment_cents ?? total,
    premium_cents: premiumCents,
    fee_cents: feeCents,
    line_items: [
      { label: 'Premium', amount_cents: premiumCents },
      ...(feeBreakdown ?? (feeCents > 0 ? [{ label: 'Fees', amount_cents: feeCents }] : [])),
    ],
    plan,
  }
}

function planOf(
  total: number,
  { total_installments, down_payment_percent, down_payment_cents }: AskedAmounts,
): SessionPlan | Rejection | null {
  if (total_installments === null) {
    if (down_payment_percent === null && down_payment_cents === null) return null
    const field = down_payment_cents === null ? 'down_payment_percent' : 'down_payment_cents'
    return wrong('plan_incomplete', field, `${field} needs total_installments`)
  }
  const downPayment = down_payment_cents ?? percentOf(total, down_payment_percent ?? 0)
  if (downPayment > total) {
    const why = `down_payment_cents must not exceed the total of ${total} cents`
    return wrong('down_payment_exceeds_total', 'down_payment_cents', why)
  }
  return sessionPlan(total, downPayment, total_installments)
}

/** A percentage of whole cents, exactly, rounded down. @param percent 0 to 100, by the decimal that it is written as. */
function percentOf(cents: number, percent: number): number {
  const { digits, scale } = decimal(percent)!
  return Number((BigInt(cents) * digits) / (100n * 10n ** BigInt(scale)))
}

function wrong(code: RejectionCode, field: string, message: string): Rejection {
  return reject('invalid', code, message, field)
}

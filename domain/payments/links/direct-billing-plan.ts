import { z } from 'zod'
import { divideHalfUp } from '../../kernel/money.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'

/** What card processors take in one charge at the most. */
export const MOST_CHARGE_CENTS = 99_999_999
/** Months of a whole schedule at the most. */
export const MOST_INSTALLMENTS = 360

/** The schedule of a policy that is billed directly: a down payment now, then equal monthly charges. Amounts are cents. */
export const installmentPlan = z.object({
  /** Of the whole schedule, those that the down payment covers included. */
  total_installments: z.int(),
  /** Of the whole schedule, to 2 decimals. */
  down_payment_percentage: z.number(),
  down_payment_cents: z.int(),
  per_installment_cents: z.int(),
  /** What the service adds: nothing. */
  extra_fee_cents: z.literal(0),
})
export type InstallmentPlan = z.output<typeof installmentPlan>

/**
 * Cuts a total into a schedule. Each month takes the same whole cents, and the down payment, which stands for the first
 * months, takes what that leaves over: what is shown sums exactly to the total.
 * @param totalCents premium and fee.
 * @param totalInstallments months of the whole schedule, 2 or more.
 * @param downPaymentMonths those that are paid now, 1 or more and fewer than all.
 */
export function directBillingPlan(
  totalCents: number,
  totalInstallments: number,
  downPaymentMonths: number,
): InstallmentPlan | Rejection {
  if (downPaymentMonths >= totalInstallments) {
    return reject(
      'invalid',
      'no_installments_left',
      'down_payment_months must be less than total_installments',
      'down_payment_months',
    )
  }
  const perInstallment = Math.floor(totalCents / totalInstallments)
  if (perInstallment < 1) {
    const why = `total_installments must leave at least 1 cent a month of ${totalCents} cents`
    return reject('invalid', 'installments_too_small', why, 'total_installments')
  }
  const hundredths = divideHalfUp(BigInt(downPaymentMonths) * 10_000n, BigInt(totalInstallments))
  return {
    total_installments: totalInstallments,
    down_payment_percentage: Number(hundredths) / 100,
    down_payment_cents: totalCents - perInstallment * (totalInstallments - downPaymentMonths),
    per_installment_cents: perInstallment,
    extra_fee_cents: 0,
  }
}

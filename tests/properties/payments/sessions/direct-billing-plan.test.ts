import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import {
  directBillingPlan,
  type InstallmentPlan,
} from '../../../../domain/payments/links/direct-billing-plan.ts'
import { runs } from '../../../support/generated.ts'

/** Total, months of the whole schedule, and months that are paid now. */
const schedules = fc
  .tuple(fc.integer({ min: 2, max: 360 }), fc.integer({ min: 1, max: 359 }), fc.maxSafeNat())
  .filter(([months, down, total]) => down < months && total >= months)

function planned(total: number, months: number, down: number): InstallmentPlan {
  const plan = directBillingPlan(total, months, down)
  if (isRejection(plan)) throw new Error(plan.message)
  return plan
}

describe('the plan of a policy that is billed directly', () => {
  test('is the one of the example', () => {
    expect(planned(120_000, 12, 2)).toEqual({
      total_installments: 12,
      down_payment_percentage: 16.67,
      down_payment_cents: 20_000,
      per_installment_cents: 10_000,
      extra_fee_cents: 0,
    })
  })

  test('sums exactly to the total, in equal months', () => {
    fc.assert(
      fc.property(schedules, ([months, down, total]) => {
        const { down_payment_cents, per_installment_cents, extra_fee_cents } = planned(total, months, down)
        const charges = BigInt(per_installment_cents) * BigInt(months - down)
        expect(BigInt(down_payment_cents) + charges).toBe(BigInt(total))
        expect(per_installment_cents).toBeGreaterThanOrEqual(1)
        expect(extra_fee_cents).toBe(0)
      }),
      runs(),
    )
  })

  test('asks for no month more than for another, but for the cents that cannot be split', () => {
    fc.assert(
      fc.property(schedules, ([months, down, total]) => {
        const { down_payment_cents, per_installment_cents } = planned(total, months, down)
        const rest = BigInt(down_payment_cents) - BigInt(per_installment_cents) * BigInt(down)
        expect(rest >= 0n && rest < BigInt(months)).toBe(true)
      }),
      runs(),
    )
  })

  test('tells the share of the down payment to 2 decimals', () => {
    fc.assert(
      fc.property(schedules, ([months, down, total]) => {
        const { down_payment_percentage: percentage } = planned(total, months, down)
        expect(String(percentage)).toMatch(/^\d{1,2}(\.\d{1,2})?$/)
        expect(Math.abs(percentage - (100 * down) / months)).toBeLessThanOrEqual(0.005 + 1e-9)
      }),
      runs(),
    )
  })

  test('leaves something for every month, or there is none', () => {
    expect(directBillingPlan(12, 12, 1)).toMatchObject({ down_payment_cents: 1, per_installment_cents: 1 })
    expect(directBillingPlan(11, 12, 1)).toMatchObject({ rejected: true, field: 'total_installments' })
    expect(directBillingPlan(1_000, 2, 2)).toMatchObject({ rejected: true, field: 'down_payment_months' })
    expect(directBillingPlan(1_000, 2, 3)).toMatchObject({ rejected: true, field: 'down_payment_months' })
  })
})

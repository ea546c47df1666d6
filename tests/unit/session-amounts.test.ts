import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AskedAmounts,
  type SessionAmounts,
  sessionAmounts,
} from '../../domain/payments/session-amounts.ts'
import { schedule } from '../../domain/payments/session-plan.ts'
import { runs } from '../support/generated.ts'

const NOTHING: AskedAmounts = {
  amountCents: null,
  premiumCents: null,
  feeCents: null,
  feeBreakdown: null,
  totalInstallments: null,
  downPaymentPercent: null,
  downPaymentCents: null,
}
const ask = (asked: Partial<AskedAmounts>) => sessionAmounts({ ...NOTHING, ...asked })
const taken = (asked: Partial<AskedAmounts>) => {
  const amounts = ask(asked)
  if ('rejected' in amounts) throw new Error(amounts.message)
  return amounts
}
const planOf = (asked: Partial<AskedAmounts>) => taken(asked).plan!

describe('what a session asks for', () => {
  it('is the total, or the premium and the fee', () => {
    expect(taken({ amountCents: 10_500, feeCents: 500 })).toEqual({
      amount_cents: 10_500,
      premium_cents: 10_000,
      fee_cents: 500,
      plan: null,
      line_items: [
        { label: 'Premium', amount_cents: 10_000 },
        { label: 'Fees', amount_cents: 500 },
      ],
    })
    expect(taken({ premiumCents: 10_000, feeCents: 500 }).amount_cents).toBe(10_500)
    expect(taken({ amountCents: 105, premiumCents: 100, feeCents: 5 }).amount_cents).toBe(105)
  })

  it('shows each fee on a line of its own', () => {
    const feeBreakdown = [
      { label: 'Policy fee', amount_cents: 200 },
      { label: 'Filing', amount_cents: 300 },
    ]
    const { line_items } = taken({ premiumCents: 10_000, feeCents: 500, feeBreakdown })
    expect(line_items).toEqual([{ label: 'Premium', amount_cents: 10_000 }, ...feeBreakdown])
  })

  it.each([
    [{}, 'amount_missing', ['amount_cents', 'premium_cents']],
    [{ amountCents: 100, premiumCents: 90, feeCents: 5 }, 'amounts_disagree', ['100', '95']],
    [{ amountCents: 100, feeCents: 101 }, 'fee_exceeds_amount', ['100', '101']],
    [
      { premiumCents: 100, feeCents: 500, feeBreakdown: [{ label: 'x', amount_cents: 300 }] },
      'fee_breakdown_disagrees',
      ['300', '500'],
    ],
    [{ premiumCents: 100, feeBreakdown: [{ label: 'x', amount_cents: 1 }] }, 'fee_breakdown_disagrees', []],
    [{ amountCents: 49 }, 'total_out_of_bounds', ['50']],
    [{ premiumCents: 100_000_000, feeCents: 1 }, 'total_out_of_bounds', ['100000001']],
    [{ amountCents: 100, downPaymentPercent: 10 }, 'plan_incomplete', ['total_installments']],
    [{ amountCents: 100, downPaymentCents: 10 }, 'plan_incomplete', ['total_installments']],
    [
      { amountCents: 100, downPaymentCents: 101, totalInstallments: 2 },
      'down_payment_exceeds_total',
      ['100'],
    ],
  ] as const)('is refused with a word of what is wrong: %j', (asked, code, words) => {
    const refused = ask(asked as Partial<AskedAmounts>)
    expect(refused).toMatchObject({ rejected: true, kind: 'invalid', code })
    for (const word of words) expect((refused as { message: string }).message).toContain(word)
  })

  it('goes from 50 cents to a million dollars', () => {
    expect(taken({ amountCents: 50 }).amount_cents).toBe(50)
    expect(taken({ amountCents: 100_000_000 }).amount_cents).toBe(100_000_000)
  })
})

describe('the plan of a session', () => {
  it('takes a percentage exactly and rounds it down', () => {
    expect(
      planOf({ amountCents: 10_001, totalInstallments: 3, downPaymentPercent: 33 }).down_payment_cents,
    ).toBe(3_300)
    // binary floating point gives 4099
    expect(
      planOf({ amountCents: 50_000, totalInstallments: 3, downPaymentPercent: 8.2 }).down_payment_cents,
    ).toBe(4_100)
    const tiny = { amountCents: 100_000_000, totalInstallments: 3, downPaymentPercent: 1e-7 }
    expect(planOf(tiny).down_payment_cents).toBe(0)
  })

  it('lets flat cents win over the percentage, and is nothing down without either', () => {
    const both = { amountCents: 1_000, totalInstallments: 2, downPaymentPercent: 50, downPaymentCents: 100 }
    expect(planOf(both).down_payment_cents).toBe(100)
    expect(taken({ amountCents: 1_000, totalInstallments: 2 }).amount_cents).toBe(0)
  })

  it('sums exactly to the total, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 50, max: 100_000_000 }),
        fc.integer({ min: 1, max: 60 }),
        fc.oneof(fc.integer({ min: 0, max: 100 }), fc.double({ min: 0, max: 100, noNaN: true })),
        (amountCents, totalInstallments, downPaymentPercent) => {
          const { plan, amount_cents, line_items } = taken({
            amountCents,
            totalInstallments,
            downPaymentPercent,
          }) as SessionAmounts & { plan: NonNullable<SessionAmounts['plan']> }
          const instalments = schedule(plan, Date.UTC(2026, 0, 31))
          const paid = instalments.reduce((sum, one) => sum + one.amount_cents, amount_cents)
          expect(paid).toBe(amountCents)
          expect(line_items.reduce((sum, one) => sum + one.amount_cents, 0)).toBe(amountCents)
          expect(instalments.every((one) => one.amount_cents >= 0)).toBe(true)
          expect(amount_cents * 100 <= amountCents * downPaymentPercent + 1e-4 * amountCents).toBe(true)
        },
      ),
      runs(),
    )
  })
})

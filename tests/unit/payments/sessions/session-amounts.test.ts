import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AskedAmounts,
  type SessionAmounts,
  sessionAmounts,
} from '../../../../domain/payments/sessions/session-amounts.ts'
import { schedule } from '../../../../domain/payments/sessions/session-plan.ts'
import { runs } from '../../../support/generated.ts'

const NOTHING: AskedAmounts = {
  amount_cents: null,
  premium_cents: null,
  fee_cents: null,
  fee_breakdown: null,
  total_installments: null,
  down_payment_percent: null,
  down_payment_cents: null,
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
    expect(taken({ amount_cents: 10_500, fee_cents: 500 })).toEqual({
      amount_cents: 10_500,
      premium_cents: 10_000,
      fee_cents: 500,
      plan: null,
      line_items: [
        { label: 'Premium', amount_cents: 10_000 },
        { label: 'Fees', amount_cents: 500 },
      ],
    })
    expect(taken({ premium_cents: 10_000, fee_cents: 500 }).amount_cents).toBe(10_500)
    expect(taken({ amount_cents: 105, premium_cents: 100, fee_cents: 5 }).amount_cents).toBe(105)
  })

  it('shows each fee on a line of its own', () => {
    const fee_breakdown = [
      { label: 'Policy fee', amount_cents: 200 },
      { label: 'Filing', amount_cents: 300 },
    ]
    const { line_items } = taken({ premium_cents: 10_000, fee_cents: 500, fee_breakdown })
    expect(line_items).toEqual([{ label: 'Premium', amount_cents: 10_000 }, ...fee_breakdown])
  })

  it.each([
    [{}, 'amount_missing', ['amount_cents', 'premium_cents']],
    [{ amount_cents: 100, premium_cents: 90, fee_cents: 5 }, 'amounts_disagree', ['100', '95']],
    [{ amount_cents: 100, fee_cents: 101 }, 'fee_exceeds_amount', ['100', '101']],
    [
      { premium_cents: 100, fee_cents: 500, fee_breakdown: [{ label: 'x', amount_cents: 300 }] },
      'fee_breakdown_disagrees',
      ['300', '500'],
    ],
    [{ premium_cents: 100, fee_breakdown: [{ label: 'x', amount_cents: 1 }] }, 'fee_breakdown_disagrees', []],
    [{ amount_cents: 49 }, 'total_out_of_bounds', ['50']],
    [{ premium_cents: 100_000_000, fee_cents: 1 }, 'total_out_of_bounds', ['100000001']],
    [{ amount_cents: 100, down_payment_percent: 10 }, 'plan_incomplete', ['total_installments']],
    [{ amount_cents: 100, down_payment_cents: 10 }, 'plan_incomplete', ['total_installments']],
    [
      { amount_cents: 100, down_payment_cents: 101, total_installments: 2 },
      'down_payment_exceeds_total',
      ['100'],
    ],
  ] as const)('is refused with a word of what is wrong: %j', (asked, code, words) => {
    const refused = ask(asked as Partial<AskedAmounts>)
    expect(refused).toMatchObject({ rejected: true, kind: 'invalid', code })
    for (const word of words) expect((refused as { message: string }).message).toContain(word)
  })

  it('goes from 50 cents to a million dollars', () => {
    expect(taken({ amount_cents: 50 }).amount_cents).toBe(50)
    expect(taken({ amount_cents: 100_000_000 }).amount_cents).toBe(100_000_000)
  })
})

describe('the plan of a session', () => {
  it('takes a percentage exactly and rounds it down', () => {
    expect(
      planOf({ amount_cents: 10_001, total_installments: 3, down_payment_percent: 33 }).down_payment_cents,
    ).toBe(3_300)
    // binary floating point gives 4099
    expect(
      planOf({ amount_cents: 50_000, total_installments: 3, down_payment_percent: 8.2 }).down_payment_cents,
    ).toBe(4_100)
    const tiny = { amount_cents: 100_000_000, total_installments: 3, down_payment_percent: 1e-7 }
    expect(planOf(tiny).down_payment_cents).toBe(0)
  })

  it('lets flat cents win over the percentage, and is nothing down without either', () => {
    const both = {
      amount_cents: 1_000,
      total_installments: 2,
      down_payment_percent: 50,
      down_payment_cents: 100,
    }
    expect(planOf(both).down_payment_cents).toBe(100)
    expect(taken({ amount_cents: 1_000, total_installments: 2 }).amount_cents).toBe(0)
  })

  it('sums exactly to the total, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 50, max: 100_000_000 }),
        fc.integer({ min: 1, max: 60 }),
        fc.oneof(fc.integer({ min: 0, max: 100 }), fc.double({ min: 0, max: 100, noNaN: true })),
        (total, total_installments, down_payment_percent) => {
          const { plan, amount_cents, line_items } = taken({
            amount_cents: total,
            total_installments,
            down_payment_percent,
          }) as SessionAmounts & { plan: NonNullable<SessionAmounts['plan']> }
          const installments = schedule(plan, Date.UTC(2026, 0, 31))
          const paid = installments.reduce((sum, one) => sum + one.amount_cents, amount_cents)
          expect(paid).toBe(total)
          expect(line_items.reduce((sum, one) => sum + one.amount_cents, 0)).toBe(total)
          expect(installments.every((one) => one.amount_cents >= 0)).toBe(true)
          expect(amount_cents * 100 <= total * down_payment_percent + 1e-4 * total).toBe(true)
        },
      ),
      runs(),
    )
  })
})

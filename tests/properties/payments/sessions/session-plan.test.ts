import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { daysInMonth } from '../../../../domain/kernel/calendar.ts'
import { sessionAmounts } from '../../../../domain/payments/sessions/session-amounts.ts'
import { schedule, sessionPlan } from '../../../../domain/payments/sessions/session-plan.ts'
import { runs } from '../../../support/generated.ts'

const totals = fc.integer({ min: 50, max: 100_000_000 })
const installments = fc.integer({ min: 1, max: 60 })
/** A percentage from 0 to 100 by its digits and how many of them are decimals. */
const percentages = fc
  .integer({ min: 0, max: 6 })
  .chain((scale) => fc.integer({ min: 0, max: 100 * 10 ** scale }).map((digits) => ({ digits, scale })))

const NOTHING = {
  premium_cents: null,
  fee_cents: null,
  fee_breakdown: null,
  down_payment_cents: null,
}

describe('the amounts of a plan', () => {
  test('are floors, and the last installment takes the rest', () => {
    fc.assert(
      fc.property(totals, fc.nat(), installments, (total, some, count) => {
        const down = some % (total + 1)
        const plan = sessionPlan(total, down, count)
        const { per_installment_cents: each, last_installment_cents: last } = plan
        const remaining = BigInt(total - down)
        expect(BigInt(each)).toBe(remaining / BigInt(count))
        expect(BigInt(last) - BigInt(each)).toBe(remaining % BigInt(count))
        const amounts = schedule(plan, 0).map(({ amount_cents }) => amount_cents)
        expect(amounts).toHaveLength(count)
        expect(amounts.every((cents) => Number.isSafeInteger(cents) && cents >= 0)).toBe(true)
        expect(amounts.reduce((sum, cents) => sum + cents, down)).toBe(total)
      }),
      runs(),
    )
  })

  test('take a percentage by its decimals, rounded down to the cent', () => {
    fc.assert(
      fc.property(totals, percentages, installments, (amountCents, { digits, scale }, totalInstallments) => {
        const downPaymentPercent = Number(`${digits}e-${scale}`)
        const plan = { total_installments: totalInstallments, down_payment_percent: downPaymentPercent }
        const asked = { ...NOTHING, amount_cents: amountCents, ...plan }
        const amounts = sessionAmounts(asked)
        const exact = (BigInt(amountCents) * BigInt(digits)) / (100n * 10n ** BigInt(scale))
        expect(amounts).toMatchObject({ amount_cents: Number(exact) })
      }),
      runs(),
    )
  })
})

describe('the days of a plan', () => {
  const created = fc.oneof(
    fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2199, 11, 31) }),
    // the days that some months do not have
    fc
      .record({
        year: fc.integer({ min: 2000, max: 2199 }),
        month: fc.integer({ min: 1, max: 12 }),
        day: fc.constantFrom(28, 29, 30, 31),
        ms: fc.nat({ max: 86_399_999 }),
      })
      .map(
        ({ year, month, day, ms }) => Date.UTC(year, month - 1, Math.min(day, daysInMonth(year, month))) + ms,
      ),
  )

  test('are those of its creation in UTC, or the last of a shorter month, at 17:00', () => {
    fc.assert(
      fc.property(created, installments, (createdAt, count) => {
        const from = new Date(createdAt)
        const dates = schedule(sessionPlan(1_000, 0, count), createdAt).map(({ dueAt }) => new Date(dueAt))
        for (const [index, date] of dates.entries()) {
          const months = from.getUTCFullYear() * 12 + from.getUTCMonth() + index + 1
          const [year, month] = [Math.floor(months / 12), (months % 12) + 1]
          expect([date.getUTCFullYear(), date.getUTCMonth() + 1]).toEqual([year, month])
          expect(date.getUTCDate()).toBe(Math.min(from.getUTCDate(), daysInMonth(year, month)))
          expect(date.toISOString().slice(10)).toBe('T17:00:00.000Z')
        }
      }),
      runs(30),
    )
  })
})

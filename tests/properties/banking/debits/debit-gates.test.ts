import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isUnusual } from '../../../../domain/banking/debits/debit-gates.ts'
import { compare, decimal, multiply } from '../../../../domain/kernel/money.ts'
import { runs } from '../../../support/generated.ts'

const amounts = fc.integer({ min: 1, max: 9_999_999_999 })
const recentOf = (cents: readonly number[]) => ({
  count: cents.length,
  sumCents: cents.reduce((sum, one) => sum + BigInt(one), 0n),
})

test('an amount is unusual where it is more than 100 % above the mean, to the cent', () => {
  fc.assert(
    fc.property(fc.array(amounts, { minLength: 1, maxLength: 60 }), (cents) => {
      const recent = recentOf(cents)
      // the largest whole amount that is not above twice the mean
      const most = Number((2n * recent.sumCents) / BigInt(recent.count))
      expect(isUnusual(most, recent)).toBe(false)
      expect(isUnusual(most + 1, recent)).toBe(true)
    }),
    runs(),
  )
})

test('it is the rule of exact decimals, whatever the order of the debits', () => {
  fc.assert(
    fc.property(fc.array(amounts, { minLength: 1, maxLength: 60 }), amounts, (cents, amount) => {
      const recent = recentOf(cents)
      const exact = (value: bigint | number) => decimal(String(value))!
      const isAbove =
        compare(multiply(exact(amount), exact(cents.length)), multiply(exact(2), exact(recent.sumCents))) > 0
      expect(isUnusual(amount, recent)).toBe(isAbove)
      expect(isUnusual(amount, recentOf([...cents].reverse()))).toBe(isAbove)
    }),
    runs(),
  )
})

test('without a history no amount is unusual', () => {
  fc.assert(
    fc.property(amounts, (amount) => !isUnusual(amount, recentOf([]))),
    runs(),
  )
})

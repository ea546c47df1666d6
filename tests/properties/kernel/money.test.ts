import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  centsOf,
  compare,
  type Decimal,
  decimal,
  divideHalfUp,
  multiply,
  premiumCents,
  dollars as shownDollars,
} from '../../../domain/kernel/money.ts'
import { auditableCents, premiumTable } from '../../../domain/payroll/wages-and-premium.ts'
import { runs } from '../../support/generated.ts'
import { row } from '../../support/payroll.ts'

/** The oracle: exact fractions, and the nearest integer found by trying rather than by a formula. */
interface Fraction {
  readonly n: bigint
  readonly d: bigint
}
const fraction = ({ digits, scale }: Decimal): Fraction => ({ n: digits, d: 10n ** BigInt(scale) })
const times = (a: Fraction, b: Fraction): Fraction => ({ n: a.n * b.n, d: a.d * b.d })
const minus = (a: Fraction, b: Fraction): Fraction => ({ n: a.n * b.d - b.n * a.d, d: a.d * b.d })
const whole = (n: number | bigint): Fraction => ({ n: BigInt(n), d: 1n })
const abs = (n: bigint) => (n < 0n ? -n : n)

function expectHalfUp(result: bigint, exact: Fraction): void {
  const off = minus(whole(result), exact)
  // at most half away, and a half only away from zero
  expect(2n * abs(off.n) <= off.d).toBe(true)
  if (2n * abs(off.n) === off.d) expect(abs(result) * exact.d > abs(exact.n)).toBe(true)
}

const decimals = fc
  .tuple(fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }), fc.nat({ max: 9 }))
  .map(([digits, scale]): Decimal => ({ digits, scale }))
const written = ({ digits, scale }: Decimal): string => {
  const text = abs(digits)
    .toString()
    .padStart(scale + 1, '0')
  const point = text.length - scale
  return `${digits < 0n ? '-' : ''}${text.slice(0, point)}${scale > 0 ? `.${text.slice(point)}` : ''}`
}
/** Dollars as clients send them, with more or fewer digits than cents. */
const dollars = fc.oneof(
  fc.integer({ min: 0, max: 1_000_000_000 }).map((cents) => cents / 100),
  fc.integer({ min: 0, max: 2_000_000_000 }).map((mills) => mills / 1000),
  fc.double({ min: 0, max: 10_000_000, noNaN: true }),
)
const rates = fc.integer({ min: 0, max: 10_000_000 }).map((n) => written({ digits: BigInt(n), scale: 4 }))

describe('decimals', () => {
  test('mean exactly what is written', () => {
    fc.assert(
      fc.property(decimals, (value) => void expect(decimal(written(value))).toEqual(value)),
      runs(),
    )
  })

  test('of a JavaScript number mean its shortest decimal form, exponents included', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const exact = fraction(decimal(value)!)
        // reading the fraction back gives the very same number
        expect(Number(`${exact.n}e-${exact.d.toString().length - 1}`)).toBe(value === 0 ? 0 : value)
      }),
      runs(),
    )
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      expect(decimal(value)).toBeNull()
    for (const text of ['', '.', '1.', '.5', '1,000', '0x10', '1e', '--1', '1 2'])
      expect(decimal(text)).toBeNull()
  })

  test('multiply and compare exactly', () => {
    fc.assert(
      fc.property(decimals, decimals, (a, b) => {
        const product = times(fraction(a), fraction(b))
        expect(minus(fraction(multiply(a, b)), product).n).toBe(0n)
        expect(Math.sign(compare(a, b))).toBe(
          Number(minus(fraction(a), fraction(b)).n > 0n) - Number(minus(fraction(a), fraction(b)).n < 0n),
        )
      }),
      runs(),
    )
  })
})

describe('cents', () => {
  test('are written for people with two digits behind the point', () => {
    fc.assert(
      fc.property(fc.integer(), (cents) => {
        const shown = shownDollars(cents)
        expect(shown).toMatch(/^-?\$\d{1,3}(,\d{3})*\.\d{2}$/)
        expect(Number(shown.replaceAll(/[$,.]/g, ''))).toBe(cents)
      }),
    )
  })

  test('are what dollars come to exactly, and nothing where a fraction of a cent is left', () => {
    fc.assert(fc.property(fc.integer(), (cents) => void expect(centsOf(cents / 100)).toBe(cents)))
    for (const dollars of [1.005, 0.001, 1e-7]) expect(centsOf(dollars)).toBeNull()
  })
})

describe('rounding half up', () => {
  test('goes to the nearest whole number, halves away from zero', () => {
    const numbers = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
    fc.assert(
      fc.property(numbers, numbers, (n, d) => {
        fc.pre(d !== 0n)
        expectHalfUp(divideHalfUp(n, d), d < 0n ? { n: -n, d: -d } : { n, d })
      }),
      runs(),
    )
    fc.assert(
      fc.property(fc.bigInt(), (n) => void expect(divideHalfUp(2n * n + 1n, 2n)).toBe(n < 0n ? n : n + 1n)),
      runs(),
    )
  })

  test('is what premium is computed by, with nothing rounded on the way', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), rates, (cents, rate) => {
        const exact = times(whole(cents), times(fraction(decimal(rate)!), { n: 1n, d: 100n }))
        expectHalfUp(BigInt(premiumCents(cents, decimal(rate)!)), exact)
      }),
      runs(),
    )
    expect(premiumCents(100_000, decimal('2.50')!)).toBe(2_500)
  })
})

describe('auditable wages', () => {
  test('are gross wages in cents, whatever the overtime inside them', () => {
    fc.assert(
      fc.property(dollars, fc.option(dollars, { nil: undefined }), (gross_wages, overtime) => {
        const cents = auditableCents(row({ gross_wages, overtime }), 'CA', false)
        expectHalfUp(BigInt(cents), times(fraction(decimal(gross_wages)!), whole(100)))
      }),
      runs(),
    )
  })

  test('are hours times rate, exactly, when there are no gross wages', () => {
    fc.assert(
      fc.property(dollars, dollars, (hours, rate) => {
        const cents = auditableCents(row({ gross_wages: undefined, hours, rate }), 'CA', false)
        const exact = times(times(fraction(decimal(hours)!), fraction(decimal(rate)!)), whole(100))
        fc.pre(exact.n / exact.d < BigInt(Number.MAX_SAFE_INTEGER))
        expectHalfUp(BigInt(cents), exact)
      }),
      runs(),
    )
    expect(auditableCents(row({ gross_wages: undefined, hours: 40, rate: 25.5 }), 'CA', false)).toBe(102_000)
  })

  test('leave out a third of overtime where it is excluded, and are never below nothing', () => {
    fc.assert(
      fc.property(dollars, dollars, fc.constantFrom('CA', 'TX'), (gross_wages, overtime, state) => {
        const cents = auditableCents(row({ gross_wages, overtime }), state, true)
        const third = times(fraction(decimal(overtime)!), { n: 100n, d: 3n })
        const exact = minus(times(fraction(decimal(gross_wages)!), whole(100)), third)
        if (exact.n < 0n) expect(cents).toBe(0)
        else expectHalfUp(BigInt(cents), exact)
      }),
      runs(),
    )
  })

  test('keep all overtime in Pennsylvania, Delaware, Nevada and Utah', () => {
    fc.assert(
      fc.property(
        dollars,
        dollars,
        fc.constantFrom('PA', 'DE', 'NV', 'UT'),
        (gross_wages, overtime, state) => {
          const wages = row({ gross_wages, overtime })
          expect(auditableCents(wages, state, true)).toBe(auditableCents(wages, state, false))
        },
      ),
      runs(),
    )
  })
})

describe('a premium table', () => {
  const pairs = fc.tuple(fc.constantFrom('8810', '5606', '8742'), fc.constantFrom('CA', 'NV', 'TX'))

  test('has a premium for the pairs it knows and none, not zero, for the others', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(pairs, { selector: (pair) => pair.join(), minLength: 1 }),
        pairs,
        rates,
        fc.nat({ max: 1_000_000_000 }),
        (known, [classCode, state], rate, cents) => {
          const table = premiumTable(
            known.map(([class_code, of]) => ({ class_code, state: of, rate_per_100: rate })),
          )
          const isKnown = known.some(([code, of]) => code === classCode && of === state)
          const expected = isKnown ? premiumCents(cents, decimal(rate)!) : null
          expect(table.premiumOf(classCode, state, cents)).toBe(expected)
        },
      ),
      runs(),
    )
    expect(premiumTable([]).premiumOf('8810', 'CA', 100)).toBe(0)
  })
})

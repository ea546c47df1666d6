import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { showValue } from '../../../domain/payroll/payroll-row.ts'
import { runs } from '../../support/generated.ts'

/** Any text, of any UTF-16 units: halves of surrogate pairs, and pairs around the place of the cut. */
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', '\ude00', '漢'), minLength: 30, maxLength: 90 }),
  fc.string({ unit: 'binary', maxLength: 100 }),
  fc.tuple(fc.string(), fc.string()).map(([a, b]) => `${a}\ud83d${b}`),
)

describe('a value in a message', () => {
  it('is well-formed text of at most 40 characters', () => {
    fc.assert(
      fc.property(text, (value) => {
        const shown = showValue(value)
        expect(shown).not.toMatch(/\p{Surrogate}/u)
        expect([...shown].length).toBeLessThanOrEqual(40)
      }),
      runs(200),
    )
  })

  it('is the value itself where that is short, else its beginning', () => {
    const shownAsItIs = fc.string({ unit: fc.constantFrom('a', '😀', '漢', '-'), maxLength: 100 })
    fc.assert(
      fc.property(shownAsItIs, (value) => {
        const characters = [...value]
        const expected = characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : value
        expect(showValue(value)).toBe(expected)
      }),
      runs(200),
    )
  })
})

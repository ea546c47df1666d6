import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compare, decimal } from '../../../domain/kernel/money.ts'
import { parseInSlices, parseJson } from '../../../interfaces/http/json/strict-json.ts'
import { runs } from '../../support/generated.ts'

/** Parses in one slice and in slices of one character: both must say the same. */
function parse(text: string): ReturnType<typeof parseJson> {
  const bytes = Buffer.from(text)
  const whole = parseJson(bytes)
  const steps = parseInSlices(bytes, 1)
  let step = steps.next()
  while (!step.done) step = steps.next()
  expect(step.value).toEqual(whole)
  return whole
}

/** Object keys as texts of JSON, so that an object may repeat one. */
const members = fc.array(
  fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e:', '"', '}'), fc.jsonValue({ maxDepth: 2 })),
  { maxLength: 6 },
)

describe('parseJson', () => {
  it('agrees with JSON.parse on every value that may be stored', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }), fc.boolean(), (value, spaced) => {
        const text = JSON.stringify(value, null, spaced ? 1 : 0)
        const answer = parse(text)
        if (text.includes('\\u0000') || text.includes('"__proto__"')) return
        expect(answer).toEqual({ ok: true, value: JSON.parse(text) })
      }),
      runs(15, 1000),
    )
  })

  it('refuses exactly the texts that JSON.parse refuses, never throwing', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\ 1anul') }), (text) => {
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        const answer = parse(text)
        if (!valid) expect(answer.ok).toBe(false)
        else if (!answer.ok) expect(answer.kind).toBe('duplicate_key')
      }),
      runs(100, 4000),
    )
  })

  it('refuses an object exactly when it repeats a key', () => {
    fc.assert(
      fc.property(members, fc.nat({ max: 3 }), (entries, wraps) => {
        const object = `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`
        const text = `${'['.repeat(wraps)}${object}${']'.repeat(wraps)}`
        const repeats = new Set(entries.map(([key]) => key)).size < entries.length
        const answer = parse(text)
        if (text.includes('\\u0000') || text.includes('"__proto__"')) return
        expect(answer.ok ? null : answer.kind).toBe(repeats ? 'duplicate_key' : null)
      }),
      runs(),
    )
  })

  it('finds NUL and lone surrogates wherever they stand, and only those', () => {
    const character = fc.constantFrom('\0', '\ud800', '\udc00', '😀', 'a', '\\', '"', '\u0001')
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 6 }), fc.nat({ max: 3 }), (text, wraps) => {
        let value: unknown = text
        for (let level = 0; level < wraps; level += 1) value = level % 2 === 0 ? { k: value } : [0, value]
        const refused = text.includes('\0') || Buffer.from(text).toString() !== text
        const answer = parse(JSON.stringify(value))
        expect(answer.ok ? null : answer.kind).toBe(refused ? 'characters' : null)
      }),
      runs(100, 4000),
    )
  })

  it('takes a number exactly when it denotes what its double writes, as short as can be or with 17 digits', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0009123456789'), minLength: 1, maxLength: 22 })
    const literal = fc
      .tuple(digits, fc.option(digits), fc.option(fc.integer({ min: -340, max: 15 })))
      .map(([whole, fraction, exponent]) => {
        const integer = whole.replace(/^0+(?=\d)/, '')
        return `${integer}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`
      })
    fc.assert(
      fc.property(literal, fc.boolean(), (number, isNegative) => {
        const text = `${isNegative ? '-' : ''}${number}`
        const value = Number(text)
        const written = [String(value), value.toPrecision(17)].map((one) => decimal(one)!)
        const isKept =
          Math.abs(value) > Number.MAX_SAFE_INTEGER ||
          written.some((one) => compare(decimal(text)!, one) === 0)
        for (const body of [text, `{"a":[1,${text}]}`]) expect(parse(body).ok).toBe(isKept)
      }),
      runs(100, 4000),
    )
  })

  it('never throws on arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(typeof parseJson(Buffer.from(bytes)).ok).toBe('boolean')
      }),
      runs(),
    )
  })
})

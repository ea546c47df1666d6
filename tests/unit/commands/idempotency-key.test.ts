import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isIdempotencyKey } from '../../../application/commands/keyed-call.ts'
import { requestHash } from '../../../application/commands/request-hash.ts'
import { runs } from '../../support/generated.ts'

describe('Idempotency-Key header', () => {
  test.each([
    ['a', true],
    ['~!"#$%&', true],
    ['k'.repeat(255), true],
    ['', false],
    ['k'.repeat(256), false],
    ['with space', false],
    ['tab\t', false],
    ['ümlaut', false],
    ['nul\0', false],
    [undefined, false],
    [['a', 'b'], false],
  ])('%j is usable: %s', (value, usable) => {
    expect(isIdempotencyKey(value)).toBe(usable)
  })
})

describe('request hash', () => {
  test('does not depend on the order of members', async () => {
    expect(await requestHash({ a: 1, b: [{ c: null, d: 'x' }] })).toBe(
      await requestHash({ b: [{ d: 'x', c: null }], a: 1 }),
    )
  })

  test('is the hash that stored keys were compared by', async () => {
    expect(await requestHash({ b: [1, { d: 'x', c: null }, []], a: {} })).toBe(
      createHash('sha256').update('{"a":{},"b":[1,{"c":null,"d":"x",},[],],}').digest('hex'),
    )
  })

  test.each([
    [{ a: 1 }, { a: '1' }],
    [{ a: [1, 2] }, { a: [2, 1] }],
    [{ a: [[1], 2] }, { a: [1, [2]] }],
    [{ a: { b: 1 }, c: 2 }, { a: { b: 1, c: 2 } }],
    [{ a: null }, {}],
    [[], {}],
    [['a,b'], ['a', 'b']],
  ])('%j and %j are different requests', async (one, other) => {
    expect(await requestHash(one)).not.toBe(await requestHash(other))
  })

  test('stays the same when members are written in another order', async () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, part]) => [key, reversed(part)]),
      )
    }
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
        expect(await requestHash(reversed(value))).toBe(await requestHash(value))
      }),
      runs(),
    )
  })

  test('differs when any one value differs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ name: fc.string(), gross_wages: fc.double({ noNaN: true }) }), { minLength: 1 }),
        fc.nat(),
        async (employees, pick) => {
          const changed = structuredClone(employees)
          changed[pick % changed.length]!.name += 'x'
          expect(await requestHash({ employees: changed })).not.toBe(await requestHash({ employees }))
        },
      ),
      runs(),
    )
  })
})

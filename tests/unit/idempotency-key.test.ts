import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isIdempotencyKey } from '../../application/idempotency/keyed-call.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import { fold } from '../../domain/kernel/decider.ts'
import {
  IdempotencyKeyAnswered,
  IdempotencyKeyClaimed,
  type IdempotencyKeyEvent,
  IdempotencyKeyReleased,
  idempotencyKey,
} from '../../domain/uniqueness/idempotency-key.ts'

const claim = { fingerprint: 'f'.repeat(24), request_hash: 'a'.repeat(24), command_id: 'command-1' }
const answer = { fingerprint: claim.fingerprint, status: 202, body: { file_id: 'x' }, created_id: null }

function decide(
  given: readonly IdempotencyKeyEvent[],
  command: Parameters<typeof idempotencyKey.decide>[0],
): ReturnType<typeof idempotencyKey.decide> {
  return idempotencyKey.decide(command, fold(idempotencyKey, given))
}

describe('idempotency key', () => {
  test('the first claim fixes the command id', () => {
    expect(decide([], { type: 'Claim', data: claim })).toEqual([IdempotencyKeyClaimed.of(claim)])
  })

  test('a second claim of the same request changes nothing', () => {
    const again = { ...claim, command_id: 'command-2' }
    expect(decide([IdempotencyKeyClaimed.of(claim)], { type: 'Claim', data: again })).toEqual([])
    expect(fold(idempotencyKey, [IdempotencyKeyClaimed.of(claim)]).claimed?.command_id).toBe('command-1')
  })

  test('a claim for another request is refused, before and after the answer', () => {
    const other = { ...claim, request_hash: 'b'.repeat(24) }
    const claimed = IdempotencyKeyClaimed.of(claim)
    for (const given of [[claimed], [claimed, IdempotencyKeyAnswered.of(answer)]]) {
      expect(decide(given, { type: 'Claim', data: other })).toMatchObject({
        rejected: true,
        kind: 'conflict',
        code: 'idempotency_key_reused',
      })
    }
  })

  test('the first answer stays', () => {
    const given = [IdempotencyKeyClaimed.of(claim), IdempotencyKeyAnswered.of(answer)]
    expect(decide(given, { type: 'Answer', data: { ...answer, status: 500 } })).toEqual([])
    expect(fold(idempotencyKey, given).answered).toEqual(answer)
  })

  test('is free again when its claim is released, by that claim alone and before an answer', () => {
    const claimed = IdempotencyKeyClaimed.of(claim)
    const released = { fingerprint: claim.fingerprint, command_id: claim.command_id }
    const release = { type: 'Release', data: released } as const
    expect(decide([claimed], release)).toEqual([IdempotencyKeyReleased.of(released)])
    const other = { ...claim, command_id: 'command-2', request_hash: 'b'.repeat(24) }
    const free = [claimed, IdempotencyKeyReleased.of(released)]
    expect(decide(free, { type: 'Claim', data: other })).toEqual([IdempotencyKeyClaimed.of(other)])
    for (const given of [
      [],
      free,
      [...free, IdempotencyKeyClaimed.of(other)],
      [claimed, IdempotencyKeyAnswered.of(answer)],
    ]) {
      expect(decide(given, release)).toEqual([])
    }
  })
})

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
      { numRuns: 300 },
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
    )
  })
})

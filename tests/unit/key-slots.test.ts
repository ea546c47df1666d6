import { describe, expect, test } from 'vitest'
import { KeySlots } from '../../application/process-managers/key-slots.ts'
import type { ClaimedWork } from '../../application/process-managers/work-store.ts'

const SLOTS = 2
const GROWTH = {
  upTo: 8,
  shared: { slots: 10, of: (payload: unknown) => [(payload as { host: string }).host] },
}

function piece(key: string, host = 'h'): ClaimedWork {
  return {
    ...{
      processManager: 'p',
      kind: 'k',
      key: 'x',
      payload: { host },
      concurrencyKey: key,
      dueAt: 0,
      attempt: 1,
    },
    ...{ token: 1n, correlationId: 'c', causationId: 'c', tenantId: null, environment: null },
  }
}

const slotsOf = (growth?: typeof GROWTH) =>
  new KeySlots({ slots: SLOTS, of: () => '', ...(growth ? { growth } : {}) })
/** How many more a key may take. */
const left = (slots: KeySlots, key: string) => Math.max(0, SLOTS - (slots.busy().get(key) ?? 0))

function finish(slots: KeySlots, times: number, done: boolean | null = true, ms = 1, of = piece('a')): void {
  for (let n = 0; n < times; n += 1) {
    slots.take(of)
    slots.free(of, done, ms)
  }
}

describe('slots of keys', () => {
  test('without growth every key has the same', () => {
    const slots = slotsOf()
    finish(slots, 5)
    expect(left(slots, 'a')).toBe(2)
    slots.take(piece('a'))
    expect([left(slots, 'a'), left(slots, 'b')]).toEqual([1, 2])
  })

  test('quick work adds one each, up to the most; what is slow or fails takes half', () => {
    const slots = slotsOf(GROWTH)
    finish(slots, 3)
    expect(left(slots, 'a')).toBe(5)
    finish(slots, 20)
    expect(left(slots, 'a')).toBe(8)
    finish(slots, 1, true, 1_500)
    expect(left(slots, 'a')).toBe(4)
    finish(slots, 1, false)
    finish(slots, 1, false)
    expect(left(slots, 'a')).toBe(2)
    // nothing can be said of what was interrupted
    finish(slots, 2)
    finish(slots, 1, null)
    expect(left(slots, 'a')).toBe(4)
  })

  test('what is under way counts, also behind a fall', () => {
    const slots = slotsOf(GROWTH)
    finish(slots, 6)
    const under = Array.from({ length: 6 }, () => piece('a'))
    for (const one of under) slots.take(one)
    expect(left(slots, 'a')).toBe(2)
    slots.free(under[0]!, false, 1)
    // four are allowed, five are under way
    expect(left(slots, 'a')).toBe(0)
  })

  test('keys that share something grow within its bound, and each has its own slots all the same', () => {
    const slots = slotsOf(GROWTH)
    finish(slots, 6, true, 1, piece('a'))
    finish(slots, 6, true, 1, piece('b'))
    finish(slots, 6, true, 1, piece('other', 'i'))
    for (let n = 0; n < 8; n += 1) slots.take(piece('a'))
    expect(left(slots, 'a')).toBe(0)
    expect(left(slots, 'b')).toBe(SLOTS + 2)
    expect(left(slots, 'other')).toBe(8)
    for (let n = 0; n < 3; n += 1) slots.take(piece('b'))
    expect(left(slots, 'b')).toBe(0)
    expect(left(slots, 'new')).toBe(SLOTS)
  })
})

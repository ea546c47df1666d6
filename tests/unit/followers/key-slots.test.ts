import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { KeySlots } from '../../../application/followers/key-slots.ts'
import { backoff, work } from '../../../application/followers/process-manager.ts'
import { KindSlots } from '../../../application/followers/slots.ts'
import type { ClaimedWork, WorkToStore } from '../../../application/followers/work-store.ts'

const SLOTS = 2
const GROWTH = {
  upTo: 8,
  shared: { slots: 10, of: (payload: unknown) => [(payload as { host: string }).host] },
}

function piece(key: string, host = 'h'): ClaimedWork {
  return {
    processManager: 'p',
    kind: 'k',
    key: 'x',
    payload: { host },
    concurrencyKey: key,
    dueAt: 0,
    awaySince: null,
    attempt: 1,
    token: 1n,
    correlationId: 'c',
    causationId: 'c',
    tenantId: null,
    environment: null,
    traceparent: null,
  }
}

const stored = (key: string): WorkToStore => ({ ...piece(key), traceparent: undefined })

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

  test('keys that share something have no more than its bound together', () => {
    const slots = slotsOf(GROWTH)
    finish(slots, 6, true, 1, piece('a'))
    finish(slots, 6, true, 1, piece('b'))
    finish(slots, 6, true, 1, piece('other', 'i'))
    for (let n = 0; n < 8; n += 1) slots.take(piece('a'))
    expect(left(slots, 'a')).toBe(0)
    expect(left(slots, 'b')).toBe(2)
    expect(left(slots, 'other')).toBe(8)
    expect([1, 2, 3].map(() => slots.take(piece('b')))).toEqual([true, true, false])
    expect(left(slots, 'b')).toBe(0)
    expect(left(slots, 'other')).toBe(8)
    expect(left(slots, 'new')).toBe(SLOTS)
  })

  test('first slots count against what is shared, and whoever waits for it is next', () => {
    const slots = slotsOf(GROWTH)
    const early = ['a', 'b', 'c', 'd', 'e'].flatMap((key) => [piece(key), piece(key)])
    expect(early.map((one) => slots.take(one))).toEqual(Array(10).fill(true))
    expect([slots.take(piece('f')), slots.take(piece('g'))]).toEqual([false, false])
    expect([slots.take(piece('h', 'i')), left(slots, 'f'), left(slots, 'g')]).toEqual([true, 0, 0])
    slots.free(early[0]!, true, 2_000)
    const next = slots.busy()
    expect(['f', 'g'].map((key) => SLOTS - next.get(key)!)).toEqual([1, 0])
    expect([slots.take(piece('f')), slots.take(piece('f'))]).toEqual([true, false])
  })
})

describe('a piece that is about to be stored', () => {
  const slots = (of: { readonly slots?: number; readonly isBegunAsStored?: true } = {}) => {
    const perKey = {
      slots: SLOTS,
      of: () => '',
      growth: { ...GROWTH, shared: { ...GROWTH.shared, slots: 3 } },
    }
    const declared = { payload: z.unknown(), retry: backoff(), timeLimitMs: 1, perKey, slots: 9 }
    const run = async () => ({ outcome: 'done' }) as const
    return new KindSlots('p', 'k', work({ ...declared, isBegunAsStored: true, ...of }, run))
  }
  const reserve = (of: KindSlots, ...keys: readonly string[]) => keys.map((key) => of.reserve(stored(key)))

  test('has the slots of its kind, its key and what keys share, and leaves what is not used to the next', () => {
    expect(reserve(slots(), 'a', 'a', 'a', 'b', 'b')).toEqual([true, true, false, true, false])
    const few = slots({ slots: 1 })
    expect(reserve(few, 'a', 'b')).toEqual([true, false])
    few.unreserve(stored('a'))
    expect(reserve(few, 'b')).toEqual([true])
  })

  test('comes behind what is due and not claimed yet', () => {
    const kind = slots()
    kind.hinted()
    expect(reserve(kind, 'a')).toEqual([false])
    kind.request()
    expect(reserve(kind, 'a')).toEqual([false])
    kind.claimed([])
    expect(reserve(kind, 'a')).toEqual([true])
    kind.polled()
    expect(reserve(kind, 'a')).toEqual([false])
  })

  test('waits where its key was full when others looked, and only then somebody looks when a slot is free', () => {
    const kind = slots()
    kind.polled()
    kind.request()
    kind.claimed([piece('a'), piece('a'), piece('b')])
    kind.freeKey(piece('b'), true, 1)
    expect(kind.toClaim).toBe(0)
    kind.freeKey(piece('a'), true, 1)
    expect(kind.toClaim).toBe(2)
    expect(reserve(kind, 'b')).toEqual([false])
    kind.request()
    // what a claim under way may have passed by
    kind.freeKey(piece('a'), true, 1)
    kind.claimed([])
    expect(kind.toClaim).toBe(2)
  })

  test('that was stored while its key was full is looked for when a slot of the key is free', () => {
    const kind = slots()
    expect(reserve(kind, 'a', 'a', 'a')).toEqual([true, true, false])
    kind.freeKey(piece('a'), true, 1)
    expect(kind.toClaim).toBeGreaterThan(0)
  })

  test('of a kind that is not begun as it is stored waits for a claim', () => {
    const declared = { payload: z.unknown(), retry: backoff(), timeLimitMs: 1 }
    const kind = new KindSlots(
      'p',
      'k',
      work(declared, async () => ({ outcome: 'done' })),
    )
    expect(reserve(kind, 'a')).toEqual([false])
  })
})

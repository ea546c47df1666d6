import { expect, test } from 'vitest'
import { RecentlyUsed } from '../../../application/commands/recently-used.ts'

test('keeps at least the last half of its limit and never more than the limit', () => {
  const limit = 20
  const entries = new RecentlyUsed<number, number>(limit)
  for (let key = 0; key < 200; key += 1) {
    entries.set(key, key)
    for (let back = 0; back < limit / 2; back += 1) {
      if (key >= back) expect(entries.get(key - back)).toBe(key - back)
    }
  }
  const kept = Array.from({ length: 200 }, (_, key) => entries.get(key)).filter(
    (value) => value !== undefined,
  )
  expect(kept.length).toBeLessThanOrEqual(limit)
})

test('is bounded in what its entries weigh; one that is heavier than all is kept beside them until the next one', () => {
  const entries = new RecentlyUsed<string, number>(100, (value, key) => value + key.length)
  const kept = () => {
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}`).concat('heavy')
    return keys.filter((key) => entries.get(key) !== undefined)
  }
  for (let n = 0; n < 40; n += 1) entries.set(`k${n}`, 7)
  expect(kept().length * 10).toBeLessThanOrEqual(100)
  expect(kept().length * 9).toBeGreaterThanOrEqual(40)
  for (let n = 0; n < 5; n += 1) {
    entries.set('heavy', 1_000 + n)
    expect(entries.get('heavy')).toBe(1_000 + n)
    expect(entries.get('k39')).toBe(7)
  }
  entries.set('heavier', 2_000)
  expect(entries.get('heavy')).toBeUndefined()
  entries.set('heavier', 1)
  expect(entries.get('heavier')).toBe(1)
  entries.delete('heavier')
  expect(entries.get('heavier')).toBeUndefined()
})

test('what is used stays while others go', () => {
  const entries = new RecentlyUsed<string, number>(10)
  entries.set('used', 1)
  for (let key = 0; key < 100; key += 1) {
    entries.set(`k${key}`, key)
    expect(entries.get('used')).toBe(1)
  }
  expect(entries.get('k0')).toBeUndefined()
})

test('a new value replaces the old one, and a deleted key is gone', () => {
  const entries = new RecentlyUsed<string, number>(4)
  entries.set('a', 1)
  entries.set('b', 1)
  entries.set('a', 2)
  expect(entries.get('a')).toBe(2)
  entries.delete('a')
  expect(entries.get('a')).toBeUndefined()
  const one = new RecentlyUsed<string, number>(1)
  one.set('a', 1)
  expect(one.get('a')).toBe(1)
  one.set('b', 2)
  expect([one.get('a'), one.get('b')]).toEqual([undefined, 2])
})

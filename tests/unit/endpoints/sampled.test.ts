import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Sampled } from '../../../interfaces/service/sampled.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

let taken = 0
const sampledIn = (ms: number) => {
  taken = 0
  return new Sampled(async () => {
    taken += 1
    vi.advanceTimersByTime(ms)
    return taken
  })
}

test('a sample is taken once for all who ask while it is, and kept for 20 times as long as it took', async () => {
  const sampled = sampledIn(10)
  expect(await Promise.all([sampled.get(), sampled.get(), sampled.get()])).toEqual([1, 1, 1])
  vi.advanceTimersByTime(189)
  expect(await sampled.get()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(await sampled.get()).toBe(2)
})

test('a sample is never older than 5 seconds, however long it took', async () => {
  const sampled = sampledIn(3_000)
  expect(await sampled.get()).toBe(1)
  vi.advanceTimersByTime(1_999)
  expect(await sampled.get()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(await sampled.get()).toBe(2)
})

test('one that failed is taken anew', async () => {
  let works = false
  const sampled = new Sampled(async () => {
    if (!works) throw new Error('away')
    return 'there'
  })
  await expect(sampled.get()).rejects.toThrow('away')
  works = true
  expect(await sampled.get()).toBe('there')
})

import { expect, test } from 'vitest'
import { isId } from '../../../domain/kernel/ids.ts'
import { RandomPool, SystemRandomness } from '../../../infrastructure/randomness.ts'

test('ids are 24 hex characters, unique, and ascend with the service time', () => {
  let now = Date.UTC(2026, 0, 1)
  const randomness = new SystemRandomness({ kind: 'virtual', now: () => now })
  const ids: string[] = []
  for (let count = 0; count < 5000; count += 1) {
    ids.push(randomness.id())
    now += 1000
  }
  expect(ids.every(isId)).toBe(true)
  expect(new Set(ids).size).toBe(5000)
  expect([...ids].sort()).toEqual(ids)
  expect(Number.parseInt(ids[0]!.slice(0, 8), 16)).toBe(Date.UTC(2026, 0, 1) / 1000)
})

test('command ids are UUIDs and hex has the length asked for', () => {
  const randomness = new SystemRandomness({ kind: 'system', now: () => 0 })
  expect(randomness.commandId()).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  for (const count of [0, 1, 32, 4096, 5000])
    expect(randomness.hex(count)).toMatch(new RegExp(`^[0-9a-f]{${count * 2}}$`))
  expect(randomness.hex(16)).not.toBe(randomness.hex(16))
})

test('the random pool gives no byte twice and fills only what was asked for', () => {
  const pool = new RandomPool()
  const portions = Array.from({ length: 600 }, () => {
    const target = Buffer.alloc(20)
    pool.fill(target, 2, 16)
    expect([target[0], target[1], target[18], target[19]]).toEqual([0, 0, 0, 0])
    return target.toString('hex')
  })
  expect(new Set(portions).size).toBe(600)
  const large = Buffer.alloc(10_000)
  pool.fill(large, 0, 10_000)
  expect(large.subarray(-64).equals(Buffer.alloc(64))).toBe(false)
})

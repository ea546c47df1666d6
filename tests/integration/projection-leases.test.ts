import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { HeldLeases, PostgresLeaseStore } from '../../infrastructure/database/leases.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let test: TestDatabase
let database: Database
let store: PostgresLeaseStore
const LONG = 60_000

beforeAll(async () => {
  test = await createTestDatabase()
  database = await openDatabase({ url: test.url })
  store = new PostgresLeaseStore(database.pool)
})
afterEach(() => database.pool.query('DELETE FROM runtime.leases'))
afterAll(async () => {
  await database.close()
  await test.drop()
})

/** Lets the time to live of a lease run out. */
const expire = (name: string) =>
  database.pool.query(`UPDATE runtime.leases SET expires_at = clock_timestamp() WHERE name = $1`, [name])

describe('a lease', () => {
  it('has one owner at a time, also when many ask at once', async () => {
    const asked = await Promise.all(
      Array.from({ length: 20 }, (_, index) => store.acquire('work', `owner ${index}`, LONG)),
    )
    expect(asked.filter((one) => one !== null)).toEqual([{ epoch: 1 }])
  })

  it('gets a new epoch with every acquisition, by whomever', async () => {
    expect(await store.acquire('work', 'a', LONG)).toEqual({ epoch: 1 })
    expect(await store.acquire('work', 'a', LONG)).toEqual({ epoch: 2 })
    await store.release('work', 'a', 2)
    expect(await store.acquire('work', 'b', LONG)).toEqual({ epoch: 3 })
    await expire('work')
    expect(await store.acquire('work', 'a', LONG)).toEqual({ epoch: 4 })
    expect(await store.acquire('work', 'b', LONG, { takeOver: true })).toEqual({ epoch: 5 })
  })

  it('is renewed and released only by its owner under its epoch', async () => {
    await store.acquire('work', 'a', LONG)
    expect(await store.renew('work', 'a', 1, LONG)).toBe(true)
    expect(await store.renew('work', 'a', 2, LONG)).toBe(false)
    expect(await store.renew('work', 'b', 1, LONG)).toBe(false)
    await store.release('work', 'b', 1)
    await store.release('work', 'a', 2)
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    expect(await store.holders(['work', 'other'])).toEqual(new Map([['work', 'a']]))
    await expire('work')
    expect(await store.holders(['work'])).toEqual(new Map())
  })

  it('is renewed with all others of its owner at once', async () => {
    for (const name of ['one', 'two', 'three']) await store.acquire(name, 'a', LONG)
    await store.acquire('two', 'b', LONG, { takeOver: true })
    expect(await store.renewAll('a', ['one', 'two'], LONG)).toEqual(new Map([['one', 1]]))
  })
})

describe('the leases of a process', () => {
  it('are kept alive for longer than their time to live', async () => {
    const leases = new HeldLeases(store, { owner: 'a', ttlMs: 3_000 })
    const lease = (await leases.acquire('work'))!
    const expiry = async () => {
      const { rows } = await database.pool.query<{ ms: number }>(
        `SELECT extract(epoch FROM expires_at)::float8 * 1000 AS ms FROM runtime.leases WHERE name = 'work'`,
      )
      return rows[0]!.ms
    }
    const first = await expiry()
    await expect.poll(expiry, { interval: 10 }).toBeGreaterThan(first + 3_000)
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    expect(lease.lost.aborted).toBe(false)
    await lease.release()
    expect(await store.acquire('work', 'b', LONG)).not.toBeNull()
  })

  it('tell when one was taken over', async () => {
    const leases = new HeldLeases(store, { owner: 'a', ttlMs: 3_000 })
    const taken = (await leases.acquire('taken'))!
    const kept = (await leases.acquire('kept'))!
    await store.acquire('taken', 'b', LONG, { takeOver: true })
    await expect.poll(() => taken.lost.aborted).toBe(true)
    expect(kept.lost.aborted).toBe(false)
    await taken.release()
    expect(await store.holders(['taken'])).toEqual(new Map([['taken', 'b']]))
    await kept.release()
  })

  it('count as lost when they could not be renewed for their time to live', async () => {
    const broken = new PostgresLeaseStore(database.pool)
    broken.renewAll = async () => {
      throw new Error('connection lost')
    }
    const leases = new HeldLeases(broken, { owner: 'a', ttlMs: 100 })
    const lease = (await leases.acquire('work'))!
    await expect.poll(() => lease.lost.aborted).toBe(true)
  })
})

// @module-tag once: its subject is the same whatever holds the log
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { HeldLeases, PostgresLeaseStore } from '../../../infrastructure/ownership/leases.ts'
import { openOwnerSession } from '../../../infrastructure/ownership/owner-session.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { pieceOfWork } from '../../support/workbench.ts'

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
    // its earlier self gives nothing of it back
    await store.release('work', 'a', 1)
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    await store.release('work', 'a', 2)
    expect(await store.acquire('work', 'b', LONG)).toEqual({ epoch: 3 })
    await expire('work')
    expect(await store.acquire('work', 'a', LONG)).toEqual({ epoch: 4 })
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
  })

  it('is renewed and released only by its owner under its epoch', async () => {
    await store.acquire('work', 'a', LONG)
    expect(await store.renewAll('a', ['work'], LONG)).toEqual(new Map([['work', 1]]))
    expect(await store.renewAll('b', ['work'], LONG)).toEqual(new Map())
    await store.release('work', 'b', 1)
    await store.release('work', 'a', 2)
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    expect(await store.holders(['work', 'other'])).toEqual(new Map([['work', 'a']]))
    await expire('work')
    expect(await store.holders(['work'])).toEqual(new Map())
  })

  it('is renewed with all others of its owner at once', async () => {
    for (const name of ['one', 'two', 'three']) await store.acquire(name, 'a', LONG)
    await expire('two')
    await store.acquire('two', 'b', LONG)
    expect(await store.renewAll('a', ['one', 'two'], LONG)).toEqual(new Map([['one', 1]]))
  })
})

describe('the lease of an owner with a session', () => {
  /** Sessions with their owners; the locks of other databases of the server have the same numbers. */
  const HELD = `
    FROM pg_locks JOIN runtime.sessions ON lock::bigint = objid::bigint
    WHERE locktype = 'advisory' AND classid = 1129270864 AND mode = 'ExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
  const killSession = (owner: string) =>
    database.withOwner((client) =>
      client.query(`SELECT pg_terminate_backend(pid) ${HELD} AND owner = $1`, [owner]),
    )
  /** Sessions by owner, as the number of the server's process. */
  async function locks(): Promise<Map<string, number>> {
    const { rows } = await database.pool.query<{ owner: string; pid: number }>(`SELECT owner, pid ${HELD}`)
    expect(new Set(rows.map(({ owner }) => owner)).size).toBe(rows.length)
    return new Map(rows.map(({ owner, pid }) => [owner, pid]))
  }

  // another service on the same server, whose sessions have the same numbers
  let elsewhere: TestDatabase
  let neighbour: Database
  const neighbours: { close(): Promise<void> }[] = []
  beforeAll(async () => {
    elsewhere = await createTestDatabase()
    neighbour = await openDatabase({ url: elsewhere.url })
    for (let n = 1; n <= 20; n += 1) neighbours.push(await openOwnerSession(neighbour, `neighbour ${n}`))
  })
  afterAll(async () => {
    await Promise.all(neighbours.map((session) => session.close()))
    await neighbour.close()
    await elsewhere.drop()
  })

  /** A session that does not outlive its test. */
  async function sessionOf(owner: string, on: Pick<Database, 'connect' | 'name' | 'pool'> = database) {
    const session = await openOwnerSession(on, owner)
    onTestFinished(() => session.close())
    return session
  }

  it('is anybody’s as soon as the session has ended', async () => {
    const session = await sessionOf('in session')
    await store.acquire('work', 'in session', LONG)
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    expect(await store.holders(['work'])).toEqual(new Map([['work', 'in session']]))
    await session.close()
    await expect.poll(() => store.holders(['work'])).toEqual(new Map())
    expect(await store.acquire('work', 'b', LONG)).toEqual({ epoch: 2 })
    // who never had a session is judged by time
    expect(await store.acquire('work', 'c', LONG)).toBeNull()
  })

  it('is safe again when a lost session was opened anew', async () => {
    const session = await sessionOf('comes back')
    await store.acquire('work', 'comes back', LONG)
    for (let n = 0; n < 3; n += 1) {
      const before = (await locks()).get('comes back')
      await killSession('comes back')
      await expect.poll(async () => (await locks()).get('comes back')).not.toBe(before)
      await expect.poll(async () => (await locks()).has('comes back')).toBe(true)
    }
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    await session.close()
    await expect.poll(() => store.acquire('work', 'b', LONG)).not.toBeNull()
  })

  it('is safe again, too, when the session was lost once more while its last answer was on the way', async () => {
    let opened = 0
    const throughLoss: Pick<Database, 'connect' | 'name' | 'pool'> = {
      name: database.name,
      pool: database.pool,
      async connect(options) {
        const { opened: isLost, open: lost } = gate()
        const client = await database.connect({
          ...options,
          onLost: (...reason) => {
            options.onLost?.(...reason)
            lost()
          },
        })
        opened += 1
        if (opened !== 2) return client
        const query = client.query.bind(client) as (text: string, values?: unknown[]) => Promise<unknown>
        const answeredLate = async (text: string, values?: unknown[]) => {
          const answer = await query(text, values)
          if (text.startsWith('INSERT')) {
            await killSession('lost twice')
            await isLost
          }
          return answer
        }
        return Object.assign(client, { query: answeredLate })
      },
    }
    const session = await sessionOf('lost twice', throughLoss)
    const first = (await locks()).get('lost twice')
    await killSession('lost twice')
    await expect.poll(() => opened).toBe(3)
    await expect.poll(async () => (await locks()).get('lost twice') ?? first).not.toBe(first)
    await session.close()
  })

  it('claims no work again that it has while its session is opened anew', async () => {
    const work = new PostgresWorkStore(database.pool)
    await work.takeOver('couriers', 1)
    const parcel = pieceOfWork({ processManager: 'couriers', kind: 'deliver', key: 'x' })
    const changes = { store: [parcel], cancel: [] }
    await work.advance('couriers', { position: 0n, epoch: 1 }, 1n, changes)
    const claim = async (owner: string) => {
      await work.makeDue(1, owner)
      const kinds = [{ processManager: 'couriers', kind: 'deliver', slots: 4 }]
      return (await work.claim({ owner, leaseMs: LONG, kinds })).map(({ attempt }) => attempt)
    }
    const session = await sessionOf('cut off')
    const other = await sessionOf('other')
    expect(await claim('cut off')).toEqual([1])
    await session.close()
    expect(await claim('cut off')).toEqual([])
    await expect.poll(() => claim('other')).toEqual([2])
    await other.close()
  })

  it('leaves nothing behind: owners that are gone and own nothing are forgotten', async () => {
    const idle = await sessionOf('idle')
    const holding = await sessionOf('holding')
    await store.acquire('work', 'holding', LONG)
    await Promise.all([idle.close(), holding.close()])
    const known = async () => {
      const session = await sessionOf('looking')
      await session.close()
      return (await database.pool.query('SELECT owner FROM runtime.sessions')).rows.map(({ owner }) => owner)
    }
    await expect.poll(known).not.toContain('idle')
    expect(await known()).toContain('holding')
    expect(await store.acquire('work', 'b', LONG)).not.toBeNull()
    expect(await known()).not.toContain('holding')
  })
})

describe('the leases of a process', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    return () => void vi.useRealTimers()
  })

  it('are kept alive for longer than their time to live', async () => {
    const leases = new HeldLeases(store, { owner: 'a', ttlMs: LONG })
    const lease = (await leases.acquire('work'))!
    const expiry = async () => {
      const { rows } = await database.pool.query<{ ms: number }>(
        `SELECT extract(epoch FROM expires_at)::float8 * 1000 AS ms FROM runtime.leases WHERE name = 'work'`,
      )
      return rows[0]!.ms
    }
    for (let passed = 0; passed <= LONG; passed += LONG / 4) {
      const before = await expiry()
      const beat = () => {
        vi.advanceTimersByTime(LONG / 4)
        return expiry()
      }
      await expect.poll(beat).toBeGreaterThan(before)
    }
    expect(await store.acquire('work', 'b', LONG)).toBeNull()
    expect(lease.lost.aborted).toBe(false)
    await lease.release()
    expect(await store.acquire('work', 'b', LONG)).not.toBeNull()
  })

  it('tell when one was taken over', async () => {
    const leases = new HeldLeases(store, { owner: 'a', ttlMs: LONG })
    const taken = (await leases.acquire('taken'))!
    const kept = (await leases.acquire('kept'))!
    await database.pool.query(`UPDATE runtime.leases SET owner = 'b', epoch = epoch + 1 WHERE name = 'taken'`)
    vi.advanceTimersByTime(LONG / 4)
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
    vi.useRealTimers()
    const leases = new HeldLeases(broken, { owner: 'a', ttlMs: 100 })
    const lease = (await leases.acquire('work'))!
    await expect.poll(() => lease.lost.aborted).toBe(true)
  })
})

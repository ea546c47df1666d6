// @module-tag once: its subject is the same whatever holds the log
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { HeldLeases, PostgresLeaseStore } from '../../../infrastructure/ownership/leases.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { pieceOfWork, storeWork } from '../../support/workbench.ts'

let test: TestDatabase
let database: Database
let store: PostgresLeaseStore
const LONG = 60_000

beforeAll(async () => {
  test = await createTestDatabase()
  database = await openDatabase({ url: test.url })
  store = new PostgresLeaseStore(database.pool)
})
afterEach(() => database.pool.query('DELETE FROM runtime.leases; DELETE FROM runtime.sessions'))
afterAll(async () => {
  await database.close()
  await test.drop()
})

/** Has an owner ask for a lease. @returns its epoch; null: it is not to be had. */
async function take(name: string, owner: string): Promise<number | null> {
  return (await store.acquire(owner, [name])).get(name) ?? null
}

/** Lets the time run out for which a lease says itself that it lasts. */
const expire = (name: string) =>
  database.pool.query(`UPDATE runtime.leases SET expires_at = clock_timestamp() WHERE name = $1`, [name])

/** A process that does not outlive its test. */
async function processOf(
  owner: string,
  on: Pick<Database, 'connect' | 'name' | 'pool' | 'leases'> = database,
  ttlMs = LONG,
) {
  const leases = await HeldLeases.open(on, { owner, ttlMs })
  onTestFinished(() => leases.close())
  return leases
}

describe('a lease', () => {
  it('has one owner at a time, also when many ask at once', async () => {
    const asked = await Promise.all(Array.from({ length: 20 }, (_, index) => take('work', `owner ${index}`)))
    expect(asked.filter((one) => one !== null)).toEqual([1])
  })

  it('gets a new epoch with every acquisition, by whomever', async () => {
    expect(await take('work', 'a')).toBe(1)
    expect(await take('work', 'a')).toBe(2)
    // its earlier self gives nothing of it back
    await store.release('work', 'a', 1)
    expect(await take('work', 'b')).toBeNull()
    await store.release('work', 'a', 2)
    expect(await take('work', 'b')).toBe(3)
    await expire('work')
    expect(await take('work', 'a')).toBe(4)
    expect(await take('work', 'b')).toBeNull()
  })

  it('is released only by its owner under its epoch', async () => {
    await processOf('a')
    await processOf('b')
    await take('work', 'a')
    await store.release('work', 'b', 1)
    await store.release('work', 'a', 2)
    expect(await take('work', 'b')).toBeNull()
    expect(await store.holders(['work', 'other'])).toEqual(new Map([['work', 'a']]))
  })

  it('is asked for with others, of which some are to be had', async () => {
    await processOf('a')
    await take('two', 'a')
    expect(await store.acquire('b', ['three', 'two', 'one'])).toEqual(
      new Map([
        ['one', 1],
        ['three', 1],
      ]),
    )
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
    for (let n = 1; n <= 20; n += 1)
      neighbours.push(await HeldLeases.open(neighbour, { owner: `neighbour ${n}` }))
  })
  afterAll(async () => {
    await Promise.all(neighbours.map((session) => session.close()))
    await neighbour.close()
    await elsewhere.drop()
  })

  it('is anybody’s as soon as the session has ended', async () => {
    const session = await processOf('in session')
    await processOf('b')
    await take('work', 'in session')
    expect(await take('work', 'b')).toBeNull()
    expect(await store.holders(['work'])).toEqual(new Map([['work', 'in session']]))
    await session.close()
    await expect.poll(() => store.holders(['work'])).toEqual(new Map())
    // who has no session itself takes nothing from others
    expect(await take('work', 'c')).toBeNull()
    expect(await take('work', 'b')).toBe(2)
  })

  it('is anybody’s when the session was not renewed in time, and its own again when it comes back', async () => {
    await processOf('hanging', database, 1_000_000)
    await processOf('b')
    await take('work', 'hanging')
    await take('other', 'hanging')
    await store.renew('hanging', 0)
    expect(await store.holders(['work'])).toEqual(new Map())
    expect(await take('work', 'b')).toBe(2)
    expect(await store.renew('hanging', LONG)).toEqual(new Map([['other', 1]]))
    expect(await take('work', 'hanging')).toBeNull()
    expect(await take('other', 'b')).toBeNull()
  })

  it('is safe again when a lost session was opened anew', async () => {
    const session = await processOf('comes back')
    await processOf('b')
    await take('work', 'comes back')
    for (let n = 0; n < 3; n += 1) {
      const before = (await locks()).get('comes back')
      await killSession('comes back')
      await expect.poll(async () => (await locks()).get('comes back')).not.toBe(before)
      await expect.poll(async () => (await locks()).has('comes back')).toBe(true)
    }
    expect(await take('work', 'b')).toBeNull()
    await session.close()
    await expect.poll(() => take('work', 'b')).not.toBeNull()
  })

  it('is safe again, too, when the session was lost once more while its last answer was on the way', async () => {
    let opened = 0
    const throughLoss: Pick<Database, 'connect' | 'name' | 'pool' | 'leases'> = {
      ...database,
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
    const session = await processOf('lost twice', throughLoss)
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
      return (await work.claim({ owner, kinds })).map(({ attempt }) => attempt)
    }
    const session = await processOf('cut off')
    await processOf('other')
    expect(await claim('cut off')).toEqual([1])
    await session.close()
    expect(await claim('cut off')).toEqual([])
    await expect.poll(() => claim('other')).toEqual([2])
  })

  it('leaves nothing behind: owners that are gone and own nothing are forgotten', async () => {
    const idle = await processOf('idle')
    const holding = await processOf('holding')
    await take('work', 'holding')
    await Promise.all([idle.close(), holding.close()])
    const known = async () => {
      const session = await processOf('looking')
      await session.close()
      return (await database.pool.query('SELECT owner FROM runtime.sessions')).rows.map(({ owner }) => owner)
    }
    await expect.poll(known).not.toContain('idle')
    expect(await known()).toContain('holding')
    await processOf('b')
    expect(await take('work', 'b')).not.toBeNull()
    expect(await known()).not.toContain('holding')
  })
})

/** The statements of the release before, which renews each lease and each piece of work. */
const BEFORE = {
  open: `INSERT INTO runtime.sessions (owner, lock) VALUES ($1, nextval('runtime.session_locks')) RETURNING lock`,
  isGone: (owner: string) => `EXISTS (SELECT 1 FROM runtime.sessions AS session
    WHERE session.owner = ${owner} AND pg_try_advisory_xact_lock_shared(1129270864, session.lock))`,
  get acquire() {
    return `INSERT INTO runtime.leases AS held (name, owner, epoch, expires_at)
      VALUES ($1, $2, 1, clock_timestamp() + interval '1 minute')
      ON CONFLICT (name) DO UPDATE
        SET owner = excluded.owner, epoch = held.epoch + 1, expires_at = excluded.expires_at
        WHERE held.expires_at <= clock_timestamp() OR held.owner = excluded.owner
          OR ${this.isGone('held.owner')} AND NOT ${this.isGone('excluded.owner')}
      RETURNING epoch::int`
  },
  get lost() {
    return `SELECT key FROM runtime.work
      WHERE state = 'leased' AND (lease_until <= clock_timestamp() OR ${this.isGone('lease_owner')})`
  },
}

describe('processes of the release before', () => {
  it('leave what is owned to a living process, and take it over when that is gone', async () => {
    const work = new PostgresWorkStore(database.pool)
    await storeWork(work, pieceOfWork({ processManager: 'p', kind: 'k', key: 'x' }))
    const lost = async () => (await database.pool.query(BEFORE.lost)).rows
    const takeBefore = async (name: string) =>
      (await database.pool.query<{ epoch: number }>(BEFORE.acquire, [name, 'before'])).rows[0]?.epoch ?? null
    const session = await processOf('after')
    await take('work', 'after')
    await work.claim({ owner: 'after', kinds: [{ processManager: 'p', kind: 'k', slots: 1 }] })
    expect([await takeBefore('work'), await lost()]).toEqual([null, []])
    await session.close()
    await expect.poll(() => takeBefore('work')).toBe(2)
    expect(await lost()).toEqual([{ key: 'x' }])
  })

  it('keep what they renew, until they are gone or do not renew it', async () => {
    const client = new pg.Client(test.url)
    await client.connect()
    const [{ lock }] = (await client.query(BEFORE.open, ['before'])).rows
    await client.query('SELECT pg_advisory_lock(1129270864, $1)', [lock])
    for (const name of ['late', 'renewed']) await client.query(BEFORE.acquire, [name, 'before'])
    await processOf('after')
    await expire('late')
    expect([await take('late', 'after'), await take('renewed', 'after')]).toEqual([2, null])
    expect(await store.holders(['renewed'])).toEqual(new Map([['renewed', 'before']]))
    await client.end()
    await expect.poll(() => take('renewed', 'after')).toBe(2)
  })
})

describe('the leases of a process', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    return () => void vi.useRealTimers()
  })

  /** @returns until when a process is alive. */
  async function aliveUntil(owner: string): Promise<number> {
    const { rows } = await database.pool.query<{ ms: number }>(
      'SELECT extract(epoch FROM alive_until)::float8 * 1000 AS ms FROM runtime.sessions WHERE owner = $1',
      [owner],
    )
    return rows[0]!.ms
  }

  it('are kept alive for longer than their time to live, by one statement for all', async () => {
    const leases = await processOf('alive')
    const lease = (await leases.acquire('work'))!
    await processOf('b')
    for (let passed = 0; passed <= LONG; passed += LONG / 4) {
      const before = await aliveUntil('alive')
      const beat = () => {
        vi.advanceTimersByTime(LONG / 4)
        return aliveUntil('alive')
      }
      await expect.poll(beat).toBeGreaterThan(before)
    }
    expect(await take('work', 'b')).toBeNull()
    expect(lease.lost.aborted).toBe(false)
    await lease.release()
    expect(await take('work', 'b')).not.toBeNull()
  })

  it('tell when one was taken over', async () => {
    const leases = await processOf('robbed')
    const taken = (await leases.acquire('taken'))!
    const kept = (await leases.acquire('kept'))!
    await database.pool.query(`UPDATE runtime.leases SET owner = 'b', epoch = epoch + 1 WHERE name = 'taken'`)
    vi.advanceTimersByTime(LONG / 4)
    await expect.poll(() => taken.lost.aborted).toBe(true)
    expect(kept.lost.aborted).toBe(false)
    await taken.release()
    const { rows } = await database.pool.query('SELECT name, owner FROM runtime.leases ORDER BY name')
    expect(rows).toEqual([
      { name: 'kept', owner: 'robbed' },
      { name: 'taken', owner: 'b' },
    ])
    await kept.release()
  })

  it('count as lost when the process could not be renewed for its time to live', async () => {
    vi.useRealTimers()
    const leases = await processOf('cut off', database, 100)
    const lapsed = vi.fn()
    leases.onLapse(lapsed)
    const lease = (await leases.acquire('work'))!
    const cut = vi.spyOn(database.leases, 'query').mockRejectedValue(new Error('connection lost') as never)
    onTestFinished(() => cut.mockRestore())
    await expect.poll(() => lease.lost.aborted).toBe(true)
    expect(lapsed).toHaveBeenCalled()
  })

  it('are given back when nobody here holds them: their answer or their release was lost', async () => {
    const leases = await processOf('forgetful')
    await processOf('b')
    const held = (await leases.acquire('held'))!
    await take('unheard', 'forgetful')
    vi.advanceTimersByTime(LONG / 4)
    await expect.poll(() => take('unheard', 'b')).toBe(2)
    expect(await take('held', 'b')).toBeNull()
    await held.release()
  })
})

// @module-tag once: its subject is the same whatever holds the log
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { scaleTechnicalDeadlines } from '../../../application/commands/technical-deadlines.ts'
import { ServiceUnavailable } from '../../../application/ports/unavailable.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { PostgresProjectionStore } from '../../../infrastructure/read-models/projection-store.ts'
import { unavailability } from '../../../interfaces/http/unavailable.ts'
import { ReachedPositions } from '../../../projections/runtime/reached-positions.ts'
import { createTestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts'
import { patientDeadlines, withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { untilAnswered } from '../../support/until-answered.ts'

/** In milliseconds. */
const SHORT_MS = 500
/** What is opened in this time has deadlines of about a second; a busy machine may need several attempts. */
async function impatient<T>(open: () => Promise<T>): Promise<T> {
  return untilAnswered(async () => {
    scaleTechnicalDeadlines(0.1)
    try {
      return await open()
    } finally {
      patientDeadlines()
    }
  })
}

const cleanups: (() => Promise<unknown>)[] = []
const proxies: HoldingProxy[] = []
afterEach(async () => {
  for (const proxy of proxies.splice(0)) proxy.comeBack()
  for (const work of cleanups.splice(0)) await work()
})

/** A database, and the way to it, which can vanish. */
async function overNetwork() {
  const created = await createTestDatabase()
  cleanups.unshift(() => created.drop())
  const url = new URL(created.url)
  const proxy = await startHoldingProxy(Number(url.port))
  proxies.push(proxy)
  cleanups.unshift(() => proxy.close())
  url.host = `127.0.0.1:${proxy.port}`
  return { proxy, url: url.toString(), direct: created.url }
}

async function opened(url: string): Promise<Database> {
  const database = await openDatabase({ url })
  cleanups.unshift(() => database.close())
  return database
}

function impatientPool(database: Database) {
  return impatient(async () => {
    const pool = database.openPool({ purpose: 'test', poolSize: 2 })
    cleanups.unshift(() => pool.end())
    return pool
  })
}

describe('a database whose machine vanished from the network', () => {
  test('ends what was asked of it on this side, and the connection it was asked on', async () => {
    const { proxy, url } = await overNetwork()
    const pool = await impatientPool(await opened(url))
    await untilAnswered(() => pool.query('SELECT 1'))
    proxy.vanish()
    await expect(pool.query('SELECT 2')).rejects.toBeInstanceOf(ServiceUnavailable)
    expect(pool.totalCount).toBe(0)
    // and new connections are waited for no longer
    await expect(pool.query('SELECT 3')).rejects.toBeInstanceOf(ServiceUnavailable)
    proxy.comeBack()
    expect((await untilAnswered(() => pool.query('SELECT 4 AS n'))).rows).toEqual([{ n: 4 }])
  })

  // the one before it ends what is asked in the same way
  test('ends transactions and connections of their own', { tags: 'long' }, async () => {
    const { proxy, url } = await overNetwork()
    const database = await opened(url)
    const pool = await impatientPool(database)
    const { opened: lost, open: isLost } = gate()
    const client = await impatient(() => database.connect({ purpose: 'test', onLost: isLost }))
    await untilAnswered(() => pool.query('SELECT 1'))
    const inTransaction = database.transaction(async (connection) => {
      proxy.vanish()
      await connection.query('SELECT 1')
    }, pool)
    await expect(inTransaction).rejects.toBeInstanceOf(ServiceUnavailable)
    await expect(client.query('SELECT 1')).rejects.toThrow()
    await lost
  })

  test('ends appends at their own time, and reads', async () => {
    const { proxy, url } = await overNetwork()
    const database = await opened(url)
    const log = await impatient(() => openPostgresEventLog({ database, patienceMs: SHORT_MS }))
    cleanups.unshift(() => log.close())
    const append = () =>
      log.append(`stream-${randomUUID()}`, -1, [{ type: 'Happened', data: '{}', metadata: '{}' }])
    await untilAnswered(append)
    await untilAnswered(() => log.head())
    proxy.vanish()
    const outcomes = await Promise.allSettled([append(), append(), log.head(), append()])
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ServiceUnavailable) })
    }
  })

  test('does not make a wait for a read model longer than was asked for', async () => {
    const { proxy, url } = await overNetwork()
    const database = await opened(url)
    const store = new PostgresProjectionStore(database).generations
    await store.positions(['any'])
    const progress = new ReachedPositions(store, null)
    proxy.vanish()
    // the store's own limit is a minute: the looks are still under way
    expect(await Promise.all([0, SHORT_MS].map((ms) => progress.waitFor('any', 1n, ms)))).toEqual([
      false,
      false,
    ])
  })
})

describe('connections that lead nowhere, while new ones are answered', () => {
  /** A statement of the background may take a minute: who waits for so long has not found out. */
  const FOUND_OUT_MS = 30_000
  const untilFoundOut = <T>(answer: Promise<T>) =>
    Promise.race([answer, delay(FOUND_OUT_MS, 'not found out' as const, { ref: false })])

  // the first one gives up what is asked of a silent database
  test('are found out within seconds, however long their statements may take, and told from those on which the server is at work', {
    tags: 'long',
  }, async () => {
    await withDeadlinesOfTheProduct(async () => {
      const working = (await opened((await overNetwork()).url)).background
      const slow = working.query("SELECT 'slow' AS answer FROM pg_sleep(5)")
      const { proxy, url } = await overNetwork()
      const database = await opened(url)
      const ask = (n: number) => database.background.query('SELECT $1::int AS n', [n])
      const inTransaction = await database.background.connect()
      cleanups.unshift(async () => inTransaction.release(true))
      await inTransaction.query('BEGIN')
      await Promise.all([1, 2, 3, 4].map(ask))
      proxy.vanish()
      proxy.comeBackUnnoticed()
      const transaction = inTransaction.query('SELECT 1').catch((error) => error)
      // one after the other, as looks for work are
      const looks = (async () => {
        for (;;) {
          const answer = await ask(5).catch((error) => error)
          if (!(answer instanceof ServiceUnavailable)) return answer.rows
        }
      })()
      expect(await untilFoundOut(looks)).toEqual([{ n: 5 }])
      expect(await untilFoundOut(transaction)).toMatchObject({ code: 'ETIMEDOUT' })
      expect((await slow).rows).toEqual([{ answer: 'slow' }])
    })
  })
})

describe('statements that take long', () => {
  test('are ended by the server first, which keeps the connection', async () => {
    const { url } = await overNetwork()
    // the server ends it soon, and this side would wait for long
    const database = await opened(url)
    const pool = database.openPool({ purpose: 'test', poolSize: 1, statementMs: 5 })
    cleanups.unshift(() => pool.end())
    const pid = async () => (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid
    const before = await untilAnswered(pid)
    const client = await pool.connect()
    await expect(client.query('SELECT pg_sleep(600)')).rejects.toMatchObject({ code: '57014' })
    client.release()
    expect(await untilAnswered(pid)).toBe(before)
    const error = await pool.query('SELECT pg_sleep(600)').catch((error) => error)
    // asked again it may take as long: that is not the same as a server that is away
    expect(error).toBeInstanceOf(ServiceUnavailable)
    expect(error.passes).toBe(false)
    expect(unavailability(error)).toMatchObject({ retryAfter: 2 })
  })

  test('of requests cost a process neither its leases nor its projections, however many they are', async () => {
    const database = await opened((await overNetwork()).url)
    const locked = await database.background.connect()
    await locked.query('BEGIN; LOCK TABLE runtime.sessions IN ACCESS EXCLUSIVE MODE')
    const reads = Promise.allSettled(
      Array.from({ length: 40 }, () => database.pool.query('SELECT FROM runtime.sessions')),
    )
    expect((await database.leases.query('SELECT 1')).rowCount).toBe(1)
    await new PostgresProjectionStore(database).generations.all()
    await locked.query('ROLLBACK')
    locked.release()
    await reads
  })

  test('have the time that the url says', async () => {
    const { url } = await overNetwork()
    const given = new URL(url)
    given.searchParams.set('options', '-c statement_timeout=4321')
    const { pool } = await opened(given.toString())
    expect((await pool.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '4321ms' }])
  })

  test('have as many times as long as technical deadlines are scaled by', async () => {
    const { url } = await overNetwork()
    scaleTechnicalDeadlines(30)
    const { pool, background } = await opened(url)
    patientDeadlines()
    expect((await pool.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '5min' }])
    expect((await background.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '30min' }])
  })
})

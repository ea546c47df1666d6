import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type AppendResult,
  type EventLog,
  type StoredEvent,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import {
  type Database,
  DatabaseUnavailable,
  openDatabase,
} from '../../../infrastructure/database/database.ts'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import {
  openPostgresEventLog,
  type PostgresEventLogOptions,
} from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import {
  createTestDatabase,
  sessionsThatWait,
  type TestDatabase,
  withServer,
} from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { startHoldingProxy } from '../../support/holding-proxy.ts'
import { revisionOf } from '../../support/log.ts'
import { untilAnswered } from '../../support/until-answered.ts'
import {
  anEvent,
  aStream,
  eventLogContract,
  expectIntactChains,
  follow,
  someEvents,
} from './event-log.contract.ts'

eventLogContract('PostgreSQL', async () => {
  const test = await createTestDatabase()
  const databases: Database[] = []
  return {
    open: async () => {
      const database = await openDatabase({ url: test.url })
      databases.push(database)
      return openPostgresEventLog({ database })
    },
    remove: async () => {
      for (const database of databases) await database.close()
      await test.drop()
    },
  }
})

describe('event log in PostgreSQL', () => {
  let testDatabase: TestDatabase
  const cleanups: (() => Promise<unknown>)[] = []
  const cleanup = (work: () => Promise<unknown>) => cleanups.unshift(work)

  beforeEach(async () => {
    testDatabase = await createTestDatabase()
    cleanup(() => testDatabase.drop())
  })
  afterEach(async () => {
    for (const work of cleanups.splice(0)) await work()
  })

  async function openLog(
    options: { url?: string } & Partial<Omit<PostgresEventLogOptions, 'database'>> = {},
  ): Promise<EventLog> {
    const { url = testDatabase.url, ...rest } = options
    const database = await openDatabase({ url })
    cleanup(() => database.close())
    const log = await openPostgresEventLog({ database, ...rest })
    cleanup(() => log.close())
    return log
  }

  async function superuser(url = testDatabase.url): Promise<pg.Client> {
    const client = new pg.Client(url)
    client.on('error', () => undefined)
    await client.connect()
    cleanup(() => client.end())
    return client
  }

  test('a stream that another program wrote into refuses appends, without harm to those sent with them', async () => {
    const [odd, other] = [aStream(), aStream()]
    const first = await openLog()
    await first.append(odd, -1, [anEvent()])
    await first.append(other, -1, [anEvent()])
    await first.close()
    const client = await superuser()
    await client.query(
      `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
       SELECT max(position) + 1, 1, gen_random_uuid(), $1, 'Foreign', '{}', '{}' FROM event_log.events`,
      [odd],
    )
    const log = await openLog()
    const [refused, ...others] = await Promise.allSettled([
      log.append(odd, 1, [anEvent()]),
      ...Array.from({ length: 10 }, () => log.append(aStream(), -1, someEvents(2))),
      log.append(other, 0, [anEvent()]),
    ])
    expect(refused).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining(odd) } })
    expect(others.filter(({ status }) => status !== 'fulfilled')).toEqual([])
    expect(await log.readStream(odd)).toHaveLength(2)
  })

  async function everything(log: EventLog): Promise<StoredEvent[]> {
    return (await follow(log, {}, (_, page) => page.atHead)).events
  }

  /** Ends connections to the test database whose application name is like a pattern. */
  async function terminate(pattern: string): Promise<number> {
    return withServer(async (server) => {
      const { rowCount } = await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = $1 AND application_name LIKE $2`,
        [testDatabase.name, pattern],
      )
      return rowCount ?? 0
    })
  }

  test.each([1, 2])('tells of every committed transaction, %i writing', async (processes) => {
    const told: [number, number][] = []
    const log = await openLog({ onAppend: (events, ms) => void told.push([events, ms]) })
    if (processes > 1) await openLog()
    const stream = aStream()
    await log.append(stream, -1, someEvents(3))
    await expect(log.append(stream, -1, [anEvent()])).rejects.toThrow()
    await expect(log.append(aStream(), -1, [anEvent({ data: 'no json' })])).rejects.toThrow()
    expect(told).toEqual([[3, expect.any(Number)]])
    await Promise.all(Array.from({ length: 100 }, () => log.append(aStream(), -1, someEvents(2))))
    expect(told.reduce((sum, [events]) => sum + events, 0)).toBe(203)
    // written together
    expect(told.length).toBeLessThan(50)
    for (const [, ms] of told) expect(ms).toBeGreaterThan(0)
  })

  test('a listener that throws costs no append, repeats none and stops no other', async () => {
    let told = 0
    const warn = vi.fn()
    const log = await openLog({
      log: { info: () => undefined, warn },
      onAppend(events) {
        told += events
        throw new Error('the listener failed')
      },
    })
    const streams = Array.from({ length: 20 }, aStream)
    for (const revision of [-1, 1, 3]) {
      // the second ones are lined up while the first ones are on their way
      await Promise.all(
        streams.flatMap((stream) => [
          log.append(stream, revision, [anEvent()]),
          log.append(stream, revision + 1, [anEvent()]),
        ]),
      )
    }
    const stored = await everything(log)
    expectIntactChains(stored)
    expect([stored.length, told]).toEqual([120, 120])
    expect(warn).toHaveBeenCalledWith({ reason: 'the listener failed' }, expect.any(String))
  })

  describe('positions', () => {
    test('are contiguous from 1 and become visible in order', async () => {
      const log = await openLog()
      await Promise.all(Array.from({ length: 100 }, () => log.append(aStream(), -1, someEvents(2))))
      const positions = (await everything(log)).map(({ position }) => position)
      expect(positions).toEqual(Array.from({ length: 200 }, (_, n) => BigInt(n + 1)))
    })

    test('leave no gap where an append failed', async () => {
      const log = await openLog()
      const first = await log.append(aStream(), -1, someEvents(2))
      await expect(log.append(aStream(), -1, [anEvent({ data: 'no json' })])).rejects.toThrow(/refused/)
      expect(await log.append(aStream(), -1, [anEvent()])).toMatchObject({
        position: first.position + 1n,
      })
    })

    test('other transactions that stay open in the cluster neither stall nor hide anything', async () => {
      const here = await superuser()
      await here.query('CREATE TABLE elsewhere (n int); BEGIN; INSERT INTO elsewhere VALUES (1)')
      await here.query('SELECT pg_current_xact_id(), count(*) FROM event_log.events')
      const otherDatabase = await createTestDatabase({ migrate: false })
      cleanup(() => otherDatabase.drop())
      const there = await superuser(otherDatabase.url)
      await there.query('CREATE TABLE t (n int); BEGIN; INSERT INTO t VALUES (1)')

      const log = await openLog()
      const second = await openLog()
      const watching = [log, second].map((one) => follow(one, {}, (all) => all.length >= 40))
      for (let n = 0; n < 20; n += 1) {
        await (n % 2 ? log : second).append(aStream(), -1, someEvents(2))
      }
      for (const { events } of await Promise.all(watching)) expect(events).toHaveLength(40)
      await here.query('ROLLBACK')
      await there.query('ROLLBACK')
    })

    test('an append that waits in an open transaction of another writer is not overtaken', async () => {
      const log = await openLog()
      const second = await openLog()
      await log.append(aStream(), -1, [anEvent()])
      const foreign = await superuser()
      // as a writer does it: lock, position, insert, and only later the commit
      await foreign.query('BEGIN; SELECT pg_advisory_xact_lock(7305420017320845001)')
      await foreign.query(
        `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
         SELECT max(position) + 1, 0, gen_random_uuid(), 'foreign-1', 'Foreign', '{}',
                '{"hash":"${'a'.repeat(64)}"}' FROM event_log.events`,
      )
      const waiting = second.append(aStream(), -1, [anEvent()])
      expect(await Promise.race([waiting, waitForLockWaiter(foreign)])).toBe('waiting')
      expect((await log.readAll({ after: 0n, maxCount: 10 })).events).toHaveLength(1)
      await foreign.query('COMMIT')
      expect(await waiting).toMatchObject({ position: 3n })
      expect((await everything(log)).map(({ type }) => type)).toEqual([
        'SomethingHappened',
        'Foreign',
        'SomethingHappened',
      ])
    })

    test('what is written without a notification is found all the same', async () => {
      const log = await openLog()
      await openLog()
      const foreign = await superuser()
      const { events } = await follow(log, {}, (all, page) => {
        if (page.atHead && all.length === 0) {
          void foreign.query(
            `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
             VALUES (1, 0, gen_random_uuid(), 'foreign-1', 'Foreign', '{}', '{"hash":"${'a'.repeat(64)}"}')`,
          )
        }
        return all.length > 0
      })
      expect(events[0]!.type).toBe('Foreign')
    })
  })

  describe('stored events', () => {
    test('cannot be changed or removed by the role that the service runs as', async () => {
      const database = await openDatabase({ url: testDatabase.url })
      cleanup(() => database.close())
      expect(database.serviceRole).toBe(true)
      for (const statement of CHANGES) {
        await expect(database.pool.query(statement)).rejects.toThrow(/permission denied/)
      }
      await expect(database.pool.query('DROP TABLE event_log.events')).rejects.toThrow(/must be owner/)
      await expect(
        database.pool.query('ALTER TABLE event_log.events DISABLE TRIGGER immutable'),
      ).rejects.toThrow(/must be owner/)
    })

    test('cannot be changed or removed by anybody else either', async () => {
      const log = await openLog()
      await log.append(aStream(), -1, someEvents(2))
      const client = await superuser()
      for (const statement of CHANGES) {
        await expect(client.query(statement)).rejects.toThrow(/events are immutable/)
      }
      // how replication and restore tools get past ordinary triggers
      await client.query('SET session_replication_role = replica')
      for (const statement of CHANGES) {
        await expect(client.query(statement)).rejects.toThrow(/events are immutable/)
      }
      expect(await everything(log)).toHaveLength(2)
    })

    test('of a log that went back are looked for with pauses by who follows it', async () => {
      const warned: string[] = []
      const { opened: untilWarned, open: tell } = gate()
      const warn = ({ reason }: { readonly reason?: unknown }) => {
        warned.push(String(reason))
        tell()
      }
      const log = await openLog({ log: { info: () => undefined, warn } })
      await log.append(aStream(), -1, someEvents(5))
      const client = await superuser()
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER immutable')
      await client.query('DELETE FROM event_log.events WHERE position > 3')
      let pages = 0
      const stop = new AbortController()
      void untilWarned.then(() => stop.abort())
      for await (const _ of log.subscribe({ after: 1n, pageSize: 10, signal: stop.signal })) {
        pages += 1
        if (pages > 100) break
      }
      expect(warned).toEqual(['the log ends before position 5'])
    })

    // the ones before it are protected by both
    test('are protected by triggers alone when the database user may make no roles, which is logged', {
      tags: 'long',
    }, async () => {
      const user = `plain_${randomBytes(4).toString('hex')}`
      const empty = await createTestDatabase({ migrate: false })
      cleanup(() => empty.drop())
      await withServer(async (server) => {
        await server.query(`CREATE ROLE ${user} LOGIN PASSWORD 'plain' NOCREATEROLE`)
        await server.query(`ALTER DATABASE ${empty.name} OWNER TO ${user}`)
      })
      cleanup(async () => {
        await empty.drop()
        await withServer((server) => server.query(`DROP ROLE ${user}`))
      })
      const url = new URL(empty.url)
      url.username = user
      url.password = 'plain'
      await migrate({ url: url.toString() })
      const warn = vi.fn()
      const database = await openDatabase({ url: url.toString(), log: { info: () => undefined, warn } })
      cleanup(() => database.close())
      expect(database.serviceRole).toBe(false)
      expect(warn).toHaveBeenCalledWith({}, expect.stringContaining('triggers alone'))
      const log = await openPostgresEventLog({ database })
      cleanup(() => log.close())
      await log.append(aStream(), -1, someEvents(2))
      for (const statement of CHANGES) {
        await expect(database.pool.query(statement)).rejects.toThrow(/events are immutable/)
      }
    })
  })

  describe('lost connections', () => {
    test.each([
      ['the only process', 1],
      ['one of two processes', 2],
    ])('nothing acknowledged is lost and nothing is repeated: %s', async (_, processes) => {
      const log = await openLog()
      if (processes > 1) await openLog()
      const watched = [1000, 3].map((pageSize) =>
        follow(log, { pageSize }, (all) => all.at(-1)?.type === 'LastOne'),
      )
      const acknowledged: AppendResult[] = []
      let running = true
      const lanes = Array.from({ length: 10 }, async () => {
        const stream = aStream()
        for (let n = 0; running; n += 1) {
          acknowledged.push(await log.append(stream, n - 1, [anEvent()]))
        }
      })
      let killed = 0
      for (let n = 0; n < KILLS; n += 1) {
        const before = acknowledged.length
        killed += await terminate(n % 2 ? 'compstream%' : 'compstream event log writer')
        // the next one when appends have gone through again
        await vi.waitUntil(() => acknowledged.length > before + 10, { timeout: 240_000, interval: 1 })
      }
      running = false
      await Promise.all(lanes)
      await log.append(aStream(), -1, [anEvent({ type: 'LastOne' })])
      expect(killed).toBeGreaterThanOrEqual(KILLS)
      const stored = await everything(log)
      expectIntactChains(stored)
      expect(stored).toHaveLength(acknowledged.length + 1)
      expect(new Set(acknowledged.map(({ position }) => position)).size).toBe(acknowledged.length)
      for (const { events } of await Promise.all(watched)) expect(events).toEqual(stored)
    })

    test('one that ends together with the last answer to its opening is replaced as well', async () => {
      const database = await openDatabase({ url: testDatabase.url })
      cleanup(() => database.close())
      let ends = 1
      const connect: Database['connect'] = async (options) => {
        const client = await database.connect(options)
        const query = client.query.bind(client) as (...statement: unknown[]) => Promise<unknown>
        const interposed = async (...statement: unknown[]) => {
          const answer = await query(...statement)
          if (statement[0] === 'RESET lock_timeout' && ends-- > 0) await client.end()
          return answer
        }
        return Object.assign(client, { query: interposed })
      }
      await expect(openPostgresEventLog({ database: { ...database, connect } })).rejects.toThrow(/closed/)
      const log = await openPostgresEventLog({ database: { ...database, connect } })
      cleanup(() => log.close())
      ends = 1
      await terminate('compstream event log writer')
      await log.append(aStream(), -1, [anEvent()])
      expect(ends).toBeLessThan(1)
    })

    test('a read goes on with the next connection', async () => {
      const log = await openLog()
      await log.append(aStream(), -1, someEvents(2))
      for (let n = 0; n < 2; n += 1) {
        await terminate('compstream event log')
        expect((await log.readAll({ after: 0n, maxCount: 10 })).events).toHaveLength(2)
      }
    })

    test('what was given up before there was a connection is not sent once there is one', async () => {
      const database = await openDatabase({ url: testDatabase.url })
      cleanup(() => database.close())
      let fail: () => void = () => undefined
      let letThrough: () => void = () => undefined
      const failed = new Promise<void>((_resolve, reject) => {
        fail = () => reject(new DatabaseUnavailable('the event log', 'it is refused'))
      })
      failed.catch(() => undefined)
      const through = new Promise<void>((resolve) => {
        letThrough = resolve
      })
      // those that follow the one that is ended: the first fails, and the others wait
      let isEnded = false
      let connections = 0
      const connect: Database['connect'] = async (options) => {
        const client = await database.connect(options)
        if (!isEnded || options.purpose !== 'event log writer') return client
        connections += 1
        await (connections === 1 ? failed.finally(() => client.end()) : through)
        return client
      }
      const log = await openPostgresEventLog({ database: { ...database, connect }, patienceMs: PATIENCE_MS })
      cleanup(() => log.close())
      cleanup(async () => {
        fail()
        letThrough()
      })
      await log.append(aStream(), -1, [anEvent()])
      isEnded = true
      await terminate('compstream event log writer')
      await expect.poll(() => connections).toBe(1)
      const [stream, other] = [aStream(), aStream()]
      const giveUp = holdTime()
      const givenUp = log.append(stream, -1, [anEvent()])
      // the event loop turns, and what is ready leaves
      await new Promise(setImmediate)
      await new Promise(setImmediate)
      fail()
      await expect.poll(() => connections).toBe(2)
      giveUp()
      await expect(givenUp).rejects.toThrow(/it was not sent$/)
      letThrough()
      await log.append(other, -1, [anEvent()])
      expect(await log.readStream(stream)).toEqual([])
      expect(await log.readStream(other)).toHaveLength(1)
    })

    test('when the database stays away, appends and reads end with one clear error', async () => {
      const log = await openLog({ patienceMs: 500 })
      await untilAnswered(() => log.append(aStream(), -1, [anEvent()]))
      await withServer(async (server) => {
        await server.query(`ALTER DATABASE ${testDatabase.name} ALLOW_CONNECTIONS false`)
      })
      await terminate('compstream%')
      await expect(log.head()).rejects.toThrow(DatabaseUnavailable)
      const stream = aStream()
      await expect(log.append(stream, -1, [anEvent()])).rejects.toThrow(/^PostgreSQL at the event log: /)
      await withServer(async (server) => {
        await server.query(`ALTER DATABASE ${testDatabase.name} ALLOW_CONNECTIONS true`)
      })
      await untilAnswered(() => log.append(aStream(), -1, [anEvent()]))
      // it was never sent, and is not after its time
      expect(await untilAnswered(() => log.readStream(stream))).toEqual([])
    })
  })

  describe('an append whose answer was lost', () => {
    test('is found by its own ids, told as stored, and delivered once', async () => {
      const proxied = new URL(testDatabase.url)
      const proxy = await startHoldingProxy(Number(proxied.port))
      cleanup(() => proxy.close())
      proxied.host = `127.0.0.1:${proxy.port}`
      const log = await openLog({ url: proxied.toString(), patienceMs: 90_000 })
      const other = await openLog()
      const stream = aStream()
      await log.append(stream, -1, someEvents(2))
      const watched = [log, other].map((one) => follow(one, {}, (all) => all.at(-1)?.type === 'LastOne'))

      const holder = await superuser()
      await holder.query('BEGIN; LOCK TABLE event_log.events IN SHARE MODE')
      const appends = [log.append(stream, 1, someEvents(2)), log.append(stream, 3, someEvents(1))]
      const streams = Array.from({ length: 3 }, aStream)
      appends.push(...streams.map((one) => log.append(one, -1, someEvents(1))))
      // decided when it is known what became of the first one
      const refused = log.append(stream, 1, [anEvent()])
      refused.catch(() => undefined)
      await expect.poll(() => sessionsThatWait(holder)).toBe(1)
      // nobody hears what becomes of it
      await proxy.cut()
      await holder.query('COMMIT')
      await expect.poll(() => other.readStream(stream)).toHaveLength(4)
      await proxy.restore()
      const answers = await Promise.all(appends)
      await expect(refused).rejects.toThrow(WrongExpectedRevision)

      const stored = await everything(other)
      expectIntactChains(stored)
      expect(stored).toHaveLength(8)
      // the second one to the stream waited for the first one
      expect(answers.map(({ position }) => position)).toEqual([4n, 8n, 5n, 6n, 7n])
      await log.append(aStream(), -1, [anEvent({ type: 'LastOne' })])
      for (const { events } of await Promise.all(watched)) {
        expect(events.slice(0, -1)).toEqual(stored)
      }
    })
  })

  describe('several writers', () => {
    test('what one prepared on a refused append is refused, unless it follows what another wrote', async () => {
      const [log, second] = [await openLog(), await openLog()]
      const [stream, absent] = [aStream(), aStream()]
      await log.append(stream, -1, [anEvent()])
      await second.append(stream, 0, [anEvent({ type: 'OfSecond' })])
      const others = Array.from({ length: 5 }, aStream)
      const outcomes = await Promise.allSettled([
        ...others.slice(0, 2).map((one) => log.append(one, -1, someEvents(2))),
        log.append(stream, 0, [anEvent({ type: 'Refused' })]),
        log.append(stream, 1, [anEvent({ type: 'AfterSecond' })]),
        log.append(stream, 2, someEvents(2)),
        log.append(stream, 6, someEvents(2)),
        log.append(absent, 0, [anEvent()]),
        log.append(absent, 1, [anEvent()]),
        ...others.slice(2).map((one) => log.append(one, -1, someEvents(2))),
      ])
      const [yes, no] = ['fulfilled', 'rejected']
      expect(outcomes.map(({ status }) => status)).toEqual([
        ...[yes, yes],
        ...[no, yes, yes, no, no, no],
        ...[yes, yes, yes],
      ])
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(WrongExpectedRevision)
      }
      expect((await second.readStream(stream)).map(({ type }) => type)).toEqual([
        ...['SomethingHappened', 'OfSecond', 'AfterSecond'],
        ...['SomethingHappened', 'SomethingHappened'],
      ])
      const stored = await everything(log)
      expectIntactChains(stored)
      // without gaps, where something was left out
      expect(stored.map(({ position }) => position)).toEqual(stored.map((_, n) => BigInt(n + 1)))
    })

    test('never fork a stream, however they race', async () => {
      const logs = [await openLog(), await openLog()]
      const streams = Array.from({ length: 3 }, aStream)
      const rounds = 15
      let won = 0
      await Promise.all(
        [...logs, ...logs, ...logs].map(async (log, lane) => {
          for (let round = 0; round < rounds; round += 1) {
            const stream = streams[(lane + round) % 3]!
            const revision = await revisionOf(log, stream)
            // the second one on the first one, the third one on what may come from elsewhere
            const outcomes = await Promise.allSettled(
              [0, 1, 1].map((ahead) => log.append(stream, revision + ahead, [anEvent()])),
            )
            won += outcomes.filter(({ status }) => status === 'fulfilled').length
            for (const outcome of outcomes) {
              if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(WrongExpectedRevision)
            }
          }
        }),
      )
      const stored = await everything(logs[0]!)
      expectIntactChains(stored)
      expect(stored).toHaveLength(won)
      expect(won).toBeGreaterThan(rounds)
    })

    test('are right about one that ignores the rules', async () => {
      const log = await openLog()
      const stream = aStream()
      await log.append(stream, -1, someEvents(1))
      const foreign = await superuser()
      await foreign.query(
        `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
         VALUES (2, 1, gen_random_uuid(), $1, 'Foreign', '{}', $2)`,
        [stream, `{"hash":"${'a'.repeat(64)}"}`],
      )
      await expect(log.append(stream, 0, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
      expect(await log.append(stream, 1, [anEvent()])).toMatchObject({ position: 3n })

      // even when it writes at the same moment
      await foreign.query('BEGIN')
      await foreign.query(
        `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
         VALUES (4, 3, gen_random_uuid(), $1, 'Foreign', '{}', $2)`,
        [stream, `{"hash":"${'a'.repeat(64)}"}`],
      )
      const [taken, elsewhere] = [log.append(stream, 2, [anEvent()]), log.append(aStream(), -1, [anEvent()])]
      taken.catch(() => undefined)
      await expect.poll(() => sessionsThatWait(foreign)).toBe(1)
      await foreign.query('COMMIT')
      await expect(taken).rejects.toThrow(WrongExpectedRevision)
      expect(await elsewhere).toMatchObject({ position: 5n })
    })

    test('need the right to insert: the function lends nobody its own', async () => {
      const log = await openLog()
      const client = await superuser()
      await client.query('REVOKE INSERT ON event_log.events FROM compstream_service')
      await expect(log.append(aStream(), -1, [anEvent()])).rejects.toThrow(/refused.*permission denied/)
      await client.query('GRANT INSERT ON event_log.events TO compstream_service')
      await log.append(aStream(), -1, [anEvent()])
    })
  })

  describe('a log that is held exclusively', () => {
    test('lets no other process open it, and is refused while another one has it open', async () => {
      const lockWaitMs = 200
      const exclusive = await openLog({ isExclusive: true })
      expect(exclusive.isExclusive).toBe(true)
      await expect(openLog({ lockWaitMs })).rejects.toThrow(
        /the event log is held by a process that shares it with nobody \(database session \d+\)/,
      )
      await expect(openLog({ isExclusive: true, lockWaitMs })).rejects.toThrow(
        /the event log is in use \(database session \d+\): stop every service/,
      )
      await exclusive.append(aStream(), -1, [anEvent()])
      expect(exclusive.isExclusive).toBe(true)
      await exclusive.close()
      const shared = await openLog()
      expect(shared.isExclusive).toBe(false)
      await expect(openLog({ isExclusive: true, lockWaitMs })).rejects.toThrow(DatabaseUnavailable)
    })

    test('waits for the session of a process that has just ended', async () => {
      const before = await openLog()
      const opening = openLog({ isExclusive: true })
      await waitForLockWaiter(await superuser())
      await before.close()
      expect((await opening).isExclusive).toBe(true)
    })

    test('is followed live, as any other', async () => {
      const log = await openLog({ isExclusive: true })
      const watching = follow(log, {}, (all) => all.length >= 40)
      for (let n = 0; n < 20; n += 1) await log.append(aStream(), -1, someEvents(2))
      expect((await watching).events).toHaveLength(40)
    })

    test('does not claim to know everything once it has lost its connection', async () => {
      const log = await openLog({ isExclusive: true })
      await terminate('compstream event log writer')
      await vi.waitUntil(() => !log.isExclusive, { timeout: 240_000 })
      const stream = aStream()
      await log.append(stream, -1, [anEvent()])
      expect(log.isExclusive).toBe(false)
      // it has taken the lock again
      await expect(openLog({ lockWaitMs: 200 })).rejects.toThrow(/shares it with nobody/)
    })

    test('nor once an append may be stored after its sender gave it up, which is found all the same', async () => {
      const log = await openLog({ isExclusive: true, patienceMs: PATIENCE_MS })
      const stream = aStream()
      await log.append(stream, -1, [anEvent()])
      const holder = await superuser()
      await holder.query('BEGIN; LOCK TABLE event_log.events IN SHARE MODE')
      const giveUp = holdTime()
      const late = log.append(stream, 0, [anEvent({ type: 'Late' })])
      await expect.poll(() => sessionsThatWait(holder)).toBe(1)
      giveUp()
      await expect(late).rejects.toThrow(/outcome is unknown/)
      // whoever keeps what it read of the stream has to look again
      expect(log.isExclusive).toBe(false)
      expect(await log.readStream(stream)).toHaveLength(1)
      const watching = follow(log, {}, (all) => all.at(-1)?.type === 'Late')
      await holder.query('COMMIT')
      expectIntactChains((await watching).events)
    })

    test('but not for one that was given up before it was sent, and never is', async () => {
      const stream = aStream()
      const before = await openLog()
      await before.append(stream, -1, [anEvent()])
      await before.close()
      const log = await openLog({ isExclusive: true, patienceMs: PATIENCE_MS })
      const holder = await superuser()
      // the event that it is to follow cannot be read
      await holder.query('BEGIN; LOCK TABLE event_log.events IN ACCESS EXCLUSIVE MODE')
      const giveUp = holdTime()
      const late = log.append(stream, 0, [anEvent({ type: 'Late' })])
      await expect.poll(() => sessionsThatWait(holder)).toBeGreaterThan(0)
      giveUp()
      await expect(late).rejects.toThrow(/was not sent/)
      await holder.query('COMMIT')
      expect(await log.readStream(stream)).toHaveLength(1)
      expect(log.isExclusive).toBe(true)
      await log.close()
      expect((await everything(await openLog())).map(({ type }) => type)).toEqual(['SomethingHappened'])
    })
  })
})

const CHANGES = [
  `UPDATE event_log.events SET data = '{}'`,
  'DELETE FROM event_log.events',
  'TRUNCATE event_log.events',
]

const PATIENCE_MS = 60_000
const KILLS = 6

/** Timers that are set from now on fire only with the answer, which lets the patience with an append pass. */
function holdTime(): () => void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldClearNativeTimers: true })
  onTestFinished(() => void vi.useRealTimers())
  return () => {
    vi.advanceTimersByTime(PATIENCE_MS)
    vi.useRealTimers()
  }
}

/** Resolves when some session waits for a lock. */
async function waitForLockWaiter(client: pg.Client): Promise<'waiting'> {
  await expect.poll(() => sessionsThatWait(client)).toBe(1)
  return 'waiting'
}

// @module-tag once: it has the logs of both engines that it needs itself
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { EventStoreDBClient } from '@eventstore/db-client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { TreeCheck } from '../../../application/audit/tree-check.ts'
import { verifyLog } from '../../../application/audit/verification.ts'
import { type EventLog, LogWentBack } from '../../../application/ports/event-log.ts'
import { PostgresLogTreeStore } from '../../../infrastructure/audit/log-tree-store.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { RememberedLog } from '../../../infrastructure/event-store/remembered-log.ts'
import { PostgresLogMemory } from '../../../infrastructure/installation/log-memory.ts'
import { findLoss, takeBackLostEvents } from '../../../infrastructure/installation/lost-events.ts'
import { aStream, someEvents } from '../../contract/event-store/event-log.contract.ts'
import { createTestDatabase } from '../../support/database.ts'
import { type EventStoreServer, eventStoreProgram, startEventStore } from '../../support/eventstoredb.ts'

const run = promisify(execFile)

/** A log that can be brought back to what it was when it was backed up. */
interface Restorable {
  readonly database: Database
  open(): Promise<EventLog>
  backUp(): Promise<void>
  restore(): Promise<void>
  /** Deletes a stream by the means of the engine. */
  removeStream(stream: string): Promise<void>
  end(): Promise<unknown>
}

async function inPostgres(): Promise<Restorable> {
  const created = await createTestDatabase()
  const database = await openDatabase({ url: created.url })
  let head = '0'
  const remove = (which: string, value: string) =>
    database.withOwner(async (client) => {
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER immutable')
      await client.query(`DELETE FROM event_log.events WHERE ${which}`, [value])
      await client.query('ALTER TABLE event_log.events ENABLE ALWAYS TRIGGER immutable')
    })
  return {
    database,
    open: () => openPostgresEventLog({ database }),
    async backUp() {
      const { rows } = await database.pool.query('SELECT max(position) AS head FROM event_log.events')
      head = rows[0].head
    },
    restore: () => remove('position > $1', head),
    removeStream: (stream) => remove('stream = $1', stream),
    end: () => database.close().then(() => created.drop()),
  }
}

async function inEventStore(): Promise<Restorable> {
  const created = await createTestDatabase()
  const database = await openDatabase({ url: created.url })
  const directory = await mkdtemp(join(tmpdir(), 'compstream-lost-'))
  const place = (name: string) => join(directory, name)
  const server: EventStoreServer = await startEventStore({ database: place('db') })
  return {
    database,
    open: () => openEventStoreEventLog({ url: server.url, patienceMs: 120_000 }),
    async backUp() {
      await server.end()
      await run('cp', ['-a', place('db'), place('backup')])
      await server.restart()
    },
    async restore() {
      await server.kill()
      await rm(place('db'), { recursive: true })
      await rename(place('backup'), place('db'))
      await server.restart()
    },
    async removeStream(stream) {
      const client = EventStoreDBClient.connectionString(server.url)
      await client.deleteStream(stream)
      await client.dispose()
    },
    async end() {
      await server.stop()
      await rm(directory, { recursive: true, force: true })
      await database.close()
      await created.drop()
    },
  }
}

const hasEventStore = (await eventStoreProgram()) !== null

describe('a log in PostgreSQL that lost its newest events', () => losesEvents('PostgreSQL', inPostgres))

// its server is restarted three times; PostgreSQL has the same rules
describe.skipIf(!hasEventStore)(
  'a log in EventStoreDB that lost its newest events (needs the program)',
  { tags: 'long' },
  () => losesEvents('EventStoreDB', inEventStore),
)

function losesEvents(name: 'PostgreSQL' | 'EventStoreDB', create: () => Promise<Restorable>): void {
  let place: Restorable
  let log: RememberedLog
  let memory: PostgresLogMemory
  const open = async () => new RememberedLog(await place.open())
  beforeAll(async () => {
    place = await create()
    log = await open()
    memory = new PostgresLogMemory(place.database.pool)
  })
  afterAll(async () => {
    await log?.close()
    await place?.end()
  })

  /** As a process manager stores how far it has read. */
  const readUpTo = (reader: string, position: bigint) =>
    place.database.pool.query(
      `INSERT INTO runtime.process_managers (name, position, epoch) VALUES ($1, $2, 1)
       ON CONFLICT (name) DO UPDATE SET position = excluded.position`,
      [reader, String(position)],
    )
  const checkpoints = async () => {
    const { rows } = await place.database.pool.query(
      'SELECT name, position FROM runtime.process_managers ORDER BY name',
    )
    return Object.fromEntries(rows.map(({ name: reader, position }) => [reader, BigInt(position)]))
  }
  const problemOf = async () => {
    const store = new PostgresLogTreeStore(place.database)
    const tree = await TreeCheck.open({ log, store, verifiers: async () => [], copies: async () => [] })
    return (await verifyLog({ log, memory, tree })).first_problem
  }

  test('is told from what was read of it, in whatever state it comes back', async () => {
    await log.append(aStream(), -1, someEvents(2))
    const kept = await log.append(aStream(), -1, someEvents(1))
    expect(await memory.findLogWentBack(log)).toBeNull()
    await place.backUp()
    const lost = await log.append(aStream(), -1, someEvents(3))
    expect(await memory.findLogWentBack(log)).toBeNull()
    await readUpTo('behind', kept.position)
    await readUpTo('ahead', lost.position)
    expect(await findLoss(memory, log)).toBeNull()

    await place.restore()
    await expect(log.compare()).rejects.toThrow(LogWentBack)
    await expect(
      log
        .subscribe({ after: lost.position, pageSize: 10, signal: AbortSignal.timeout(60_000) })
        [Symbol.asyncIterator]()
        .next(),
    ).rejects.toThrow(LogWentBack)
    expect(await memory.findLogWentBack(log)).toMatch(/^The event log went back: /)
    expect(await findLoss(memory, log)).toEqual({
      common: kept.position,
      head: kept.position,
      reached: lost.position,
    })
    expect(await problemOf()).toMatchObject({
      problem: 'missing_end',
      position: String(lost.position),
      event_id: lost.eventId,
    })

    // another process, or another installation, writes on
    await log.close()
    log = await open()
    const grown = await log.append(aStream(), -1, someEvents(9))
    expect(grown.position).toBeGreaterThan(lost.position)
    // who begins now remembers it as it is
    expect(await memory.findLogWentBack(log)).toBeNull()
    expect(await findLoss(memory, log)).toMatchObject({ common: kept.position, head: grown.position })
    expect(await problemOf()).toMatchObject({ problem: 'replaced_events', event_id: lost.eventId })
  })

  test('is taken up again from the last common position, and said to be', async () => {
    const { behind, ahead } = await checkpoints()
    const told: string[] = []
    const report = (text: string) => told.push(text)
    // what was lost is told, although nobody can tell what was cut
    const findCut = () => Promise.reject(new Error('the log is away'))
    const { idAt, head, count } = log
    for (let start = 0; start < 2; start += 1) {
      await takeBackLostEvents({ database: place.database, log: { idAt, head, count, findCut }, report })
    }
    expect(told).toEqual([
      expect.stringMatching(
        new RegExp(
          `^the event log went back: it is what was read up to position ${behind}, ends at \\d+ and had been read ` +
            'up to \\d+: about \\d+ events are lost$',
        ),
      ),
      `going on from position ${behind}: ahead`,
    ])
    expect(ahead).toBeGreaterThan(behind!)
    expect(await checkpoints()).toEqual({ behind, ahead: behind })
    expect(await memory.findLogWentBack(log)).toBeNull()
    expect(await problemOf()).toBeNull()
  })

  test('is not verified when fewer events stand before one than were counted', async () => {
    const { marks } = await memory.recall()
    const counted = marks.find(({ events }) => events !== null)!
    await memory.remember({ ...counted, events: counted.events! + 1 })
    expect(await problemOf()).toMatchObject({ problem: 'replaced_events', event_id: counted.eventId })
    await memory.remember(counted)
  })

  test('is not verified when a whole stream was removed from it', async () => {
    const stream = aStream()
    const removed = await log.append(stream, -1, someEvents(2))
    await memory.remember({ ...removed, events: null })
    await log.append(aStream(), -1, someEvents(1))
    expect(await problemOf()).toBeNull()
    await place.removeStream(stream)
    const problem = await problemOf()
    if (name === 'PostgreSQL') return expect(problem).toMatchObject({ problem: 'missing_positions' })
    expect(problem).toMatchObject({ problem: 'cut_stream', stream })
    // its server removes the events later, by a scavenge
    const idAt = async (position: bigint) => (position === removed.position ? null : log.idAt(position))
    const scavenged = { idAt, last: removed, head: () => log.head(), findCut: () => log.findCut() }
    const told = await memory.findLogWentBack(scavenged)
    expect(told).toMatch(/^The event log was cut: the event that was read at position /)
    expect(told).toContain(`stream ${stream} was cut or deleted`)
  })
}

describe('what is remembered of a log', () => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  test('stays small, lies densest near the end, and keeps the last count', async () => {
    const created = await createTestDatabase()
    ends.push(created.drop)
    const database = await openDatabase({ url: created.url })
    ends.push(database.close)
    const memory = new PostgresLogMemory(database.pool)
    for (let n = 1; n <= 300; n += 1) {
      const events = n === 7 || n === 11 ? n : null
      await memory.remember({ position: BigInt(n) * 1_000n, eventId: randomUUID(), events })
    }
    const { marks } = await memory.recall()
    const positions = marks.map(({ position }) => Number(position))
    expect(positions.length).toBeLessThan(60)
    expect(positions[0]).toBe(1_000)
    expect(positions.slice(-3)).toEqual([298_000, 299_000, 300_000])
    for (const [at, position] of positions.slice(0, -1).entries()) {
      const before = 300_000 - position
      const next = 300_000 - positions[at + 1]!
      expect(next, `after ${position}`).toBeGreaterThanOrEqual(before / 2 - 1_000)
    }
    expect(marks.filter(({ events }) => events !== null).map(({ events }) => events)).toContain(11)
  })
})

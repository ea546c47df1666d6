// @module-tag once: it has the log that it needs itself
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EventStoreDBClient } from '@eventstore/db-client'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { EventLog, StoredEvent } from '../../../application/ports/event-log.ts'
import { openDatabase } from '../../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openMovableEventStoreLog } from '../../../infrastructure/event-store/eventstoredb/movable-log.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { anEvent, someEvents } from '../../contract/event-store/event-log.contract.ts'
import { type CliRun, cli, expectRefused } from '../../support/cli.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { runs } from '../../support/generated.ts'
import { withClient } from '../../support/table-copies.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

const databases: TestDatabase[] = []
afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop()
})

async function emptyDatabase(): Promise<string> {
  const database = await createTestDatabase()
  databases.push(database)
  return database.url
}

async function withLog<T>(url: string, work: (log: EventLog) => Promise<T>): Promise<T> {
  if (url.startsWith('esdb')) {
    const log = await openEventStoreEventLog({ url })
    return work(log).finally(() => log.close())
  }
  const database = await openDatabase({ url })
  const log = await openPostgresEventLog({ database })
  return work(log).finally(async () => {
    await log.close()
    await database.close()
  })
}

/** Appends in order: each to one of a few streams, whose last revisions are kept in `ends`. */
async function fill(
  url: string,
  appends: readonly (readonly [stream: string, count: number, text?: string])[],
  ends = new Map<string, number>(),
): Promise<void> {
  await withLog(url, async (log) => {
    for (const [stream, count, text = ''] of appends) {
      const before = ends.get(stream) ?? -1
      const events = someEvents(count, { data: JSON.stringify({ text }), type: `Type ${count % 3}` })
      await log.append(stream, before, events)
      ends.set(stream, before + count)
    }
  })
}

async function eventsOf(url: string): Promise<StoredEvent[]> {
  return withLog(url, async (log) => {
    const events: StoredEvent[] = []
    for (let after = 0n; ; ) {
      const page = await log.readAll({ after, maxCount: 1_000 })
      events.push(...page.events)
      after = page.checkpoint
      if (page.atHead) return events
    }
  })
}

const contentOf = (events: readonly StoredEvent[]) => events.map(({ position: _, ...content }) => content)

const move = (from: string, to: string, ...more: string[]): Promise<CliRun> =>
  cli(['events', 'copy', '--from', from, '--to', to, '--json', ...more])
/** The log alone: what stands beside it is not what these tests are about. */
const copy = (from: string, to: string): Promise<CliRun> => move(from, to, '--log-only')

/** As a start of the service leaves it behind: the root of fingerprints, and which log the database belongs to. */
async function pairUp(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`INSERT INTO runtime.secrets (ref, sealed, wrapped_key, master_key_id, created_at)
                        VALUES ('system/fingerprint-root', '', '', '', now())`)
    await client.query(`INSERT INTO runtime.log_binding (engine, first_event_id, first_position)
                        SELECT 'postgresql', event_id, position FROM event_log.events WHERE position = 1`)
  })
}

const wild = fc.array(
  fc.tuple(
    fc.constantFrom('a-1', 'b-2', 'ä-3', 'c-4', 'd-5', 'e-6'),
    fc.integer({ min: 1, max: 12 }),
    fc.string({ unit: 'binary', maxLength: 60 }),
  ),
  { minLength: 1, maxLength: 60 },
)

describe('events copy between PostgreSQL databases', () => {
  test('keeps every byte, the order over all streams and the positions', async () => {
    await fc.assert(
      fc.asyncProperty(wild, async (appends) => {
        const [from, to] = [await emptyDatabase(), await emptyDatabase()]
        await fill(from, appends)
        const run = await copy(from, to)
        expect(run.code, run.stderr).toBe(0)
        const events = await eventsOf(from)
        expect(run.json()).toMatchObject({
          logs_equal: true,
          equal: null,
          copied: events.length,
          database: null,
          not_carried: expect.arrayContaining([expect.stringMatching(/^keys of personal data, secrets/)]),
        })
        expect(await eventsOf(to)).toEqual(events)
      }),
      runs(1, 40),
    )
  })

  // the first one copies the whole
  test('goes on where an earlier copy ended, and has nothing to do when both are equal', {
    tags: 'long',
  }, async () => {
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    const ends = new Map<string, number>()
    await fill(from, [['a-1', 5]], ends)
    expect((await copy(from, to)).json()).toMatchObject({ already_there: 0, copied: 5 })
    await fill(
      from,
      [
        ['b-1', 2],
        ['a-1', 1],
      ],
      ends,
    )
    const second = (await copy(from, to)).json()
    expect(second).toMatchObject({ already_there: 5, copied: 3, to: { events: 8, streams: 2, head: '8' } })
    expect((await copy(from, to)).json()).toMatchObject({ already_there: 8, copied: 0 })
    const verified = await cli(['events', 'verify', '--at', to, '--json'])
    expect(verified.json()).toEqual(second.to)
  })

  // the first one copies the whole
  test('copies an empty log, and into a database without any schema', { tags: 'long' }, async () => {
    const bare = await createTestDatabase({ migrate: false })
    databases.push(bare)
    const from = await emptyDatabase()
    expect((await copy(from, bare.url)).json()).toMatchObject({
      logs_equal: true,
      copied: 0,
      to: { head: '0' },
    })
    await fill(from, [['a-1', 3]])
    expect((await copy(from, bare.url)).json()).toMatchObject({ copied: 3 })
  })

  test('refuses a target that is no beginning of the source, naming the first event that differs', async () => {
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    await fill(from, [['a-1', 4]])
    await copy(from, to)
    const [other] = await withLog(to, async (log) => {
      await log.append('x-1', -1, [anEvent()])
      return log.readStream('x-1')
    })
    await fill(from, [['b-1', 1]])
    const run = await copy(from, to)
    expect(run.code).toBe(1)
    expect(run.stdout).toBe('')
    expect(run.stderr).toContain('does not hold a beginning of')
    expect(run.stderr).toContain(
      `event 5 differs by its stream: it is x-1@0 (SomethingHappened, event id ${other!.eventId}`,
    )
    expect(run.stderr).toContain('in the source b-1@0')
    expect(await eventsOf(to)).toHaveLength(5)
  })

  test('refuses a target that goes on where the source has ended', async () => {
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    await fill(to, [['a-1', 4]])
    const run = await copy(from, to)
    expectRefused(run, /it goes on after the source's end with a-1@0/)
  })

  test('refuses a source that was changed, and hands on nothing from there', async () => {
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    await fill(from, [
      ['a-1', 3],
      ['b-1', 3],
    ])
    await withClient(from, async (client) => {
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER immutable')
      await client.query(`UPDATE event_log.events SET data = '{"text":"forged"}' WHERE position = 4`)
    })
    const run = await copy(from, to)
    expectRefused(run, /was changed: hash mismatch at b-1@0/)
    expect((await eventsOf(to)).filter(({ stream }) => stream === 'b-1')).toEqual([])
    expect((await cli(['events', 'verify', '--at', from])).stderr).toMatch(/hash mismatch at b-1@0/)
  })

  test('refuses a log with events taken out, whichever side it is', async () => {
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    await fill(from, [
      ['a-1', 1],
      ['b-1', 2],
      ['c-1', 1],
    ])
    await withClient(from, async (client) => {
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER immutable')
      await client.query(`DELETE FROM event_log.events WHERE stream = 'b-1'`)
    })
    for (const run of [await copy(from, to), await cli(['events', 'verify', '--at', from])]) {
      expectRefused(run, /Events are missing in PostgreSQL at .* between positions 1 and 4/)
    }
  })

  // either side is opened in the same way
  for (const [side, tags] of [
    ['source', ['long']],
    ['target', []],
  ] as const)
    test(`refuses while a service runs on the ${side}`, { tags: [...tags] }, async () => {
      const [from, to] = [await emptyDatabase(), await emptyDatabase()]
      await fill(from, [['a-1', 3]])
      await withLog(side === 'source' ? from : to, async (log) => {
        const run = await withDeadlinesOfTheProduct(() => copy(from, to))
        expectRefused(run, /the event log is in use \(database session \d+\): stop every service/)
        // it was not disturbed
        expect(await log.head()).toBe(side === 'source' ? 3n : 0n)
      })
      expect((await copy(from, to)).code).toBe(0)
    })

  test('a service cannot start on a log that is being copied', async () => {
    const { openMovablePostgresLog } = await import(
      '../../../infrastructure/event-store/postgres/movable-log.ts'
    )
    const database = await openDatabase({ url: await emptyDatabase() })
    const held = await openMovablePostgresLog(database)
    for (const isExclusive of [true, false]) {
      await expect(openPostgresEventLog({ database, isExclusive, lockWaitMs: 300 })).rejects.toThrow(
        /the event log is (in use|held by a process that shares it with nobody) \(database session \d+\)/,
      )
    }
    await held.close()
    await (await openPostgresEventLog({ database })).close()
    await database.close()
  })

  test('takes addresses from variables and files, and prints no password', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'compstream-copy-'))
    const [from, to] = [await emptyDatabase(), await emptyDatabase()]
    await fill(from, [['a-1', 3]])
    await writeFile(join(folder, 'to'), `${to}\n`)
    const env = { OLD_LOG: from, NEW_LOG_FILE: join(folder, 'to') }
    const run = await cli(['events', 'copy', '--from', 'OLD_LOG', '--to', 'NEW_LOG', '--log-only'], { env })
    expect(run.code, run.stderr).toBe(0)
    expect(run.stderr).toMatch(/^copying: 100 %, 3 events, \d+\/s/m)
    const { password } = new URL(from)
    expect(password.length).toBeGreaterThan(8)
    const wrong = to.replace(password, 'wrong-password')
    const refused = await cli(['events', 'copy', '--from', 'OLD_LOG', '--to', 'X'], {
      env: { ...env, X: wrong },
    })
    expect(refused.code).toBe(1)
    for (const { stdout, stderr } of [run, refused]) {
      expect(stdout + stderr).not.toContain(password)
      expect(stdout + stderr).not.toContain('wrong-password')
    }
    await rm(folder, { recursive: true })
  })

  test.each([
    [['--from', 'NOWHERE', '--to', 'esdb://127.0.0.1:1'], /variable NOWHERE is not set, nor is NOWHERE_FILE/],
    [['--from', 'http://x:secret@y', '--to', 'esdb://127.0.0.1:1'], /begins with postgresql:\/\/ or esdb:/],
    [['--from', './no-such-folder', '--to', 'esdb://127.0.0.1:1'], /holds no embedded server/],
    [['--from', 'esdb://a:1', '--to', 'esdb://u:secret@a:1?tls=false'], /name the same log/],
    [
      ['--from', 'esdb://a:1', '--to', 'esdb://b:1', '--from-database', 'esdb://b:1'],
      /--from-database takes a PostgreSQL database/,
    ],
    [['--from', 'esdb://a:1', '--to', 'esdb://b:1'], /--from-database is missing/],
    [
      ['--from', 'esdb://a:1', '--to', 'postgresql://b:1/c', '--to-database', 'postgresql://b:1/d'],
      /--to-database differs from the log's/,
    ],
    [
      ['--from', 'esdb://a:1', '--to', 'esdb://b:1', '--log-only', '--from-database', 'postgresql://b:1/d'],
      /--log-only takes neither/,
    ],
  ])('wrong usage %#', async (args, message) => {
    const run = await cli(['events', 'copy', ...args])
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(message)
    expect(run.stderr).not.toContain('secret')
  })
})

if (await findEventStore()) {
  describe('events copy to and from EventStoreDB', () => {
    let server: EventStoreServer
    let other: EventStoreServer
    beforeAll(async () => {
      server = await startEventStore()
      other = await startEventStore()
    })
    afterAll(async () => {
      await server?.stop()
      await other?.stop()
    })

    test('refuses a log in which a stream was deleted, whichever side it is', async () => {
      const source = await emptyDatabase()
      const target = await startEventStore()
      const client = EventStoreDBClient.connectionString(target.url)
      try {
        await fill(source, [
          ['a-1', 2],
          ['b-1', 2],
        ])
        expect((await copy(source, target.url)).code).toBe(0)
        await client.deleteStream('b-1')
        for (const run of [
          await copy(source, target.url),
          await copy(target.url, await emptyDatabase()),
          await cli(['events', 'verify', '--at', target.url]),
        ]) {
          expectRefused(run, /Stream b-1 in EventStoreDB at .* was cut or deleted at position \d+/)
        }
        // the server takes its ids for stored, and stores nothing
        const log = await openMovableEventStoreLog(target.url)
        const events = (await eventsOf(source)).filter(({ stream }) => stream === 'b-1')
        await expect(log.write(events)).rejects.toThrow(/Stream b-1 was deleted in EventStoreDB at /)
        await log.close()
      } finally {
        await client.dispose()
        await target.stop()
      }
    })

    test('there and back, byte for byte and in the same order', async () => {
      const [from, back] = [await emptyDatabase(), await emptyDatabase()]
      const ends = new Map<string, number>()
      const streams = Array.from({ length: 40 }, (_, n) => `stream-${n}`)
      const appends = Array.from(
        { length: 200 },
        (_, n) =>
          [
            streams[(n * n + 3 * n) % streams.length]!,
            1 + (n % 7),
            `${randomUUID()} ünï "quoted" \\ \u2028 ${'x'.repeat(3 * n)}`,
          ] as const,
      )
      await fill(from, appends, ends)
      const events = await eventsOf(from)
      for (const [source, target] of [
        [from, server.url],
        [server.url, other.url],
        [other.url, back],
      ] as const) {
        const run = await copy(source, target)
        expect(run.code, run.stderr).toBe(0)
        expect(run.json()).toMatchObject({ logs_equal: true, copied: events.length })
        expect(contentOf(await eventsOf(target))).toEqual(contentOf(events))
      }
      expect(await eventsOf(back)).toEqual(events)
      // each side may go on, and the other takes it over
      await fill(
        server.url,
        [
          ['stream-0', 3],
          ['new', 1],
        ],
        ends,
      )
      expect((await copy(server.url, back)).json()).toMatchObject({ already_there: events.length, copied: 4 })
      await fill(back, [['new', 600]], ends)
      expect((await copy(back, server.url)).json()).toMatchObject({ copied: 600 })
      expect(contentOf(await eventsOf(server.url))).toEqual(contentOf(await eventsOf(back)))
    })

    test('refuses a source that ends before what was read of it', async () => {
      const from = await emptyDatabase()
      await fill(from, [['a-1', 3]])
      await withClient(from, (client) =>
        client.query(`INSERT INTO runtime.process_managers (name, position, epoch) VALUES ('x', 4, 1)`),
      )
      await pairUp(from)
      const run = await move(from, other.url)
      expectRefused(run, /ends at position 3, and .* has read it up to 4: restore both/)
    })

    test('a database that belongs to another log keeps its checkpoints', async () => {
      const from = await emptyDatabase()
      await fill(from, [['a-1', 1]])
      await pairUp(from)
      await withClient(from, (client) =>
        client.query(
          'UPDATE runtime.log_binding SET first_event_id = gen_random_uuid(), first_position = 77',
        ),
      )
      const run = await move(from, other.url)
      expectRefused(run, /belongs to another log than the one that is copied/)
    })

    test('a database without the keys of the log is refused before anything is copied', async () => {
      const [from, empty, old] = [await emptyDatabase(), await emptyDatabase(), await emptyDatabase()]
      await fill(from, [['a-1', 1]])
      const target = await startEventStore()
      try {
        for (const [source, to] of [
          [from, target.url],
          [from, empty],
        ] as const) {
          const run = await move(source, to)
          expectRefused(run, /holds no keys of the log: name the database that does/)
          expect(await eventsOf(to)).toEqual([])
        }
        await copy(from, target.url)
        const back = await move(target.url, old)
        expectRefused(back, /holds no keys of the log: name the database that does/)
        expect(await eventsOf(old)).toEqual([])
      } finally {
        await target.stop()
      }
    })
  })
} else {
  describe.skip('events copy to and from EventStoreDB (no server was found)', () =>
    test('skipped', () => undefined))
}

import { randomUUID } from 'node:crypto'
import { binaryEvent, EventStoreDBClient, jsonEvent, START } from '@eventstore/db-client'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { splitHash, verifyEvent } from '../../../application/commands/hash-chain.ts'
import {
  type EventLog,
  type EventToAppend,
  LOG_START,
  type StoredEvent,
  UnknownPosition,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import { shareAppends } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import { connect } from '../../../infrastructure/event-store/eventstoredb/client.ts'
import {
  EventStoreUnavailable,
  StreamTampered,
} from '../../../infrastructure/event-store/eventstoredb/errors.ts'
import {
  type EventStoreEventLogOptions,
  openEventStoreEventLog,
} from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { Live } from '../../../infrastructure/event-store/eventstoredb/live.ts'
import { LogReader } from '../../../infrastructure/event-store/eventstoredb/log-reader.ts'
import { Subscription } from '../../../infrastructure/event-store/eventstoredb/subscription.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { untilAnswered } from '../../support/until-answered.ts'
import { anEvent, aStream, eventLogContract, follow, someEvents } from './event-log.contract.ts'

const source = await findEventStore()

if (source) {
  eventLogContract('EventStoreDB', async () => {
    const server = await startEventStore()
    return { open: () => openEventStoreEventLog({ url: server.url }), remove: () => server.stop() }
  })
} else {
  describe.skip('event log contract: EventStoreDB (no server was found)', () =>
    test('skipped', () => undefined))
}

describe.skipIf(!source || source.kind === 'given')('event log in EventStoreDB', () => {
  let server: EventStoreServer
  /** As another program would use the same server. */
  let others: EventStoreDBClient
  const cleanups: (() => Promise<unknown>)[] = []
  const cleanup = (work: () => Promise<unknown>) => cleanups.unshift(work)

  beforeAll(async () => {
    server = await startEventStore({ keepsData: true })
    others = EventStoreDBClient.connectionString(server.url)
  })
  afterEach(async () => {
    for (const work of cleanups.splice(0)) await work()
  })
  afterAll(async () => {
    await others?.dispose()
    await server?.stop()
  })

  async function openLog(options: Partial<EventStoreEventLogOptions> = {}): Promise<EventLog> {
    const log = await openEventStoreEventLog({ url: server.url, ...options })
    cleanup(() => log.close())
    return log
  }

  test('who asks for hundreds of streams holds up nobody who asks for one', async () => {
    const hundreds = Array.from({ length: 400 }, aStream)

    const log = await openLog()
    let isAnswered = false
    const asked = Promise.all(hundreds.map((one) => log.readStream(one, { maxCount: 1 }))).then(() => {
      isAnswered = true
    })
    // what is asked at the same moment is read in one turn
    await new Promise(setImmediate)
    for (let n = 0; n < 3; n += 1) await log.readStream(aStream())
    const wasAnswered = isAnswered
    await asked
    expect(wasAnswered).toBe(false)
  })

  test('a log that is closed makes none of the reads that wait for their turn', async () => {
    const log = await openLog()
    const first = log.readStream(aStream())
    const asked = Promise.allSettled(Array.from({ length: 400 }, () => log.readStream(aStream())))
    await first
    await log.close()
    const read = vi.spyOn(EventStoreDBClient.prototype, 'readStream')
    const followed = vi.spyOn(EventStoreDBClient.prototype, 'subscribeToAll')
    onTestFinished(() => void vi.restoreAllMocks())
    const refused = (await asked).filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused as PromiseRejectedResult[])
      expect(reason).toBeInstanceOf(EventStoreUnavailable)
    expect(read).not.toHaveBeenCalled()
    expect(followed).not.toHaveBeenCalled()
  })

  test('tells of every stored append, and of nothing else', async () => {
    const told: [number, number][] = []
    const log = await openLog({ onAppend: (events, ms) => void told.push([events, ms]) })
    const stream = aStream()
    await log.append(stream, -1, someEvents(3))
    await expect(log.append(stream, 2, [])).rejects.toThrow()
    await expect(log.append(stream, -1, [anEvent()])).rejects.toThrow()
    expect(told).toEqual([[3, expect.any(Number)]])
  })

  test('a listener that throws costs no append', async () => {
    const warn = vi.fn()
    const onAppend = () => {
      throw new Error('the listener failed')
    }
    const log = await openLog({ log: { warn }, onAppend })
    const stream = aStream()
    await Promise.all([-1, 0, 1].map((revision) => log.append(stream, revision, [anEvent()])))
    expect(await log.readStream(stream)).toHaveLength(3)
    expect(warn).toHaveBeenCalledWith({ reason: 'the listener failed' }, expect.any(String))
  })

  test('refuses texts that JSON.stringify does not write, which the client would change', async () => {
    const log = await openLog()
    const stream = aStream()
    const texts = ['{', '1.0', '-0', '{"twice":1,"twice":2}', '{"b":1,"1":2}', '{ "space": 1 }', '"\\u00e9"']
    const appends = texts.flatMap((text) => [{ data: text }, { metadata: `{"m":${text}}` }])
    for (const fields of [...appends, { metadata: '{"hash":"of another kind"}' }]) {
      await expect(log.append(stream, -1, [anEvent(), anEvent(fields)])).rejects.toThrow(TypeError)
    }
    expect(await log.readStream(stream)).toEqual([])
  })

  test('follows only types that somebody wants, and new ones from when they are wanted', async () => {
    const log = await openLog()
    const [first, second] = [`First${randomUUID()}`, `Second${randomUUID()}`]
    const after = await log.head()
    const one = follow(log, { after, types: [first] }, (events) => events.length === 2)
    await log.append(aStream(), -1, [anEvent({ type: first }), anEvent({ type: second })])
    const other = follow(log, { after, types: [second] }, (events) => events.length === 2)
    await log.append(aStream(), -1, [anEvent({ type: second }), anEvent({ type: first })])
    expect((await one).events.map(({ type }) => type)).toEqual([first, first])
    expect((await other).events.map(({ type }) => type)).toEqual([second, second])
    // whoever comes after a rest goes on as well
    await log.append(aStream(), -1, someEvents(3))
    const all = await follow(log, { after }, (events) => events.length === 7)
    expect(all.pages.at(-1)!.checkpoint).toBe(await log.head())
  })

  describe('a server that stays away', () => {
    /** Waits until a promise is rejected as unavailable, in one line. @returns after how many milliseconds. */
    async function refusalTime(attempt: () => Promise<unknown>): Promise<number> {
      const began = performance.now()
      const error = await attempt().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(EventStoreUnavailable)
      expect((error as Error).message).toMatch(/^EventStoreDB at 127\.0\.0\.1:\d+: [^\n]+$/)
      return performance.now() - began
    }

    /** The append whose outcome was unknown, once more: whichever of the two is stored, it is stored once. */
    async function storedOnce(log: EventLog, stream: string, event: EventToAppend): Promise<void> {
      await untilAnswered(() =>
        log.append(stream, 0, [event]).catch((error: Error) => {
          if (!(error instanceof WrongExpectedRevision)) throw error
        }),
      )
      const stored = await untilAnswered(() => log.readStream(stream))
      expect(stored.map(({ data }) => data)).toEqual(['{"n":0}', '{"n":1}'])
    }

    test('ends appends and reads with one clear error after the patience; the same may be asked again', async () => {
      const log = await openLog({ patienceMs: 600 })
      const stream = aStream()
      const [first, second] = someEvents(2)
      await untilAnswered(() => log.append(stream, -1, [first!]))
      await server.kill()
      try {
        const times = await Promise.all([
          refusalTime(() => log.append(stream, 0, [second!])),
          refusalTime(() => log.append(aStream(), -1, [anEvent()])),
          refusalTime(() => log.readStream(stream)),
          refusalTime(() => log.readAll({ after: LOG_START, maxCount: 10 })),
          refusalTime(() => log.head()),
        ])
        for (const ms of times) expect(ms).toBeGreaterThan(500)
      } finally {
        await server.restart()
      }
      await storedOnce(log, stream, second!)
    })

    test.skipIf(source?.kind !== 'program')(
      'or is silent, ends them as well, and nothing is stored twice when it speaks again',
      () =>
        withDeadlinesOfTheProduct(async () => {
          const log = await openLog({ patienceMs: 600 })
          const stream = aStream()
          const [first, second] = someEvents(2)
          await untilAnswered(() => log.append(stream, -1, [first!]))
          const hundreds = Array.from({ length: 200 }, aStream)
          server.freeze()
          try {
            let areRefused = false
            const all = Promise.all([
              ...hundreds.map((name) => refusalTime(() => log.readStream(name))),
              refusalTime(() => log.changes(LOG_START)),
              refusalTime(() => log.append(stream, 0, [second!])),
              refusalTime(() => log.append(stream, 1, [anEvent()])),
              refusalTime(() => log.append(aStream(), -1, [anEvent()])),
              refusalTime(() => log.head()),
            ]).then(() => {
              areRefused = true
            })
            await refusalTime(() => log.readStream(stream))
            // whose patience only begins now: none of those before waits for two, though they are read a few at a time
            await refusalTime(() => log.readStream(stream))
            expect(areRefused).toBe(true)
            await all
          } finally {
            server.thaw()
          }
          await storedOnce(log, stream, second!)
        }),
    )

    test('does not keep a log from closing', async () => {
      const log = await openLog({ patienceMs: 600 })
      const subscription = follow(log, {}, () => false).catch((error: Error) => error)
      await server.kill()
      try {
        await log.close()
        expect(await subscription).toBeInstanceOf(Error)
      } finally {
        await server.restart()
      }
    })

    test('at the start is refused in one line', async () => {
      await server.kill()
      try {
        await refusalTime(() => openLog({ openingPatienceMs: 500 }))
      } finally {
        await server.restart()
      }
    })
  })

  describe('a subscription', () => {
    test.each([
      ['beside one that wants nothing', (live: Live) => void live.want([])],
      ['right after the last one has ended', (live: Live) => live.want(['Other'])()],
      [
        'after one that wants nothing, and one that has ended',
        (live: Live) => {
          live.want(['Other'])()
          live.want([])
        },
      ],
    ])('that begins %s is followed at once', async (_, before) => {
      const log = await openLog()
      const closing = new AbortController()
      const connection = connect(server.url)
      cleanup(() => connection.client.dispose())
      cleanup(async () => closing.abort())
      // nobody looks whether the subscription at the server is silent
      vi.useFakeTimers({ toFake: ['setInterval'] })
      cleanup(async () => vi.useRealTimers())
      const { appends, release } = shareAppends(server.url)
      cleanup(release)
      const reader = new LogReader(connection, appends, 10_000, closing.signal)
      const parts = { connection, reader, log: { warn: () => undefined }, closing: closing.signal }
      const live = new Live(parts, await log.head())
      before(live)
      const type = `Wanted${randomUUID()}`
      live.want([type])
      const { position } = await log.append(aStream(), -1, [anEvent({ type })])
      await live.feed.beyond(position - 1n, AbortSignal.timeout(240_000))
      expect(live.feed.to).toBe(position)
    })

    test('to more types misses none of their events that the one before it passed over', async () => {
      const log = await openLog()
      const before = await log.head()
      const closing = new AbortController()
      const connection = connect(server.url)
      cleanup(() => connection.client.dispose())
      cleanup(async () => closing.abort())
      // nobody else asks how far the log is
      vi.useFakeTimers({ toFake: ['setInterval'] })
      cleanup(async () => vi.useRealTimers())
      const { appends, release } = shareAppends(server.url)
      cleanup(release)
      const reader = new LogReader(connection, appends, 10_000, closing.signal)
      const reports: ((head: bigint) => void)[] = []
      const head = vi
        .spyOn(reader, 'head')
        .mockImplementation(() => new Promise((resolve) => reports.push(resolve)))
      const live = new Live(
        { connection, reader, log: { warn: () => undefined }, closing: closing.signal },
        before,
      )
      live.want(['Other'])
      const type = `Wanted${randomUUID()}`
      const { position } = await log.append(aStream(), -1, [anEvent({ type })])
      // it has passed the event by, and asks how far the log is
      await expect.poll(() => reports.length).toBeGreaterThan(0)
      live.want([type])
      head.mockRestore()
      for (const report of reports) report(position)
      await live.feed.beyond(position - 1n, AbortSignal.timeout(240_000))
      expect(live.feed.after(before, 10, new Set([type]))).toMatchObject({ events: [{ type, position }] })
    })

    // one whose consumer stands still goes on, too
    test('that is too slow is dropped or misses nothing, and leaves the client’s other calls alone', {
      tags: 'long',
    }, async () => {
      const log = await openLog()
      const { client } = connect(server.url)
      cleanup(() => client.dispose())
      const after = await log.head()
      const slow = new Subscription(client, { after, from: after, near: true })
      const type = `Rare${randomUUID()}`
      const quick = new Subscription(client, { after, from: after, types: [type] })
      cleanup(async () => quick.end())
      const caughtUp = async (subscription: Subscription) => {
        while (!subscription.isLive) await subscription.next(1_000)
      }
      await Promise.all([slow, quick].map(caughtUp))
      const data = JSON.stringify('x'.repeat(4_000))
      // nobody takes what arrives
      for (let written = 0; written < 30_000; written += 1_000) {
        await Promise.all(
          Array.from({ length: 100 }, () => log.append(aStream(), -1, someEvents(10, { data }))),
        )
      }
      const head = await log.head()
      const takeAll = async () => {
        for (let taken = 0; ; ) {
          const stretch = await slow.next(1_000)
          taken += stretch?.events.length ?? 0
          if (!stretch || stretch.checkpoint >= head) return taken
        }
      }
      const outcome = await takeAll().catch((error: Error) => error.message)
      // since 24.10.0 the server reads on from the log instead
      if (outcome !== 30_000) expect(outcome).toMatch(/too slow/i)
      cleanup(async () => slow.end())
      await log.append(aStream(), -1, [anEvent({ type })])
      const seen: string[] = []
      while (seen.length === 0) {
        seen.push(...((await quick.next(10))?.events.map((event) => event.type) ?? []))
      }
      expect(seen).toEqual([type])
    })

    test('that is ended while its consumer works on a page holds nothing any more', async () => {
      const log = await openLog()
      const after = await log.head()
      await Promise.all(Array.from({ length: 20 }, () => log.append(aStream(), -1, someEvents(20))))
      // another one, to which these events are history
      const reader = await openLog()
      const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
      const before = timers()
      for (let n = 0; n < 10; n += 1) {
        const ended = new AbortController()
        const pages = reader.subscribe({ after, pageSize: 10, signal: ended.signal })[Symbol.asyncIterator]()
        // as many as have arrived by then
        expect((await pages.next()).value?.events.length).toBeGreaterThan(0)
        // its consumer fails here and never asks again
        ended.abort()
      }
      expect(timers()).toBeLessThan(before + 5)
    })

    test('whose consumer stands still while the log grows goes on from where it was', async () => {
      const writer = await openLog()
      const after = await writer.head()
      await Promise.all(Array.from({ length: 50 }, () => writer.append(aStream(), -1, someEvents(40))))
      const reader = await openLog()
      const signal = AbortSignal.timeout(240_000)
      const delivered: StoredEvent[] = []
      let grown = false
      for await (const page of reader.subscribe({ after, pageSize: 20, signal })) {
        delivered.push(...page.events)
        if (!grown) {
          grown = true
          const data = JSON.stringify('x'.repeat(2_000))
          for (let n = 0; n < 10; n += 1) {
            await Promise.all(
              Array.from({ length: 50 }, () => writer.append(aStream(), -1, someEvents(20, { data }))),
            )
          }
        }
        if (delivered.length >= 12_000) break
      }
      expect(new Set(delivered.map(({ eventId }) => eventId)).size).toBe(12_000)
      expect(delivered.every((event, n) => n === 0 || event.position > delivered[n - 1]!.position)).toBe(true)
    })

    test('following from a position that is none is refused', async () => {
      const writer = await openLog()
      const stream = aStream()
      await writer.append(stream, -1, someEvents(2))
      const log = await openLog()
      // a place in the middle of an event
      const after = (await log.readStream(stream))[0]!.position + 5n
      await expect(follow(log, { after }, () => true)).rejects.toThrow(UnknownPosition)
    })

    test('reading on from between two events deep in a long log passes over nothing', async () => {
      const log = await openLog()
      const stream = aStream()
      for (let n = 0; n < 25; n += 1) {
        await log.append(stream, n * 1000 - 1, someEvents(1000))
      }
      for (const revision of [9_999, 12_345, 24_998]) {
        const [event, next] = await log.readStream(stream, { from: revision, maxCount: 2 })
        for (const after of [event!.position + 1n, next!.position - 1n]) {
          const { events } = await log.readAll({ after, maxCount: 1 })
          expect(events[0]!.eventId).toBe(next!.eventId)
        }
      }
    })
  })

  describe('streams that others have touched', () => {
    test('a stream that was cut shows what is left of it, and goes on behind its last event', async () => {
      const stream = aStream()
      const log = await openLog()
      await log.append(stream, -1, someEvents(5))
      await others.setStreamMetadata(stream, { maxCount: 2 })
      await log.append(stream, 4, [anEvent()])
      const fresh = await openLog()
      expect((await fresh.readStream(stream)).map(({ revision }) => revision)).toEqual([4, 5])
      await expect(fresh.append(stream, 4, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
      await fresh.append(stream, 5, [anEvent()])
      const [before, last] = await fresh.readStream(stream)
      expect(verifyEvent(splitHash(before!.metadata)!.hash, last!)).toBe(true)
    })

    test('one that was deleted for good is not appended to', async () => {
      const stream = aStream()
      const log = await openLog()
      await log.append(stream, -1, someEvents(2))
      await others.tombstoneStream(stream)
      const fresh = await openLog()
      for (const [one, revision] of [
        [log, 1],
        [fresh, 1],
        [fresh, -1],
      ] as const) {
        await expect(one.append(stream, revision, [anEvent()])).rejects.toThrow(
          `Stream ${stream} was changed behind the event log: it was deleted`,
        )
        await expect(one.readStream(stream)).rejects.toThrow(StreamTampered)
      }
      // the log goes on
      await log.append(aStream(), -1, [anEvent()])
    })

    test('a stream that was deleted and begins anew says so', async () => {
      const stream = aStream()
      const log = await openLog()
      await log.append(stream, -1, someEvents(3))
      await others.deleteStream(stream)
      const fresh = await openLog()
      expect(await fresh.readStream(stream)).toEqual([])
      await expect(fresh.append(stream, -1, [anEvent()])).rejects.toThrow(StreamTampered)
    })

    test('events of other programs are shown as they are, pass by who asks for types, and end their streams', async () => {
      const log = await openLog()
      const after = await log.head()
      const type = `Foreign${randomUUID()}`
      const [foreign, ours] = [aStream(), aStream()]
      await log.append(ours, -1, someEvents(1))
      await others.appendToStream(foreign, [
        jsonEvent({ type, data: { a: 1 } }),
        binaryEvent({ type, data: Buffer.from([0xff, 0xfe, 0x00]) }),
      ])
      await others.appendToStream(ours, jsonEvent({ type, data: {} }))
      await log.append(aStream(), -1, [anEvent({ type: 'LastOne' })])
      const { events } = await follow(log, { after }, (all) => all.at(-1)?.type === 'LastOne')
      expect(events).toHaveLength(5)
      expect(events[1]).toMatchObject({ stream: foreign, revision: 0, type, data: '{"a":1}', metadata: '' })
      expect(events[2]).toMatchObject({ stream: foreign, revision: 1, type })
      const late = await openLog()
      expect((await follow(late, { after }, (all) => all.length >= 5)).events).toEqual(
        events.map(({ writtenFrom: _, ...event }) => event),
      )
      const { events: chosen } = await follow(late, { after, types: ['LastOne'] }, (all) => all.length > 0)
      expect(chosen).toHaveLength(1)
      expect(await late.readStream(foreign)).toHaveLength(2)
      for (const one of [log, late]) {
        await expect(one.append(foreign, 1, [anEvent()])).rejects.toThrow(
          `Stream ${foreign} was changed behind the event log: revision 1 carries no hash`,
        )
        await expect(one.append(ours, 1, [anEvent()])).rejects.toThrow(
          `Stream ${ours} was changed behind the event log: revision 1 carries no hash`,
        )
      }
    })

    test('events of the server’s own are none of the log’s', async () => {
      const log = await openLog()
      const after = await log.head()
      const { position } = await log.append(aStream(), -1, someEvents(1))
      await others.setStreamMetadata(aStream(), { maxAge: 100 })
      expect(await log.head()).toBe(position)
      const { events } = await follow(await openLog(), { after }, (_, page) => page.atHead)
      expect(events).toHaveLength(1)
      const server = []
      for await (const { event } of others.readAll({ fromPosition: START })) server.push(event?.type ?? '')
      expect(server.filter((type) => type.startsWith('$')).length).toBeGreaterThan(0)
    })

    test.each([
      ['of one type', { types: [`Rare${randomUUID()}`] }],
      ['of all types', {}],
    ])('they move no checkpoint beyond the last event, for who is live on events %s', async (_, filter) => {
      const [log, writer] = [await openLog(), await openLog()]
      let head = await log.head()
      const ended = new AbortController()
      cleanup(async () => ended.abort())
      let rounds = 0
      for await (const page of log.subscribe({
        after: head,
        ...filter,
        pageSize: 10,
        signal: ended.signal,
      })) {
        expect(page.checkpoint).toBeLessThanOrEqual(head)
        if (page.checkpoint < head) continue
        if (rounds === 20) break
        rounds += 1
        const by = rounds % 2 === 0 ? log : writer
        head = (await by.append(aStream(), -1, [anEvent()])).position
        // what the server tells of them comes behind this event, or with the next one
        await others.setStreamMetadata(aStream(), { maxAge: 100 })
        await others.setStreamMetadata(aStream(), { maxAge: 100 })
      }
    })
  })
})

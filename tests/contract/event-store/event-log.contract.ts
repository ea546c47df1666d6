import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_PREDECESSOR, splitHash, verifyEvent } from '../../../application/commands/hash-chain.ts'
import {
  type AppendResult,
  type EventLog,
  type EventToAppend,
  EventTooLarge,
  LOG_START,
  type LogPage,
  MAX_APPEND_BYTES,
  MAX_EVENT_BYTES,
  type StoredEvent,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'

/** One log that several adapter instances, as in several processes, can open. */
export interface LogUnderTest {
  /** Opens one more adapter instance on the same log. The suite closes it. */
  open(): Promise<EventLog>
  /** Removes the log. */
  remove(): Promise<void>
}

/** An event, for tests. */
export function anEvent(fields: Partial<EventToAppend> = {}): EventToAppend {
  return {
    type: 'SomethingHappened',
    data: '{"amount_cents":100}',
    metadata: '{"schema_version":1}',
    ...fields,
  }
}

/** Events, numbered in their data. */
export function someEvents(count: number, fields: Partial<EventToAppend> = {}): EventToAppend[] {
  return Array.from({ length: count }, (_, n) => anEvent({ data: `{"n":${n}}`, ...fields }))
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export function aStream(): string {
  return `test-${randomUUID()}`
}

/** Follows a subscription until `done` says so, or fails after 90 s. @returns all events delivered. */
export async function follow(
  log: EventLog,
  options: { after?: bigint; types?: readonly string[]; pageSize?: number },
  done: (events: readonly StoredEvent[], page: LogPage) => boolean,
): Promise<{ events: StoredEvent[]; pages: LogPage[] }> {
  const { after = LOG_START, pageSize = 100, types } = options
  const limit = AbortSignal.timeout(240_000)
  const events: StoredEvent[] = []
  const pages: LogPage[] = []
  for await (const page of log.subscribe({ after, pageSize, signal: limit, ...(types ? { types } : {}) })) {
    pages.push(page)
    events.push(...page.events)
    if (done(events, page)) return { events, pages }
  }
  throw new Error(`The subscription delivered only ${events.length} events`)
}

/** In the order of the log, no stream with a gap, every hash right; each stream is there from its beginning. */
export function expectIntactChains(events: readonly StoredEvent[]): void {
  const last = new Map<string, StoredEvent>()
  let position = -1n
  const wrong = events.filter((event) => {
    const predecessor = last.get(event.stream)
    const before = predecessor ? splitHash(predecessor.metadata)!.hash : NO_PREDECESSOR
    const isRight =
      event.position > position &&
      event.revision === (predecessor?.revision ?? -1) + 1 &&
      verifyEvent(before, event)
    position = event.position
    last.set(event.stream, event)
    return !isRight
  })
  expect(wrong).toEqual([])
}

async function outcomes(attempts: readonly Promise<AppendResult>[]) {
  const settled = await Promise.allSettled(attempts)
  return {
    won: settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    lost: settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : [])),
  }
}

/** What every event log adapter must do; run it on each. */
export function eventLogContract(name: string, create: () => Promise<LogUnderTest>): void {
  describe(`event log contract: ${name}`, () => {
    let underTest: LogUnderTest
    let log: EventLog
    let other: EventLog

    beforeAll(async () => {
      underTest = await create()
      log = await underTest.open()
    })
    afterAll(async () => {
      await log?.close()
      await other?.close()
      await underTest?.remove()
    })

    const suite = (title: string, current: () => EventLog) => {
      describe(title, () => {
        test('an absent stream reads as empty', async () => {
          expect(await current().readStream(aStream())).toEqual([])
          expect(await current().readStream(aStream(), { direction: 'backwards' })).toEqual([])
        })

        test('stores an append and reads it back in both directions and in parts', async () => {
          const stream = aStream()
          const events = someEvents(5)
          const result = await current().append(stream, -1, events)
          const stored = await current().readStream(stream)
          expect(stored.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4])
          for (const { eventId } of stored) expect(eventId).toMatch(UUID)
          expect(new Set(stored.map(({ eventId }) => eventId)).size).toBe(5)
          expect(stored.map(({ data }) => data)).toEqual(events.map(({ data }) => data))
          expect(stored[4]!.position).toBe(result.position)
          expect(stored.every((event) => event.stream === stream && event.type === 'SomethingHappened')).toBe(
            true,
          )
          const backwards = await current().readStream(stream, { direction: 'backwards' })
          expect(backwards).toEqual([...stored].reverse())
          expect(await current().readStream(stream, { from: 1, maxCount: 2 })).toEqual(stored.slice(1, 3))
          expect(
            await current().readStream(stream, { from: 3, direction: 'backwards', maxCount: 2 }),
          ).toEqual([stored[3], stored[2]])
        })

        test('reads short stretches of several streams at once, each for itself', async () => {
          const [one, other, absent] = [aStream(), aStream(), aStream()]
          await current().append(one, -1, someEvents(3))
          await current().append(other, -1, someEvents(1))
          const asked = [
            { stream: one, from: 0, maxCount: 2 },
            { stream: absent, from: 0, maxCount: 2 },
            { stream: one, from: 1, maxCount: 32 },
            { stream: other, from: 1, maxCount: 32 },
            { stream: other, from: 0, maxCount: 1_000 },
          ]
          const found = await Promise.all(
            asked.map(({ stream, ...options }) => current().readStream(stream, options)),
          )
          const told = found.map((events) => events.map(({ stream, revision }) => [stream, revision]))
          const first = [one, 0]
          expect(told).toEqual([
            [first, [one, 1]],
            [],
            [
              [one, 1],
              [one, 2],
            ],
            [],
            [[other, 0]],
          ])
        })

        test('tells what stands at exactly a position, and that no stream was cut', async () => {
          const stream = aStream()
          const appended = await current().append(stream, -1, someEvents(2))
          const stored = await current().readStream(stream)
          expect(appended).toEqual({ position: stored[1]!.position, eventId: stored[1]!.eventId })
          for (const { position, eventId } of stored) {
            expect(await current().idAt(position)).toBe(eventId)
          }
          const between = stored[1]!.position - 1n
          const isEvent = between === stored[0]!.position
          expect(await current().idAt(between)).toBe(isEvent ? stored[0]!.eventId : null)
          expect(isEvent).toBe(current().isGapless)
          expect(await current().idAt(stored[1]!.position + 1_000_000n)).toBeNull()
          expect(await current().findCut()).toBeNull()
        })

        test('refuses a stale revision after a creation, and a revision ahead', async () => {
          const stream = aStream()
          await current().append(stream, -1, someEvents(3))
          await expect(current().append(stream, -1, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
          await expect(current().append(stream, 1, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
          await expect(current().append(stream, 7, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
          await expect(current().append(aStream(), 0, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
          expect(await current().readStream(stream)).toHaveLength(3)
        })

        test('an append without events is refused', async () => {
          const stream = aStream()
          await expect(current().append(stream, -1, [])).rejects.toThrow(TypeError)
          expect(await current().readStream(stream)).toEqual([])
        })

        test('equal events at the same place again are another append, and a conflict', async () => {
          const stream = aStream()
          const created = someEvents(2)
          const changed = someEvents(3)
          await current().append(stream, -1, created)
          await current().append(stream, 1, changed)
          await expect(current().append(stream, -1, created)).rejects.toThrow(WrongExpectedRevision)
          await expect(current().append(stream, 1, changed)).rejects.toThrow(WrongExpectedRevision)
          expect(await current().readStream(stream)).toHaveLength(5)
        })

        test('of equal appends sent many times at once one is stored, and one is told so', async () => {
          const stream = aStream()
          for (const revision of [-1, 1, 3]) {
            const events = someEvents(2)
            const { won, lost } = await outcomes(
              Array.from({ length: 50 }, () => current().append(stream, revision, events)),
            )
            expect(won).toHaveLength(1)
            for (const error of lost) {
              expect(error).toBeInstanceOf(WrongExpectedRevision)
              expect(error).toMatchObject({ stream, revision })
            }
          }
          expect(await current().readStream(stream)).toHaveLength(6)
        })

        test('appends sent together fail each for itself, and those to one stream see each other', async () => {
          const fresh = Array.from({ length: 20 }, aStream)
          const existing = aStream()
          const chain = aStream()
          await current().append(existing, -1, [anEvent()])
          const { won, lost } = await outcomes([
            ...fresh.map((stream) => current().append(stream, -1, someEvents(3))),
            current().append(existing, -1, [anEvent()]),
            current().append(existing, 5, [anEvent()]),
            current().append(chain, -1, someEvents(2)),
            current().append(chain, 1, someEvents(2)),
            current().append(chain, 3, someEvents(2)),
            current().append(chain, 3, someEvents(2)),
            current().append(existing, 0, [anEvent()]),
          ])
          expect(won).toHaveLength(24)
          expect(lost).toHaveLength(3)
          for (const error of lost) expect(error).toBeInstanceOf(WrongExpectedRevision)
          expect(await current().readStream(chain)).toHaveLength(6)
          expect(await current().readStream(existing)).toHaveLength(2)
        })

        test('data that is no JSON is refused, without harm to others', async () => {
          const bad = aStream()
          const good = Array.from({ length: 5 }, aStream)
          const { won, lost } = await outcomes([
            ...good.slice(0, 2).map((stream) => current().append(stream, -1, [anEvent()])),
            current().append(bad, -1, [anEvent({ data: '{"ssn":"123-45-6789' })]),
            ...good.slice(2).map((stream) => current().append(stream, -1, [anEvent()])),
          ])
          expect(won).toHaveLength(5)
          expect(lost).toHaveLength(1)
          // neither the message nor anything else of the error quotes the data
          expect(JSON.stringify(lost[0], Object.getOwnPropertyNames(lost[0]))).not.toContain('123-45')
          expect(await current().readStream(bad)).toEqual([])
        })

        test('keeps JSON text as JSON.stringify writes it, byte for byte', async () => {
          const texts = [
            { nul: '\u0000', bell: '\u0007', del: '\u007f' },
            { lone: '\ud800', pair: '😀', direct: 'é ñ 漢字 \u2028\u2029' },
            { escapes: '"\\/\b\f\n\r\t', numbers: [1, 2.5, 1e3, -1.25e-7, 1e21, 9007199254740991] },
            { b: 1, a: 2, 1: 'an index comes first' },
            'a text',
            [{}, [], '', null, true],
            { 'like an array': '{"a",NULL}', quote: "'", dollar: '$1', ['__proto__']: 1 },
            { all: Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join('') },
          ].map((value) => JSON.stringify(value))
          const stream = `test-${randomUUID()} ' " \\ $1 {}, é 漢`
          await current().append(
            stream,
            -1,
            texts.map((data, n) =>
              anEvent({ data, type: `Ünusual "type" \\ ${n}`, metadata: `{"m":${data}}` }),
            ),
          )
          const stored = await current().readStream(stream)
          expect(stored.map(({ data }) => data)).toEqual(texts)
          expect(stored.map(({ metadata }) => splitHash(metadata)?.metadata)).toEqual(
            texts.map((text) => `{"m":${text}}`),
          )
          expect(stored[0]).toMatchObject({ stream, type: 'Ünusual "type" \\ 0' })
        })

        test('takes events and appends up to their limits and refuses larger ones', async () => {
          const sized = (bytes: number) => anEvent({ data: `"${'é'.repeat((bytes - 22) / 2)}"` })
          expect(Buffer.byteLength(sized(1000).data) + Buffer.byteLength(sized(1000).metadata)).toBe(1000)
          const stream = aStream()
          const large = sized(MAX_EVENT_BYTES)
          await current().append(stream, -1, [large])
          await expect(current().append(stream, 0, [sized(MAX_EVENT_BYTES + 2)])).rejects.toThrow(
            EventTooLarge,
          )
          const rest = MAX_APPEND_BYTES - MAX_EVENT_BYTES
          await expect(current().append(stream, 0, [large, sized(rest + 2)])).rejects.toThrow(EventTooLarge)
          await current().append(stream, 0, [sized(MAX_EVENT_BYTES), sized(rest)])
          const stored = await current().readStream(stream)
          expect(stored).toHaveLength(3)
          expect(digest(stored[0]!.data)).toBe(digest(large.data))
        })

        test('every event carries the hash over itself and its predecessor', async () => {
          const stream = aStream()
          await current().append(stream, -1, someEvents(3))
          await Promise.all([
            current().append(stream, 2, someEvents(2)),
            current().append(stream, 4, someEvents(2, { metadata: '{}' })),
          ])
          const stored = await current().readStream(stream)
          expect(stored).toHaveLength(7)
          let predecessor = NO_PREDECESSOR
          for (const event of stored) {
            expect(verifyEvent(predecessor, event)).toBe(true)
            expect(verifyEvent(predecessor, { ...event, data: `${event.data} ` })).toBe(false)
            expect(verifyEvent(predecessor, { ...event, revision: event.revision + 1 })).toBe(false)
            predecessor = splitHash(event.metadata)!.hash
          }
        })

        test('reads the whole log in order, in pages', async () => {
          const after = await current().head()
          const streams = Array.from({ length: 10 }, aStream)
          await Promise.all(streams.map((stream) => current().append(stream, -1, someEvents(3))))
          const events: StoredEvent[] = []
          let position = after
          for (;;) {
            const page = await current().readAll({ after: position, maxCount: 7 })
            expect(page.events.length).toBeLessThanOrEqual(7)
            events.push(...page.events)
            position = page.checkpoint
            if (page.atHead) break
          }
          expect(events).toHaveLength(30)
          expect(position).toBe(await current().head())
          expect(isAscending(events)).toBe(true)
          expect(await current().readAll({ after: position, maxCount: 7 })).toEqual({
            events: [],
            checkpoint: position,
            atHead: true,
          })
        })

        test('reads on from any number: between events from the next one, beyond the end nothing', async () => {
          const type = `Type${randomUUID().slice(0, 8)}`
          const { position: before } = await current().append(aStream(), -1, someEvents(1))
          const stream = aStream()
          const { position: last } = await current().append(stream, -1, someEvents(2, { type }))
          const events = await current().readStream(stream)
          for (const filter of [{}, { types: [type] }]) {
            let from = before
            for (const [index, event] of events.entries()) {
              const between = new Set([from, (from + event.position) / 2n, event.position - 1n])
              for (const after of between) {
                if (after < from || after >= event.position) continue
                const page = await current().readAll({ after, maxCount: 2, ...filter })
                expect(page.events.map(({ eventId }) => eventId)).toEqual(
                  events.slice(index, index + 2).map(({ eventId }) => eventId),
                )
              }
              from = event.position
            }
            for (const after of [last + 1n, 2n ** 62n]) {
              const page = await current().readAll({ after, maxCount: 2, ...filter })
              expect(page).toEqual({ events: [], checkpoint: after, atHead: true })
            }
            const first = await current().readAll({ after: 1n, maxCount: 1 })
            const [whole] = (await current().readAll({ after: LOG_START, maxCount: 2 })).events.filter(
              ({ position }) => position > 1n,
            )
            expect(first.events[0]!.eventId).toBe(whole!.eventId)
          }
        })

        test('filters by type, and its checkpoint moves over all other events', async () => {
          const after = await current().head()
          const type = `Rare${randomUUID()}`
          const stream = aStream()
          await current().append(stream, -1, [anEvent({ type }), ...someEvents(20), anEvent({ type })])
          const last = await current().append(stream, 21, someEvents(5))
          const first = await current().readAll({ after, maxCount: 1, types: [type] })
          expect(first.events).toHaveLength(1)
          expect(first.checkpoint).toBe(first.events[0]!.position)
          const rest = await current().readAll({ after: first.checkpoint, maxCount: 10, types: [type] })
          expect(rest).toMatchObject({ checkpoint: last.position, atHead: true })
          expect(rest.events).toHaveLength(1)
          const none = await current().readAll({ after, maxCount: 10, types: ['NeverHappened'] })
          expect(none).toEqual({ events: [], checkpoint: last.position, atHead: true })
        })

        test('a subscription catches up, tells of the head and goes on live', async () => {
          const after = await current().head()
          const stream = aStream()
          await current().append(stream, -1, someEvents(25))
          let later: Promise<AppendResult> | undefined
          const { events, pages } = await follow(current(), { after, pageSize: 10 }, (all, page) => {
            if (page.atHead && !later) {
              expect(all).toHaveLength(25)
              later = current().append(stream, 24, someEvents(3))
            }
            return all.length >= 28
          })
          expect(events.map(({ revision }) => revision)).toEqual(Array.from({ length: 28 }, (_, n) => n))
          expect(pages.every((page) => page.events.length <= 10)).toBe(true)
          expect(pages.at(-1)!.checkpoint).toBe((await later)!.position)
        })

        test('a subscription at the head tells so at once, also with a filter that matches nothing', async () => {
          const after = await current().head()
          const first = await follow(current(), { after }, () => true)
          expect(first.pages[0]).toEqual({ events: [], checkpoint: after, atHead: true })
          const filtered = await follow(current(), { types: ['NeverHappened'] }, (_, page) => page.atHead)
          expect(filtered.events).toEqual([])
          expect(filtered.pages.at(-1)!.checkpoint).toBeGreaterThanOrEqual(after)
        })

        test('a filtered live subscription gets its types and the checkpoints of the rest', async () => {
          const type = `Rare${randomUUID()}`
          const after = await current().head()
          let writing: Promise<unknown> | undefined
          const { events } = await follow(current(), { after, types: [type] }, (all, page) => {
            writing ??= (async () => {
              await current().append(aStream(), -1, someEvents(3))
              await current().append(aStream(), -1, [anEvent({ type })])
              await current().append(aStream(), -1, someEvents(3))
            })()
            return all.length === 1 && page.checkpoint > all[0]!.position
          })
          await writing
          expect(events).toHaveLength(1)
        })

        test('a live subscription hands on what a writer in the same process handed on beside its texts', async () => {
          const type = `Written${randomUUID()}`
          const data = { ['__proto__']: 1, 10: 'ten', text: '\ud800 é' }
          const metadata = { schema_version: 1, nested: { '2': 2, a: -0 } }
          const writtenFrom = { by: current(), text: JSON.stringify(data), data, metadata }
          const event = { type, data: writtenFrom.text, metadata: JSON.stringify(metadata), writtenFrom }
          const stream = aStream()
          let sent = 0
          let writing: Promise<unknown> = Promise.resolve()
          const { events } = await follow(
            current(),
            { after: await current().head(), types: [type] },
            (all, page) => {
              // who looks at the log just then finds an event before its writer hears of it: then the next one is tried
              if (all.some((one) => one.writtenFrom !== undefined)) return true
              if (page.atHead && all.length === sent) {
                sent += 1
                writing = current().append(stream, sent - 2, [event])
              }
              return false
            },
          )
          await writing
          const stored = await current().readStream(stream)
          expect(events.map(({ writtenFrom: _, ...event }) => event)).toEqual(stored)
          expect(events.at(-1)!.writtenFrom).toEqual(writtenFrom)
          expect(new Set(stored.map((event) => event.data))).toEqual(new Set([writtenFrom.text]))
          expectIntactChains(stored)
        })

        test('a subscription that is aborted just ends, whether it waits or is being consumed', async () => {
          const waiting = new AbortController()
          const subscription = current().subscribe({
            after: await current().head(),
            pageSize: 10,
            signal: waiting.signal,
          })
          const pages = subscription[Symbol.asyncIterator]()
          await pages.next()
          const next = pages.next()
          waiting.abort()
          expect(await next).toMatchObject({ done: true })
          const consumed = new AbortController()
          let count = 0
          for await (const _ of current().subscribe({
            after: LOG_START,
            pageSize: 2,
            signal: consumed.signal,
          })) {
            count += 1
            consumed.abort()
          }
          expect(count).toBe(1)
        })

        test('a slow consumer misses nothing and gets nothing twice', async () => {
          const after = await current().head()
          const total = 100
          const writing = (async () => {
            for (let n = 0; n < total; n += 1) await current().append(aStream(), -1, someEvents(1))
          })()
          const events: StoredEvent[] = []
          const signal = AbortSignal.timeout(240_000)
          for await (const page of current().subscribe({ after, pageSize: 7, signal })) {
            events.push(...page.events)
            await new Promise((resolve) => setImmediate(resolve))
            if (events.length >= total) break
          }
          await writing
          expect(events).toHaveLength(total)
          expect(isAscending(events)).toBe(true)
        })
      })
    }

    suite('one process', () => log)

    describe('a second process', () => {
      test('joins', async () => {
        other = await underTest.open()
        expect([log.isExclusive, other.isExclusive]).toEqual([false, false])
      })
    })

    suite('the second process', () => other)

    describe('both processes', () => {
      test('know how far a stream has come as soon as either of them was told', async () => {
        const streams = Array.from({ length: 5 }, () => aStream())
        const revisions = streams.map(() => -1)
        const known = new Map([log, other].map((one) => [one, new Map<string, number>()]))
        const after = new Map([log, other].map((one) => [one, LOG_START]))
        const ask = async (asker: EventLog) => {
          const { upTo, revisions: gone } = await asker.changes(after.get(asker)!)
          for (const [stream, revision] of gone ?? []) known.get(asker)!.set(stream, revision)
          after.set(asker, upTo)
        }
        // too many have gone on since the beginning, or all are named: nothing of these
        for (const asker of [log, other]) await ask(asker)
        expect(streams.some((stream) => known.get(log)!.has(stream))).toBe(false)
        for (let round = 0; round < 20; round += 1) {
          const [writer, asker] = round % 3 === 0 ? [log, other] : [other, log]
          await Promise.all(
            streams.map(async (stream, n) => {
              // some streams rest for a while
              if (round % (n + 1) !== 0) return
              const count = 1 + (round % 2)
              await writer.append(stream, revisions[n]!, someEvents(count))
              const revision = revisions[n]! + count
              revisions[n] = revision
              for (const one of [asker, writer]) {
                await ask(one)
                expect(known.get(one)!.get(stream)).toBe(revision)
              }
            }),
          )
        }
      })

      test('of creations in both processes one wins', async () => {
        for (let round = 0; round < 10; round += 1) {
          const stream = aStream()
          const { won, lost } = await outcomes(
            Array.from({ length: 20 }, (_, n) => (n % 2 ? log : other).append(stream, -1, [anEvent()])),
          )
          expect(won).toHaveLength(1)
          expect(lost.every((error) => error instanceof WrongExpectedRevision)).toBe(true)
        }
      })

      test('who hears of a conflict finds what it is with', async () => {
        for (let round = 0; round < 15; round += 1) {
          const stream = aStream()
          for (const revision of [-1, 0, 1]) {
            const appends = [log, other].map(async (one) => {
              await one.append(stream, revision, [anEvent()]).catch(async (error: unknown) => {
                expect(error).toBeInstanceOf(WrongExpectedRevision)
                expect(await one.readStream(stream, { from: revision + 1 })).toHaveLength(1)
              })
            })
            await Promise.all(appends)
          }
        }
      })

      test('many large events of one are delivered to the other in full', async () => {
        const after = await log.head()
        // what compresses is not large where it is stored
        const data = JSON.stringify({ rows: randomBytes(126_000).toString('hex') })
        // one at a time: together they may take longer than an append waits
        for (let n = 0; n < 60; n += 1) await log.append(aStream(), -1, [anEvent({ data })])
        const { events } = await follow(other, { after, pageSize: 500 }, (all) => all.length >= 60)
        expect(events).toHaveLength(60)
        expect(events.every((event) => event.data === data)).toBe(true)
      })

      test('one reads what the other has written, and writes on', async () => {
        const stream = aStream()
        await log.append(stream, -1, someEvents(2))
        expect(await other.readStream(stream)).toHaveLength(2)
        await other.append(stream, 1, someEvents(2))
        await expect(log.append(stream, 1, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
        const last = await log.append(stream, 3, someEvents(1))
        expect(await other.head()).toBe(last.position)
        expectIntactChains(await other.readStream(stream))
      })

      test('while both write, subscribers in both see everything, in order, none twice', async () => {
        const after = await log.head()
        const [appends, perAppend] = [200, 2]
        const total = 2 * appends * perAppend
        const watching = [log, other, log, other].map((one, n) =>
          follow(one, { after, pageSize: n < 2 ? 500 : 11 }, (all) => all.length >= total),
        )
        const write = async (one: EventLog) => {
          const lanes = Array.from({ length: 20 }, async () => {
            const stream = aStream()
            for (let n = 0; n < appends / 20; n += 1) {
              await one.append(stream, n * perAppend - 1, someEvents(perAppend))
            }
          })
          await Promise.all(lanes)
        }
        await Promise.all([write(log), write(other)])
        const seen = await Promise.all(watching)
        for (const { events } of seen) {
          expect(events).toHaveLength(total)
          expect(isAscending(events)).toBe(true)
          expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(total)
        }
        expect(seen[1]!.events).toEqual(seen[0]!.events)
      })

      test('a closed log takes nothing more; the other goes on', async () => {
        const stream = aStream()
        const underWay = Array.from({ length: 20 }, (_, n) => other.append(`${stream}-${n}`, -1, [anEvent()]))
        const subscription = follow(other, { after: await other.head() }, () => false).catch(
          (error: Error) => error,
        )
        await other.close()
        expect((await outcomes(underWay)).lost).toEqual([])
        await expect(other.append(stream, -1, [anEvent()])).rejects.toThrow(/closed/)
        expect(await subscription).toBeInstanceOf(Error)
        await log.append(stream, -1, [anEvent()])
      })
    })
  })
}

function isAscending(events: readonly StoredEvent[]): boolean {
  return events.every((event, index) => index === 0 || event.position > events[index - 1]!.position)
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

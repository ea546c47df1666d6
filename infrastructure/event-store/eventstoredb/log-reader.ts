import {
  BACKWARDS,
  END,
  FORWARDS,
  type ReadRevision,
  type ResolvedEvent,
  type StreamingRead,
  StreamNotFoundError,
} from '@eventstore/db-client'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import {
  type CutStream,
  LOG_START,
  type LogPage,
  type StoredEvent,
  UnknownPosition,
} from '../../../application/ports/event-log.ts'
import type { PagesOptions } from '../follow-log.ts'
import { retried } from '../retry.ts'
import type { Appends } from './appends.ts'
import type { Connection } from './client.ts'
import { failureOf, mayBeUnknownPosition } from './client-errors.ts'
import { EventStoreUnavailable, passes } from './errors.ts'
import { type IsComplete, ReadCompleteness } from './read-completeness.ts'
import { type InTurn, rightAway } from './reads-in-turn.ts'
import { storedEvent } from './stored-texts.ts'
import { placeOf, Subscription } from './subscription.ts'

/** A read that brings nothing for so long is given up, in milliseconds. */
const SILENCE_LIMIT_MS = 10_000
/** Size of the data and metadata, in characters, after which a page ends although it has fewer events than asked for. */
const PAGE_CHARACTERS = 4 * 1024 * 1024
/** Events that a look for the last one of the log passes over at once; the server's own are among them. */
const LOOKED_AT_ONCE = 100
/** A name that no event type can have: the server tells of checkpoints only. */
const NO_TYPE = 'no event at all'
const PASSED_AT_ONCE = 1_000
/** The server's events about streams: the last one of a deleted stream, and what is said of a stream in `$$<stream>`. */
const TOMBSTONE = '$streamDeleted'
const CUTTING = ['$metadata', TOMBSTONE]
const CUTS = /"\$(?:tb|maxCount|maxAge)":/

interface PageOptions {
  readonly after: bigint
  readonly maxCount: number
  readonly types?: readonly string[] | undefined
}

/**
 * Reads streams and the log, completely (see {@link ReadCompleteness}); reads whose connection was lost are repeated for a
 * while.
 */
export class LogReader {
  readonly #connection: Connection
  readonly #completeness: ReadCompleteness
  readonly #patienceMs: number
  readonly #closing: AbortSignal

  /**
   * @param appends to the same server.
   * @param patienceMs how long a read is repeated while the server is away.
   * @param reconnected told when the connection was lost, and reads are complete again.
   */
  constructor(
    connection: Connection,
    appends: Appends,
    patienceMs: number,
    closing: AbortSignal,
    reconnected: () => void = () => undefined,
  ) {
    this.#connection = connection
    this.#completeness = new ReadCompleteness(connection, appends, closing, reconnected)
    this.#patienceMs = patienceMs
    this.#closing = closing
  }

  /** See {@link ReadCompleteness.confirmed}. */
  complete(): Promise<IsComplete> {
    return this.#completeness.confirmed()
  }

  /** Events of a stream in order. Absent reads as empty. */
  stream(
    stream: string,
    options: { from: number | 'end'; maxCount: number; backwards?: boolean },
    inTurn: InTurn = rightAway,
  ): Promise<StoredEvent[]> {
    const { from, maxCount, backwards = false } = options
    if (maxCount <= 0) return Promise.resolve([])
    const direction = backwards ? BACKWARDS : FORWARDS
    const fromRevision: ReadRevision = from === 'end' ? END : BigInt(from)
    return this.#again(async () => {
      try {
        return await this.#collect(
          this.#connection.client.readStream(stream, {
            direction,
            fromRevision,
            maxCount,
            requiresLeader: true,
          }),
        )
      } catch (error) {
        if (error instanceof StreamNotFoundError) return []
        throw error
      }
    }, inTurn)
  }

  /** The last event of a stream. */
  async last(stream: string): Promise<StoredEvent | undefined> {
    return (await this.stream(stream, { from: 'end', maxCount: 1, backwards: true }))[0]
  }

  /** Position of the last event. */
  async head(): Promise<bigint> {
    return (await this.latest(1)).at(-1)?.position ?? LOG_START
  }

  /** Id of the event at a position; null where none stands. */
  idAt(position: bigint): Promise<string | null> {
    return this.#again(async () => {
      try {
        const from = { fromPosition: placeOf(position), maxCount: 1, requiresLeader: true }
        const [event] = await this.#collect(this.#connection.client.readAll(from))
        return event?.position === position ? event.eventId : null
      } catch (error) {
        if (!mayBeUnknownPosition(error)) throw error
        // a server that fails at every read does not say that the event is gone
        await this.#latest(1)
        return null
      }
    })
  }

  /** A stream that was cut or deleted: the server notes that, and hides or removes the events. */
  findCut(): Promise<CutStream | null> {
    return this.#again(async () => {
      const { client } = this.#connection
      const end = { direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true } as const
      const [last] = await this.#collect(client.readAll(end))
      const options = { types: CUTTING, pageSize: PASSED_AT_ONCE, signal: this.#closing }
      for await (const { events } of this.pages(LOG_START, last?.position ?? LOG_START, options)) {
        for (const event of events) {
          const stream = streamCutBy(event)
          if (stream !== null) return { stream, position: event.position }
        }
      }
      return null
    })
  }

  /** The last events of the log, in order. */
  latest(count: number): Promise<StoredEvent[]> {
    return this.#again(() => this.#latest(count))
  }

  /**
   * A page of the log after a position, whichever number that is. @see EventLog.readAll
   */
  async page(options: PageOptions): Promise<LogPage> {
    const { after } = options
    try {
      return await this.#again(() => this.#page(options, after))
    } catch (error) {
      if (!(error instanceof UnknownPosition)) throw error
    }
    // between events, where the server cannot read from
    return this.#again(async () => this.#page(options, await this.#placeBefore(after)))
  }

  /**
   * Reads from a position to another that the log reaches, as it arrives. Tries once: a caller goes on from the
   * last checkpoint.
   * @throws UnknownPosition when no event stands at `after`.
   */
  async *pages(
    after: bigint,
    upTo: bigint,
    { types, pageSize, signal }: PagesOptions,
  ): AsyncGenerator<LogPage, void, undefined> {
    const isComplete = await this.#completeness.confirmed()
    let end: () => void = () => undefined
    try {
      const from = await this.beginningFor(after)
      const subscription = new Subscription(this.#connection.client, { after, from, types })
      end = () => subscription.end()
      signal.addEventListener('abort', end)
      for (let checkpoint = after; checkpoint < upTo && !signal.aborted; ) {
        const silence = setTimeout(end, technicalDeadline(SILENCE_LIMIT_MS))
        const stretch = await subscription.next(pageSize).finally(() => clearTimeout(silence))
        if (signal.aborted) return
        if (!stretch) throw new Error('no answer')
        if (!isComplete()) throw connectionLost()
        const { events } = stretch
        // all of it was there when the subscription began; the server's own events may stand behind the log's last one
        const reached = earlier(subscription.isLive ? upTo : stretch.checkpoint, upTo)
        checkpoint = later(events.at(-1)?.position ?? checkpoint, reached)
        yield { events, checkpoint, atHead: false }
      }
    } catch (error) {
      if (mayBeUnknownPosition(error)) await this.#confirm(after)
      throw error
    } finally {
      signal.removeEventListener('abort', end)
      end()
    }
  }

  /**
   * Where a {@link Subscription} from after a position has the server begin. Asked to go on after a position, it leaves
   * out the first event that it shows from there on, whether that one stands there or further on; and what it writes itself
   * at each start, where it tells of checkpoints too, it does not show. So it goes on after an event that it shows: the last
   * one before the position. Tries once.
   */
  async beginningFor(after: bigint): Promise<bigint> {
    if (after === LOG_START) return LOG_START
    const fromPosition = placeOf(after)
    const [before] = await this.#collect(
      this.#connection.client.readAll({
        direction: BACKWARDS,
        fromPosition,
        maxCount: 1,
        requiresLeader: true,
      }),
    )
    return before?.position ?? LOG_START
  }

  /** @throws UnknownPosition when no event stands there. */
  async #confirm(position: bigint): Promise<void> {
    const { client } = this.#connection
    await this.#again(async () => {
      try {
        await this.#collect(
          client.readAll({ fromPosition: placeOf(position), maxCount: 1, requiresLeader: true }),
        )
      } catch (error) {
        if (mayBeUnknownPosition(error)) throw new UnknownPosition(position)
        throw error
      }
    })
  }

  /** Tries once. @param from where the server begins: at the position, or before. */
  async #page({ after, maxCount, types }: PageOptions, from: bigint): Promise<LogPage> {
    // what is appended from now on may be of other types: the end is known only to what looks at it before reading
    const head = (await this.#latest(1)).at(-1)?.position ?? LOG_START
    if (after >= head || maxCount <= 0) return { events: [], checkpoint: after, atHead: after >= head }
    const events: StoredEvent[] = []
    let characters = 0
    let checkpoint = from
    const pageSize = from < after ? PASSED_AT_ONCE : maxCount
    for await (const page of this.pages(from, head, { types, pageSize, signal: this.#closing })) {
      for (const event of page.events) {
        if (event.position <= after || events.length === maxCount) continue
        events.push(event)
        characters += event.data.length + event.metadata.length
      }
      const isFull = events.length === maxCount
      checkpoint = isFull ? events.at(-1)!.position : page.checkpoint
      if (isFull || characters >= PAGE_CHARACTERS) break
    }
    return { events, checkpoint, atHead: checkpoint >= head }
  }

  /** A place before a position that the server can read from: found by having it look through the log from its start. */
  async #placeBefore(position: bigint): Promise<bigint> {
    let place = LOG_START
    const passing = { types: [NO_TYPE], pageSize: 1, signal: this.#closing }
    for await (const { checkpoint } of this.pages(LOG_START, position, passing)) {
      if (checkpoint < position) place = checkpoint
    }
    return place
  }

  /** Tries once. */
  async #latest(count: number): Promise<StoredEvent[]> {
    const { client } = this.#connection
    const events: StoredEvent[] = []
    let from: bigint | 'end' = 'end'
    for (let atOnce = count; ; atOnce = Math.max(count, LOOKED_AT_ONCE)) {
      const fromPosition = placeOf(from)
      const looked = await this.#collect(
        client.readAll({ direction: BACKWARDS, fromPosition, maxCount: atOnce, requiresLeader: true }),
      )
      events.push(...looked.filter(({ stream }) => !stream.startsWith('$')))
      const first = looked.at(-1)
      if (events.length >= count || looked.length < atOnce || !first) return events.slice(0, count).reverse()
      from = first.position
    }
  }

  /** Tries once. */
  async #collect(reading: StreamingRead<ResolvedEvent>): Promise<StoredEvent[]> {
    const events: StoredEvent[] = []
    await new Promise<void>((resolve, reject) => {
      const giveUp = () => {
        reading.cancel().catch(() => undefined)
        reject(new Error('no answer'))
      }
      const silence = setTimeout(giveUp, technicalDeadline(SILENCE_LIMIT_MS))
      const done = (settle: () => void) => {
        clearTimeout(silence)
        settle()
      }
      reading.on('data', (resolved: ResolvedEvent) => {
        silence.refresh()
        if (resolved.event) events.push(storedEvent(resolved))
      })
      reading.on('error', (error: Error) => done(() => reject(error)))
      reading.on('end', () => done(resolve))
    })
    return events
  }

  /** @throws EventStoreUnavailable when it does not work for too long. */
  #again<T>(read: () => Promise<T>, inTurn: InTurn = rightAway): Promise<T> {
    const { target } = this.#connection
    const attempt = async () => {
      // it may have waited for its turn
      if (this.#closing.aborted) throw new EventStoreUnavailable(target, 'the event log is closed')
      try {
        const isComplete = await this.#completeness.confirmed()
        const found = await read()
        if (isComplete()) return found
        throw connectionLost()
      } catch (error) {
        throw error instanceof UnknownPosition ? error : failureOf(target, error)
      }
    }
    return retried(() => inTurn(attempt), {
      mayPass: passes,
      patienceMs: this.#patienceMs,
      signal: this.#closing,
    })
  }
}

/** The stream whose events the server hides or removes by an event of its own; null: none of the log's. */
function streamCutBy({ stream, type, data }: StoredEvent): string | null {
  if (type === TOMBSTONE) return stream.startsWith('$') ? null : stream
  return /^\$\$[^$]/.test(stream) && CUTS.test(data) ? stream.slice(2) : null
}

/** What was read may have come from a server that was just restarted. */
function connectionLost(): Error {
  return new Error('the connection was lost')
}

export function earlier(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

export function later(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

import {
  BACKWARDS,
  END,
  FORWARDS,
  type ReadRevision,
  type ResolvedEvent,
  type StreamingRead,
  StreamNotFoundError,
} from '@eventstore/db-client'
import {
  LOG_START,
  type LogPage,
  type StoredEvent,
  UnknownPosition,
} from '../../../application/ports/event-log.ts'
import { type Connection, retryPause } from './client.ts'
import { failureOf, mayBeUnknownPosition, passes } from './errors.ts'
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

interface PageOptions {
  readonly after: bigint
  readonly maxCount: number
  readonly types?: readonly string[] | undefined
}

/** Reads streams and the log; reads whose connection was lost are repeated for a while. */
export class LogReader {
  readonly #connection: Connection
  readonly #patienceMs: number
  readonly #closing: AbortSignal

  /** @param patienceMs how long a read is repeated while the server is away. */
  constructor(connection: Connection, patienceMs: number, closing: AbortSignal) {
    this.#connection = connection
    this.#patienceMs = patienceMs
    this.#closing = closing
  }

  /** Events of a stream in order. Absent reads as empty. */
  stream(
    stream: string,
    options: { from: number | 'end'; maxCount: number; backwards?: boolean },
  ): Promise<StoredEvent[]> {
    const { from, maxCount, backwards = false } = options
    if (maxCount <= 0) return Promise.resolve([])
    const direction = backwards ? BACKWARDS : FORWARDS
    const fromRevision: ReadRevision = from === 'end' ? END : BigInt(from)
    return this.#again(async () => {
      try {
        return await this.#collect(
          this.#connection.client.readStream(stream, {
            ...{ direction, fromRevision, maxCount, requiresLeader: true },
          }),
        )
      } catch (error) {
        if (error instanceof StreamNotFoundError) return []
        throw error
      }
    })
  }

  /** Position of the last event. */
  async head(): Promise<bigint> {
    return (await this.latest(1)).at(-1)?.position ?? LOG_START
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

  /** @throws UnknownPosition when no event stands there. */
  async confirm(position: bigint): Promise<void> {
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
    await this.#follow({ after: from, types }, async (subscription) => {
      const isBefore = checkpoint < after
      const stretch = await subscription.next(isBefore ? PASSED_AT_ONCE : maxCount - events.length)
      for (const event of stretch?.events ?? []) {
        if (event.position <= after || events.length === maxCount) continue
        events.push(event)
        characters += event.data.length + event.metadata.length
      }
      if (!stretch) return false
      checkpoint = events.length === maxCount ? events.at(-1)!.position : stretch.checkpoint
      // all of it was there when the subscription began
      if (subscription.isLive && checkpoint < head && events.length < maxCount) checkpoint = head
      return checkpoint < head && events.length < maxCount && characters < PAGE_CHARACTERS
    })
    // the server's own events may stand behind the log's last one
    const last = events.at(-1)?.position ?? LOG_START
    const end = last > head ? last : head
    return { events, checkpoint: checkpoint < end ? checkpoint : end, atHead: checkpoint >= head }
  }

  /** A place before a position that the server can read from: found by having it look through the log from its start. */
  async #placeBefore(position: bigint): Promise<bigint> {
    let place = LOG_START
    await this.#follow({ after: LOG_START, types: [NO_TYPE] }, async (subscription) => {
      const stretch = await subscription.next(1)
      if (!stretch || stretch.checkpoint >= position) return false
      place = stretch.checkpoint
      return !subscription.isLive
    })
    return place
  }

  /** Tries once. @param take takes what has come, and says whether it wants more. @throws UnknownPosition */
  async #follow(
    options: { after: bigint; types?: readonly string[] | undefined },
    take: (subscription: Subscription) => Promise<boolean>,
  ): Promise<void> {
    const subscription = new Subscription(this.#connection.client, options)
    let isSilent = false
    const silence = setTimeout(() => {
      isSilent = true
      subscription.end()
    }, SILENCE_LIMIT_MS)
    try {
      while (await take(subscription)) silence.refresh()
      if (isSilent) throw new Error('no answer')
    } catch (error) {
      if (mayBeUnknownPosition(error)) await this.confirm(options.after)
      throw error
    } finally {
      clearTimeout(silence)
      subscription.end()
    }
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
      const silence = setTimeout(giveUp, SILENCE_LIMIT_MS)
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
  async #again<T>(read: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#patienceMs
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await read()
      } catch (error) {
        if (error instanceof UnknownPosition) throw error
        const failure = failureOf(this.#connection.target, error)
        if (!passes(failure) || performance.now() > deadline || this.#closing.aborted) throw failure
        await retryPause(attempt, this.#closing)
      }
    }
  }
}

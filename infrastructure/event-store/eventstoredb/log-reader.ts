import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  LOG_START,
  type LogPage,
  type StoredEvent,
  UnknownPosition,
} from '../../../application/ports/event-log.ts'
import type { EventStoreConnection, ReadCall } from './connection.ts'
import { EventStoreRefused, EventStoreUnavailable } from './errors.ts'
import { logRequest, streamRequest } from './requests.ts'
import { type RecordedEvent, storedEvent } from './wire.ts'

/** A read that brings nothing for so long is given up, in milliseconds. */
const SILENCE_LIMIT_MS = 10_000
/** Size of the data and metadata after which a page ends although it has fewer events than asked for. */
const PAGE_BYTES = 4 * 1024 * 1024
const LONGEST_BACKOFF_MS = 1_000
const UNKNOWN = 2

/** Reads streams and the log; reads whose connection was lost are repeated for a while. */
export class LogReader {
  readonly #connection: EventStoreConnection
  readonly #patienceMs: number
  readonly #closing: AbortSignal

  /** @param patienceMs how long a read is repeated while the server is away. */
  constructor(connection: EventStoreConnection, patienceMs: number, closing: AbortSignal) {
    this.#connection = connection
    this.#patienceMs = patienceMs
    this.#closing = closing
  }

  /** Events of a stream in order. Absent reads as empty. */
  stream(
    stream: string,
    options: { from: number | 'end'; maxCount: number; backwards?: boolean },
  ): Promise<RecordedEvent[]> {
    const { from, maxCount, backwards = false } = options
    return this.#again(async () => {
      const events: RecordedEvent[] = []
      if (maxCount <= 0) return events
      const request = streamRequest({ stream, from, count: maxCount, backwards })
      await this.#collect(request, (event) => events.push(event) < maxCount)
      return events
    })
  }

  /** The next events of the log after a position, as far as they are there. */
  next(after: bigint, maxCount: number): Promise<RecordedEvent[]> {
    return this.#again(async () => (await this.#events(after, maxCount, undefined)).events)
  }

  /** A page of the log after a position. @param stored what is made of an event. @throws UnknownPosition */
  page(
    options: { after: bigint; maxCount: number; types?: readonly string[] | undefined },
    stored: (event: RecordedEvent) => StoredEvent = storedEvent,
  ): Promise<LogPage> {
    const { after, maxCount, types } = options
    return this.#again(async () => {
      const first = await this.#events(after, maxCount, types)
      let events = first.events.map(stored)
      if (first.full) return { events, checkpoint: events.at(-1)!.position, atHead: false }
      // what was appended since then may be of other types: the end is known only to what looks at it before reading
      const head = await this.#head()
      const reached = events.at(-1)?.position ?? after
      if (head <= reached) return { events, checkpoint: reached, atHead: true }
      const rest = await this.#events(reached, maxCount - events.length, types)
      events = [...events, ...rest.events.map(stored)]
      const last = events.at(-1)?.position ?? after
      if (rest.full) return { events, checkpoint: last, atHead: false }
      return { events, checkpoint: head > last ? head : last, atHead: true }
    })
  }

  /** Position of the last event. */
  head(): Promise<bigint> {
    return this.#again(() => this.#head())
  }

  /** The last events of the log, in order. */
  latest(count: number): Promise<RecordedEvent[]> {
    return this.#again(async () => {
      const events: RecordedEvent[] = []
      const request = logRequest({ from: 'end', backwards: true, count })
      await this.#collect(request, (event) => events.push(event) < count)
      return events.reverse()
    })
  }

  /** Tries once. @throws EventStoreUnavailable */
  async #head(): Promise<bigint> {
    let head = LOG_START
    await this.#collect(logRequest({ from: 'end', backwards: true, count: 1 }), (event) => {
      head = event.position
      return false
    })
    return head
  }

  async #events(
    after: bigint,
    maxCount: number,
    types: readonly string[] | undefined,
  ): Promise<{ events: RecordedEvent[]; full: boolean }> {
    const events: RecordedEvent[] = []
    let bytes = 0
    let full = maxCount <= 0
    // reading begins with the event at the position itself
    const request = logRequest({ from: after === LOG_START ? 'start' : after, count: maxCount + 1, types })
    try {
      await this.#collect(request, (event) => {
        if (event.position <= after) return true
        events.push(event)
        bytes += event.dataBytes
        full = events.length >= maxCount || bytes >= PAGE_BYTES
        return !full
      })
    } catch (error) {
      if (isUnknownPosition(error)) throw new UnknownPosition(after)
      throw error
    }
    return { events, full }
  }

  /** Takes events until the answer ends or `take` wants no more. @throws EventStoreUnavailable */
  async #collect(
    request: Parameters<EventStoreConnection['read']>[0],
    take: (event: RecordedEvent) => boolean,
  ): Promise<void> {
    let call: ReadCall
    try {
      call = await this.#connection.read(request)
    } catch (error) {
      throw this.#connection.failureOf(error)
    }
    let enough = false
    await new Promise<void>((resolve, reject) => {
      const silence = setTimeout(() => {
        enough = true
        fail(this.#connection.failureOf(new Error('no answer'), call))
        call.cancel()
      }, SILENCE_LIMIT_MS)
      const done = () => {
        clearTimeout(silence)
        resolve()
      }
      const fail = (error: Error) => {
        clearTimeout(silence)
        reject(error)
      }
      call.on('data', (message) => {
        if (enough) return
        silence.refresh()
        if (message.kind !== 'event' || take(message)) return
        enough = true
        done()
        // what was asked for has come, or more than is wanted at once
        setImmediate(() => call.cancel())
      })
      call.on('error', (error) => {
        // ended here
        if (enough) return
        fail(isUnknownPosition(error) ? error : this.#connection.failureOf(error, call))
      })
      call.on('end', done)
    })
  }

  /** @throws EventStoreUnavailable when it does not work for too long. */
  async #again<T>(read: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#patienceMs
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof EventStoreUnavailable) || error instanceof EventStoreRefused) throw error
        if (performance.now() > deadline || this.#closing.aborted) throw error
        await retryPause(attempt, this.#closing)
      }
    }
  }
}

/** Waits before the next attempt, longer each time, and not as long as others do. */
export async function retryPause(attempt: number, signal?: AbortSignal): Promise<void> {
  const longest = Math.min(50 * 2 ** attempt, LONGEST_BACKOFF_MS)
  const options = signal ? { signal } : {}
  await delay(longest / 2 + randomInt(Math.ceil(longest / 2)), undefined, options).catch(() => undefined)
}

/** The server reads from positions of events only. */
function isUnknownPosition(error: unknown): error is Error {
  const { code, details } = error as { code?: unknown; details?: unknown }
  return code === UNKNOWN && /^Unexpected (Filtered)?ReadAllResult: Error$/.test(String(details))
}

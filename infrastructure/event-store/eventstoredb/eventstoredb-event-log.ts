import { setMaxListeners } from 'node:events'
import {
  type AppendResult,
  type EventLog,
  type EventToAppend,
  type ExpectedRevision,
  LOG_START,
  type LogPage,
  type StoredEvent,
  UnknownPosition,
} from '../../../application/ports/event-log.ts'
import { checkAppend } from '../check-append.ts'
import { AppendStream } from './append-stream.ts'
import { Appender } from './appender.ts'
import { catchUp } from './catch-up.ts'
import { Confirmations } from './confirmations.ts'
import { EventStoreConnection } from './connection.ts'
import { EventStoreRefused, EventStoreUnavailable, oneLine, StreamTampered } from './errors.ts'
import { KnownStreams } from './known-streams.ts'
import { LogReader, retryPause } from './log-reader.ts'
import { Tail, type TailLog } from './tail.ts'
import { storedEvent } from './wire.ts'

const PATIENCE_MS = 10_000
const OPENING_PATIENCE_MS = 3_000
/** The last events of the log, so many, are counted; how far they are apart tells how many stand before them. */
const SAMPLE = 200
const SAMPLE_LASTS_MS = 1_000
/** A name that no event type can have: the server tells of checkpoints only. */
const NO_TYPE = 'no event at all'
const PASSED_AT_ONCE = 1_000

/** How the log is opened. */
export interface EventStoreEventLogOptions {
  /** `esdb://user:password@host:2113?tls=true`, `esdb+discover://…` for a cluster, or the same with `kurrentdb`. */
  readonly url: string
  readonly log?: TailLog
  /** How long appends and reads wait for a lost server to come back, in milliseconds, default 10000. */
  readonly patienceMs?: number
  /** How long to wait for a server that is not there at the start, in milliseconds, default 3000. */
  readonly openingPatienceMs?: number
  /** Told of every stored append with its number of events and the real milliseconds it took; must not throw. */
  readonly onAppend?: (events: number, ms: number) => void
}

/**
 * Connects and begins to follow the log.
 * @throws EventStoreUnavailable when the server cannot be reached, or refuses.
 */
export async function openEventStoreEventLog(
  options: EventStoreEventLogOptions,
): Promise<EventStoreEventLog> {
  // long reads must not hold up appends, nor their failures end them
  const reading = new EventStoreConnection(options.url)
  const writing = new EventStoreConnection(options.url)
  const opening = new LogReader(
    reading,
    options.openingPatienceMs ?? OPENING_PATIENCE_MS,
    new AbortController().signal,
  )
  try {
    const head = await opening.head()
    const eventLog = new EventStoreEventLog(
      {
        reading,
        writing,
        log: options.log ?? { warn: () => undefined },
        patienceMs: options.patienceMs ?? PATIENCE_MS,
        onAppend: options.onAppend ?? (() => undefined),
      },
      head,
    )
    await eventLog.start()
    return eventLog
  } catch (error) {
    await Promise.all([reading.close(), writing.close()])
    throw error
  }
}

/**
 * The event log in EventStoreDB, see {@link EventLog}. Made by {@link openEventStoreEventLog}. Positions are those of
 * the server, places in its files: they grow by an event's size.
 */
export class EventStoreEventLog implements EventLog {
  readonly #reading: EventStoreConnection
  readonly #writing: EventStoreConnection
  readonly #reader: LogReader
  readonly #known = new KnownStreams()
  readonly #appends: AppendStream
  readonly #appender: Appender
  readonly #tail: Tail
  readonly #log: TailLog
  readonly #onAppend: (events: number, ms: number) => void
  readonly #closing = new AbortController()
  #sample: { readonly at: number; readonly positions: Promise<readonly bigint[]> } | undefined
  #closed: Promise<void> | undefined

  constructor(
    parts: {
      reading: EventStoreConnection
      writing: EventStoreConnection
      log: TailLog
    } & Required<Pick<EventStoreEventLogOptions, 'patienceMs' | 'onAppend'>>,
    head: bigint,
  ) {
    this.#onAppend = parts.onAppend
    const { reading, writing, log, patienceMs } = parts
    this.#reading = reading
    this.#writing = writing
    this.#log = log
    const { signal } = this.#closing
    // everything that waits for the server's return listens
    setMaxListeners(0, signal)
    const confirmations = new Confirmations()
    this.#reader = new LogReader(reading, patienceMs, signal)
    this.#appends = new AppendStream(writing)
    this.#appender = new Appender({
      target: writing.target,
      appends: this.#appends,
      reader: this.#reader,
      known: this.#known,
      confirmations,
      patienceMs,
    })
    this.#tail = new Tail(
      { connection: reading, reader: this.#reader, confirmations, log, closing: signal },
      head,
    )
  }

  /** Begins to follow the log. */
  start(): Promise<void> {
    return this.#tail.start()
  }

  async append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
  ): Promise<AppendResult> {
    checkAppend(stream, events)
    checkJson(events)
    const began = performance.now()
    const result = await this.#appender.append(stream, expected, events)
    if (events.length > 0 && !result.repeated) this.#onAppend(events.length, performance.now() - began)
    return result
  }

  async readStream(
    stream: string,
    options: { from?: number; maxCount?: number; direction?: 'forwards' | 'backwards' } = {},
  ): Promise<readonly StoredEvent[]> {
    const backwards = options.direction === 'backwards'
    const events = await this.#reader.stream(stream, {
      from: options.from ?? (backwards ? 'end' : 0),
      maxCount: options.maxCount ?? 1000,
      backwards,
    })
    const stored = events.map(storedEvent)
    // whoever reads a stream from its beginning is about to append to it
    if (!backwards && stored.length > 0) this.#learn(stream, stored)
    return stored
  }

  revision(stream: string): Promise<number> {
    return this.#tail.revision(stream)
  }

  async readAll(options: { after: bigint; maxCount: number; types?: readonly string[] }): Promise<LogPage> {
    try {
      return await this.#reader.page(options)
    } catch (error) {
      if (error instanceof UnknownPosition) return this.#pageAfterAny(options)
      throw error
    }
  }

  /** A page after a position between events, which the server itself cannot read from. */
  async #pageAfterAny(options: {
    after: bigint
    maxCount: number
    types?: readonly string[]
  }): Promise<LogPage> {
    const { after } = options
    let from = await this.#placeBefore(after)
    for (let passedAll = false; !passedAll; ) {
      const { events, atHead } = await this.#reader.page({ after: from, maxCount: PASSED_AT_ONCE })
      // nothing lies between the last event before the position and the position
      from = events.findLast(({ position }) => position <= after)?.position ?? from
      passedAll = atHead || events.at(-1)!.position > after
    }
    const page = await this.#reader.page({ ...options, after: from })
    return page.checkpoint < after ? { ...page, checkpoint: after } : page
  }

  /** A place before a position that the server can read from: found by having it look through the log from its start. */
  async #placeBefore(position: bigint): Promise<bigint> {
    let place = LOG_START
    const looking = catchUp(this.#reading, {
      ...{ after: LOG_START, upTo: position, types: [NO_TYPE], pageSize: 1, signal: this.#closing.signal },
    })
    for await (const { checkpoint } of looking) if (checkpoint < position) place = checkpoint
    return place
  }

  async *subscribe(options: {
    after: bigint
    types?: readonly string[]
    pageSize: number
    signal: AbortSignal
  }): AsyncGenerator<LogPage, void, undefined> {
    const { types, pageSize } = options
    const wanted = types && new Set(types)
    const signal = AbortSignal.any([options.signal, this.#closing.signal])
    const { feed } = this.#tail
    let position = options.after
    let toldOfHead = false
    for (let attempt = 0; !signal.aborted; ) {
      const known = feed.after(position, pageSize, wanted)
      if (known === 'behind') {
        try {
          const pages = catchUp(this.#reading, { after: position, upTo: feed.to, types, pageSize, signal })
          for await (const page of pages) {
            attempt = 0
            position = page.checkpoint
            yield page
            if (signal.aborted) return
          }
        } catch (error) {
          if (signal.aborted) return
          if (attempt === 0)
            this.#log.warn({ reason: oneLine(error) }, 'reading the event log failed, trying again')
          // a subscription does not tell that its position is none; a read does
          else if (attempt === 1) await this.#confirm(position, signal)
          await retryPause(attempt, signal)
          attempt += 1
        }
        continue
      }
      if (!toldOfHead) {
        // the feed may be a moment behind, and being at the head is to be true when first told
        const head = await this.#headWhenReachable(signal)
        if (signal.aborted) return
        feed.announce(head)
        if (head > feed.to) await feed.beyond(head - 1n, signal)
        if (signal.aborted) return
        const now = feed.after(position, pageSize, wanted)
        if (now === 'behind') continue
        const page = now === 'nothing' ? { events: [], checkpoint: position, atHead: true } : now
        position = page.checkpoint
        toldOfHead = page.atHead
        yield page
        continue
      }
      if (known === 'nothing') {
        await feed.beyond(position, signal)
        if (feed.closed) return
        continue
      }
      position = known.checkpoint
      yield known
    }
  }

  head(): Promise<bigint> {
    return this.#reader.head()
  }

  async count(after: bigint, upTo: bigint): Promise<number> {
    if (upTo <= after) return 0
    const known = this.#tail.feed.countAfter(after)
    if (known !== undefined && upTo >= this.#tail.feed.to) return known
    const positions = await this.#latestPositions()
    const counted = positions.filter((position) => position > after && position <= upTo).length
    const first = positions[0] ?? LOG_START
    const last = positions.at(-1) ?? LOG_START
    const spacing = positions.length < 2 ? 1_000 : Number(last - first) / (positions.length - 1)
    const about = (from: bigint, to: bigint) => (to > from ? Math.round(Number(to - from) / spacing) : 0)
    const earliest = upTo < first ? upTo : first
    // fewer than were asked for are the whole log
    const before = positions.length < SAMPLE ? 0 : about(after, earliest)
    return Math.max(1, before + counted + about(after > last ? after : last, upTo))
  }

  /** Never: other processes may append at any time. */
  soleWriter(): boolean {
    return false
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#appender.close()
      this.#closing.abort()
      this.#appends.close()
      await Promise.all([this.#reading.close(), this.#writing.close()])
    })()
    return this.#closed
  }

  #learn(stream: string, events: readonly StoredEvent[]): void {
    const revision = this.#known.get(stream)?.revision ?? -1
    if (events[0]!.revision > revision + 1 || events.at(-1)!.revision <= revision) return
    const known = this.#known.open(stream)
    try {
      for (const event of events) known.add(event)
    } catch (error) {
      // to be read by whoever wants to; appends are refused
      if (!(error instanceof StreamTampered)) throw error
    }
    this.#known.grew(known.revision - revision)
  }

  #latestPositions(): Promise<readonly bigint[]> {
    const now = performance.now()
    if (this.#sample && now - this.#sample.at < SAMPLE_LASTS_MS) return this.#sample.positions
    const positions = this.#reader.latest(SAMPLE).then((events) => events.map(({ position }) => position))
    this.#sample = { at: now, positions }
    positions.catch(() => {
      this.#sample = undefined
    })
    return positions
  }

  /** @throws UnknownPosition when the log cannot be read from there. */
  async #confirm(position: bigint, signal: AbortSignal): Promise<void> {
    try {
      await this.#reader.page({ after: position, maxCount: 1 })
    } catch (error) {
      if (error instanceof UnknownPosition && !signal.aborted) throw error
    }
  }

  /** @returns the log's start when `signal` aborts first. */
  async #headWhenReachable(signal: AbortSignal): Promise<bigint> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await orAborted(this.#reader.head(), signal, LOG_START)
      } catch (error) {
        if (signal.aborted) return LOG_START
        if (!(error instanceof EventStoreUnavailable)) throw error
        if (error instanceof EventStoreRefused)
          this.#log.warn({ reason: error.message }, 'reading was refused')
        await retryPause(attempt, signal)
      }
    }
  }
}

/** What a promise brings, or `instead` when the signal aborts first. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal, instead: T): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined)
    return instead
  }
  let onAbort: () => void = () => undefined
  const aborted = new Promise<T>((resolve) => {
    onAbort = () => resolve(instead)
    signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** The server stores any bytes as JSON; what is no JSON would be found by readers only. */
function checkJson(events: readonly EventToAppend[]): void {
  for (const { type, data, metadata, writtenFrom } of events) {
    // written by JSON.stringify a moment ago
    if (writtenFrom?.text === data) continue
    try {
      JSON.parse(data)
      JSON.parse(metadata)
    } catch {
      throw new TypeError(`The data or metadata of an event of type ${type} is refused: it is no JSON`)
    }
  }
}

import { setMaxListeners } from 'node:events'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import {
  type AppendResult,
  type Changes,
  type CutStream,
  type EventLog,
  type EventToAppend,
  LOG_START,
  type LogPage,
  type StoredEvent,
  UnknownPosition,
} from '../../../application/ports/event-log.ts'
import { Gathered } from '../../gathered.ts'
import { checkAppend } from '../check-append.ts'
import { type FollowedLog, followLog } from '../follow-log.ts'
import { Appender } from './appender.ts'
import { type SharedAppends, shareAppends } from './appends.ts'
import { type Connection, connect } from './client.ts'
import { failureOf, oneLine } from './client-errors.ts'
import { Live, type LiveLog } from './live.ts'
import { earlier, LogReader, later } from './log-reader.ts'
import { type InTurn, readsInTurn } from './reads-in-turn.ts'

const PATIENCE_MS = 10_000
const OPENING_PATIENCE_MS = 3_000
/** The last events of the log, so many, are counted; how far they are apart tells how many stand before them. */
const SAMPLE = 200
const SAMPLE_LASTS_MS = 1_000

type ReadOptions = NonNullable<Parameters<EventLog['readStream']>[1]>
interface StreamRead {
  readonly stream: string
  readonly options: ReadOptions
}

/** How the log is opened. */
export interface EventStoreEventLogOptions {
  /** `esdb://user:password@host:2113?tls=true`, `esdb+discover://…` for a cluster, or the same with `kurrentdb`. */
  readonly url: string
  readonly log?: LiveLog
  /** How long appends and reads wait for a lost server to come back, in milliseconds, default 10000. */
  readonly patienceMs?: number
  /** How long to wait for a server that is not there at the start, in milliseconds, default 3000. */
  readonly openingPatienceMs?: number
  /** Told when the connection was lost, and the log is read again. */
  readonly reconnected?: () => void
  /** Told of every stored append with its number of events and the real milliseconds it took. What it throws is logged. */
  readonly onAppend?: (events: number, ms: number) => void
}

/** @throws EventStoreUnavailable when the server cannot be reached, or refuses. */
export async function openEventStoreEventLog(
  options: EventStoreEventLogOptions,
): Promise<EventStoreEventLog> {
  // long reads must not hold up appends, nor their failures end them
  const connection = connect(options.url)
  const shared = shareAppends(options.url)
  const opened = new AbortController()
  const patience = options.openingPatienceMs ?? technicalDeadline(OPENING_PATIENCE_MS)
  try {
    const head = await new LogReader(connection, shared.appends, patience, opened.signal).head()
    return new EventStoreEventLog(options, connection, shared, head)
  } catch (error) {
    await Promise.all([shared.release(), connection.client.dispose()])
    throw error
  } finally {
    opened.abort()
  }
}

/**
 * The event log in EventStoreDB, see {@link EventLog}. Made by {@link openEventStoreEventLog}. Positions are those of
 * the server, places in its files: they grow by an event's size.
 */
export class EventStoreEventLog implements EventLog {
  /** Other processes may append at any time. */
  readonly isExclusive = false
  readonly isGapless = false
  readonly #connection: Connection
  readonly #reader: LogReader
  readonly #appends: SharedAppends
  readonly #appender: Appender
  readonly #live: Live
  readonly #followed: FollowedLog
  readonly #log: LiveLog
  readonly #onAppend: (events: number, ms: number) => void
  readonly #closing = new AbortController()
  readonly #changes = new Gathered((afters: readonly bigint[]) => this.#live.changes(afters.reduce(earlier)))
  /** Each for itself: one stream that cannot be read is no other's concern. */
  readonly #reads = new Gathered(async (asked: readonly StreamRead[]) => {
    const inTurn = readsInTurn()
    return new Map(asked.map((one) => [one, this.#readStream(one, inTurn)]))
  })
  #sample: { readonly at: number; readonly positions: Promise<readonly bigint[]> } | undefined
  #closed: Promise<void> | undefined

  /** @param head of the log, at some time. */
  constructor(
    options: EventStoreEventLogOptions,
    connection: Connection,
    shared: SharedAppends,
    head: bigint,
  ) {
    const { patienceMs = technicalDeadline(PATIENCE_MS) } = options
    this.#connection = connection
    this.#log = options.log ?? { warn: () => undefined }
    this.#onAppend = options.onAppend ?? (() => undefined)
    const closing = this.#closing.signal
    // everything that waits for the server's return listens
    setMaxListeners(0, closing)
    const reader = new LogReader(connection, shared.appends, patienceMs, closing, options.reconnected)
    this.#reader = reader
    this.#appends = shared
    const live = new Live({ connection, reader, log: this.#log, closing }, head)
    this.#live = live
    this.#followed = {
      feed: live.feed,
      closing,
      want: (types) => live.want(types),
      head: () => reader.head(),
      pages: (after, upTo, wanted) => reader.pages(after, upTo, wanted),
      failed: (error, attempt) => this.#readingFailed(error, attempt),
    }
    this.#appender = new Appender({
      appends: shared.appends,
      reader,
      patienceMs,
      onSend: (eventId, event, metadata) => live.willShow(eventId, event, metadata),
    })
  }

  async append(stream: string, revision: number, events: readonly EventToAppend[]): Promise<AppendResult> {
    const bytes = checkAppend(stream, events)
    const began = performance.now()
    const result = await this.#appender.append(stream, revision, events, bytes)
    this.#live.reaches(result.position)
    try {
      this.#onAppend(events.length, performance.now() - began)
    } catch (error) {
      // the append is stored, whatever the listener makes of it
      this.#log.warn({ reason: oneLine(error) }, 'a listener of the event log failed')
    }
    return result
  }

  async readStream(stream: string, options: ReadOptions = {}): Promise<readonly StoredEvent[]> {
    const asked = { stream, options }
    return (await this.#reads.ask(asked)).get(asked)!
  }

  changes(after: bigint): Promise<Changes> {
    return this.#changes.ask(after)
  }

  readAll(options: { after: bigint; maxCount: number; types?: readonly string[] }): Promise<LogPage> {
    return this.#reader.page(options)
  }

  subscribe(options: Parameters<EventLog['subscribe']>[0]): AsyncIterable<LogPage> {
    return followLog(this.#followed, options)
  }

  async head(): Promise<bigint> {
    const head = await this.#reader.head()
    this.#live.reaches(head)
    return head
  }

  idAt(position: bigint): Promise<string | null> {
    return this.#reader.idAt(position)
  }

  findCut(): Promise<CutStream | null> {
    return this.#reader.findCut()
  }

  async count(after: bigint, upTo: bigint): Promise<number> {
    if (upTo <= after) return 0
    const positions = await this.#latestPositions()
    const counted = positions.filter((position) => position > after && position <= upTo).length
    const first = positions[0] ?? LOG_START
    const last = positions.at(-1) ?? LOG_START
    const spacing = positions.length < 2 ? 1_000 : Number(last - first) / (positions.length - 1)
    const about = (from: bigint, to: bigint) => (to > from ? Math.round(Number(to - from) / spacing) : 0)
    // fewer than were asked for are the whole log
    const before = positions.length < SAMPLE ? 0 : about(after, earlier(upTo, first))
    return Math.max(1, before + counted + about(later(after, last), upTo))
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#appender.close()
      this.#closing.abort()
      await Promise.all([this.#appends.release(), this.#connection.client.dispose()])
    })()
    return this.#closed
  }

  async #readStream({ stream, options }: StreamRead, inTurn: InTurn): Promise<readonly StoredEvent[]> {
    const backwards = options.direction === 'backwards'
    const from = options.from ?? (backwards ? 'end' : 0)
    const maxCount = options.maxCount ?? 1000
    const events = await this.#reader.stream(stream, { from, maxCount, backwards }, inTurn)
    // a read of a stream often precedes an append to it
    const last = events.at(backwards ? 0 : -1)
    if (last) this.#appender.learn(last)
    return events
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

  #readingFailed(error: unknown, attempt: number): void {
    if (error instanceof UnknownPosition) throw error
    const reason = oneLine(failureOf(this.#connection.target, error))
    if (attempt === 0) this.#log.warn({ reason }, 'reading the event log failed, trying again')
  }
}

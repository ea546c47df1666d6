import type pg from 'pg'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type {
  AppendResult,
  Changes,
  EventLog,
  EventToAppend,
  LogPage,
  StoredEvent,
} from '../../../application/ports/event-log.ts'
import {
  DatabaseUnavailable,
  isConnectionLoss,
  oneLine,
  orUnavailable,
  STATEMENT_LIMIT_MS,
} from '../../database/connection.ts'
import type { Database, DatabaseLog } from '../../database/database.ts'
import { Gathered } from '../../gathered.ts'
import { checkAppend } from '../check-append.ts'
import { type FollowedLog, followLog } from '../follow-log.ts'
import { LiveFeed } from '../live-feed.ts'
import { RecentlySent } from '../recently-sent.ts'
import { retried } from '../retry.ts'
import { Appender } from './appender.ts'
import { APPENDED_CHANNEL } from './batch.ts'
import {
  LOG_SESSION,
  type Queryable,
  readChanges,
  readHead,
  readId,
  readPage,
  readPages,
  readStream,
  readStretches,
  type StreamStretch,
} from './event-queries.ts'
import { WriterSession } from './writer-session.ts'

const READERS = 4
const LOCK_WAIT_MS = 15_000
const PATIENCE_MS = 10_000
const READ_ATTEMPTS = 4
const POLL_MS = 1_000
const FEED_PAGE = 1_000
/** Events of a stream that are read together with those of others. */
const FEW = 32

/** The event log in PostgreSQL, see {@link EventLog}. */
export interface PostgresEventLogOptions {
  /** A database with the log's schema. Stays open when the log is closed. */
  readonly database: Database
  readonly log?: DatabaseLog
  /** Shares the log with no other process as long as it is open: a second one is refused. Default false. */
  readonly isExclusive?: boolean
  /** How long to wait for processes that do not let this one in, in milliseconds, default 15000. */
  readonly lockWaitMs?: number
  /**
   * How long an append waits for its turn, for an answer, and for a lost database to come back, in milliseconds,
   * default 10000. A read that failed is repeated for no longer.
   */
  readonly patienceMs?: number
  /** Told when the connection that appends was lost, and is there again. */
  readonly reconnected?: () => void
  /** Told of every committed transaction with its number of events and the real milliseconds it took. What it throws is logged. */
  readonly onAppend?: (events: number, ms: number) => void
}

/**
 * Opens the log.
 * @throws DatabaseUnavailable when the database is, or when another process holds the log exclusively, or at all where
 *   this one wants to.
 */
export async function openPostgresEventLog(options: PostgresEventLogOptions): Promise<PostgresEventLog> {
  const { database } = options
  const log = options.log ?? { info: () => undefined, warn: () => undefined }
  const session = new WriterSession({
    database,
    log,
    isExclusive: options.isExclusive ?? false,
    lockWaitMs: options.lockWaitMs ?? technicalDeadline(LOCK_WAIT_MS),
    reconnected: options.reconnected,
  })
  await session.client()
  const readers = new Readers(
    database.openPool({
      purpose: 'event log',
      poolSize: READERS,
      statementMs: STATEMENT_LIMIT_MS.log,
      settings: LOG_SESSION,
    }),
  )
  try {
    const eventLog = new PostgresEventLog(
      {
        session,
        readers,
        log,
        patienceMs: options.patienceMs ?? technicalDeadline(PATIENCE_MS),
        onAppend: options.onAppend ?? (() => undefined),
      },
      await readHead(readers),
    )
    await eventLog.follow(database)
    return eventLog
  } catch (error) {
    await session.close()
    await readers.close()
    throw error
  }
}

/** Connections for reading. A connection that cannot be had is told apart from a query that fails. */
class Readers implements Queryable {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  async query<Row extends unknown[]>(config: pg.QueryArrayConfig): Promise<pg.QueryArrayResult<Row>> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw error instanceof DatabaseUnavailable
        ? error
        : new DatabaseUnavailable('the event log', oneLine(error))
    })
    let broken: Error | undefined
    try {
      return await client.query<Row>(config)
    } catch (error) {
      if (isConnectionLoss(error)) broken = error as Error
      throw orUnavailable('the event log', error)
    } finally {
      client.release(broken)
    }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

/** Made by {@link openPostgresEventLog}. */
export class PostgresEventLog implements EventLog {
  readonly #session: WriterSession
  readonly #readers: Readers
  readonly #patienceMs: number
  readonly #log: DatabaseLog
  readonly #appender: Appender
  readonly #feed: LiveFeed
  readonly #followed: FollowedLog
  /** Of this process, behind others' events that the feed has not read yet. */
  readonly #sent = new RecentlySent()
  readonly #shortReads = new Gathered((asked: readonly StreamStretch[]) =>
    this.#again(() => readStretches(this.#readers, asked)),
  )
  readonly #changes = new Gathered((afters: readonly bigint[]) =>
    this.#again(() =>
      readChanges(
        this.#readers,
        afters.reduce((one, other) => (one < other ? one : other)),
      ),
    ),
  )
  readonly #closing = new AbortController()
  #poll: NodeJS.Timeout | undefined
  #stopListening: () => void = () => undefined
  #closed: Promise<void> | undefined

  constructor(
    parts: { session: WriterSession; readers: Readers; log: DatabaseLog } & Required<
      Pick<PostgresEventLogOptions, 'patienceMs' | 'onAppend'>
    >,
    head: bigint,
  ) {
    const { session, readers, log, patienceMs, onAppend } = parts
    this.#session = session
    this.#readers = readers
    this.#patienceMs = patienceMs
    this.#log = log
    this.#feed = new LiveFeed(
      head,
      async (after, types) => {
        const page = await readPage(readers, { after, maxCount: FEED_PAGE, types })
        return {
          ...page,
          events: page.events.map((event) => ({ ...event, ...this.#sent.take(event.eventId) })),
        }
      },
      (error, attempt) => this.#readingFailed(error, attempt),
    )
    this.#followed = {
      feed: this.#feed,
      closing: this.#closing.signal,
      want: (types) => this.#feed.want(types),
      head: () => readHead(readers),
      pages: (after, upTo, options) => readPages(readers, after, upTo, options),
      failed: (error, attempt) => this.#readingFailed(error, attempt),
    }
    const listener = {
      committed: (base: bigint, events: readonly StoredEvent[], ms: number) => {
        const haveEntered = this.#feed.publish(base, events)
        if (!haveEntered) this.#remember(events)
        onAppend(events.length, ms)
      },
      found: (position: bigint) => this.#feed.announce(position),
    }
    this.#appender = new Appender({ session, readers, patienceMs, log, listener })
  }

  /** Begins to hear of what other processes append: by notification, and by asking in case one was missed. */
  async follow(database: Database): Promise<void> {
    this.#stopListening = await database.listen(APPENDED_CHANNEL, (payload) => {
      if (payload === null) {
        this.#askForHead()
        return
      }
      const [position, writer] = payload.split(' ')
      if (writer !== this.#session.id && /^\d+$/.test(position ?? '')) this.#feed.announce(BigInt(position!))
    })
    // appends before listening began were not announced
    this.#askForHead()
    this.#poll = setInterval(() => {
      if (!this.isExclusive) this.#askForHead()
    }, POLL_MS)
    this.#poll.unref()
  }

  async append(stream: string, revision: number, events: readonly EventToAppend[]): Promise<AppendResult> {
    return this.#appender.append(stream, revision, events, checkAppend(stream, events))
  }

  async readStream(...[stream, options = {}]: Parameters<EventLog['readStream']>) {
    const { direction = 'forwards', maxCount = 1000 } = options
    const from = options.from ?? (direction === 'forwards' ? 0 : LARGEST_REVISION)
    if (direction === 'forwards' && maxCount <= FEW) {
      const asked = { stream, from, maxCount }
      return (await this.#shortReads.ask(asked)).get(asked) ?? []
    }
    return this.#again(() => readStream(this.#readers, stream, { from, maxCount, direction }))
  }

  changes(after: bigint): Promise<Changes> {
    return this.#changes.ask(after)
  }

  async readAll(options: Parameters<EventLog['readAll']>[0]): Promise<LogPage> {
    return this.#again(() => readPage(this.#readers, options))
  }

  subscribe(options: Parameters<EventLog['subscribe']>[0]): AsyncIterable<LogPage> {
    return followLog(this.#followed, options)
  }

  async head(): Promise<bigint> {
    return this.#again(() => readHead(this.#readers))
  }

  idAt(position: bigint): Promise<string | null> {
    return this.#again(() => readId(this.#readers, position))
  }

  /** Triggers refuse it, and leave gaps where they are got around. */
  async findCut(): Promise<null> {
    return null
  }

  readonly isGapless = true

  async count(after: bigint, upTo: bigint): Promise<number> {
    return upTo > after ? Number(upTo - after) : 0
  }

  get isExclusive(): boolean {
    return this.#session.isExclusive && !this.#session.inDoubt
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#appender.close()
      this.#closing.abort()
      clearInterval(this.#poll)
      this.#stopListening()
      this.#feed.close()
      await this.#session.close()
      await this.#readers.close()
    })()
    return this.#closed
  }

  #askForHead(): void {
    readHead(this.#readers).then(
      (head) => this.#feed.announce(head),
      () => undefined,
    )
  }

  #remember(events: readonly StoredEvent[]): void {
    for (const event of events) if (this.#feed.wants(event.type)) this.#sent.add(event.eventId, event)
  }

  #readingFailed(error: unknown, attempt: number): void {
    if (attempt === 0)
      this.#log.warn({ reason: oneLine(error) }, 'reading the event log failed, trying again')
  }

  /** Repeats a read whose connection was lost: most often the next one works. @throws DatabaseUnavailable */
  #again<T>(read: () => Promise<T>): Promise<T> {
    return retried(read, {
      mayPass: isConnectionLoss,
      patienceMs: this.#patienceMs,
      attempts: READ_ATTEMPTS,
      signal: this.#closing.signal,
    })
  }
}

const LARGEST_REVISION = 2 ** 31 - 1

import { RecentlyUsed } from '../../../application/command-handling/recently-used.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'
import { Gathered } from '../gathered.ts'
import { LiveFeed } from '../live-feed.ts'
import type { Confirmations } from './confirmations.ts'
import type { EventStoreConnection } from './connection.ts'
import { oneLine } from './errors.ts'
import { type Following, follow } from './following.ts'
import { type LogReader, retryPause } from './log-reader.ts'

const HEARTBEAT_MS = 1_000
/** Beats for which the log may be ahead and nothing be delivered before the subscription counts as dead. */
const BEATS_BEHIND = 3
const FEED_PAGE = 1_000
/** Appends that the subscription may be behind the server's answers before the log is read instead. */
const BUSY = 8
/** The same for a single one, in milliseconds. */
const LATE_MS = 30
/** Between two pages at the most, in milliseconds. */
const PAGE_PAUSE_MS = 5
/** With no busy moment for so long the log is followed live again, in milliseconds. */
const CALM_MS = 250
/** Events that arrive one by one within so long go to the readers as one page, in milliseconds: each costs a transaction. */
const GATHER_MS = 1
const STREAMS = 50_000
/** How long the feed may take to where the log ends before a stream is looked at instead, in milliseconds. */
const REACH_MS = 250

export interface TailLog {
  warn(fields: { readonly reason: string }, message: string): void
}

/**
 * Follows the log live, once for the whole process, into a {@link LiveFeed} that all subscribers at the head read
 * from. A subscription that fails or falls silent is replaced by one that goes on where the feed ends.
 *
 * The server tells a subscription of each event by itself, which costs it as much as the append, and cuts off who does
 * not keep up. So while this process appends a lot, the log is read in pages instead.
 */
export class Tail {
  readonly feed: LiveFeed
  readonly #connection: EventStoreConnection
  readonly #reader: LogReader
  readonly #confirmations: Confirmations
  readonly #log: TailLog
  readonly #closing: AbortSignal
  /** Revisions of the last events of streams. What is missing was not seen, or is forgotten. */
  readonly #revisions = new RecentlyUsed<string, number>(STREAMS)
  /** Where the log ends, and the feed has been. */
  readonly #reached = new Gathered(async () => {
    const head = await this.#reader.head()
    if (head > this.feed.to) {
      this.#wake()
      await this.feed.beyond(head - 1n, AbortSignal.timeout(REACH_MS))
    }
    return head <= this.feed.to
  })
  #following: Following | undefined
  #arrived: StoredEvent[] = []
  /** Whether the log is read in pages, or is about to be. */
  #busy = false
  #late: NodeJS.Timeout | undefined
  #wake: () => void = () => undefined
  #timer: NodeJS.Timeout | undefined
  #beating = false
  #behind = 0
  #lastSeen = -1n

  constructor(
    parts: {
      connection: EventStoreConnection
      reader: LogReader
      confirmations: Confirmations
      log: TailLog
      closing: AbortSignal
    },
    head: bigint,
  ) {
    this.#connection = parts.connection
    this.#reader = parts.reader
    this.#confirmations = parts.confirmations
    this.#log = parts.log
    this.#closing = parts.closing
    this.feed = new LiveFeed(
      head,
      (after) => this.#reader.page({ after, maxCount: FEED_PAGE }, (event) => this.#confirmations.see(event)),
      (events) => {
        for (const { stream, revision } of events) this.#revisions.set(stream, revision)
      },
    )
    // the subscription shows all events, among which appends are confirmed
    this.feed.want()
    this.#confirmations.onOverdue = () => this.#overdue()
  }

  /** Begins to follow. @returns when the first subscription stands or has failed. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
    this.#closing.addEventListener('abort', () => {
      clearInterval(this.#timer)
      clearTimeout(this.#late)
      this.#following?.end()
      this.feed.close()
    })
    await new Promise<void>((resolve) => void this.#run(resolve))
  }

  /**
   * Revision of a stream's last event, as of a moment after the call. A stream that was once looked at, or seen in the
   * feed, is asked for no more: since then everything that was appended to it has come by.
   */
  async revision(stream: string): Promise<number> {
    const hasReached = await this.#reached.ask(undefined)
    const seen = hasReached ? this.#revisions.get(stream) : undefined
    if (seen !== undefined) return seen
    const [last] = await this.#reader.stream(stream, { from: 'end', maxCount: 1, backwards: true })
    const revision = last?.revision ?? -1
    // the feed may have seen more meanwhile
    if (revision > (this.#revisions.get(stream) ?? -1)) this.#revisions.set(stream, revision)
    return revision
  }

  async #run(started: () => void): Promise<void> {
    for (let attempt = 0; !this.#closing.aborted; ) {
      try {
        this.#busy = false
        const following = await follow(
          this.#connection,
          { after: this.feed.to },
          {
            event: (recorded) => {
              attempt = 0
              if (this.#arrived.length === 0) setTimeout(() => this.#publish(), GATHER_MS)
              this.#arrived.push(this.#confirmations.see(recorded))
            },
          },
        )
        this.#following = following
        if (this.#closing.aborted || this.#busy) following.end()
        started()
        await following.ended
        this.#publish()
        if (this.#busy) {
          await this.#readWhileBusy()
          continue
        }
      } catch (error) {
        started()
        if (this.#closing.aborted) return
        this.#publish()
        if (attempt === 0)
          this.#log.warn({ reason: oneLine(error) }, 'following the event log failed, trying again')
      }
      await retryPause(attempt, this.#closing)
      attempt += 1
    }
  }

  /** An append was answered and not seen: soon it will be, unless the subscription does not keep up. */
  #overdue(): void {
    if (this.#busy) {
      if (this.#isWorthReading()) this.#wake()
    } else if (this.#confirmations.overdue >= BUSY) this.#stopFollowing()
    else this.#late ??= setTimeout(() => this.#stopFollowing(), LATE_MS)
  }

  #stopFollowing(): void {
    clearTimeout(this.#late)
    this.#late = undefined
    if (this.#busy || this.#confirmations.overdue === 0) return
    this.#busy = true
    this.#following?.end()
  }

  /** Reads page by page what was appended, until there is little of it. */
  async #readWhileBusy(): Promise<void> {
    let busyAt = performance.now()
    while (!this.#closing.aborted && performance.now() - busyAt < CALM_MS) {
      const { overdue } = this.#confirmations
      const events = await this.#reader.next(this.feed.to, FEED_PAGE)
      this.#arrived = events.map((event) => this.#confirmations.see(event))
      this.#publish()
      if (Math.max(overdue, events.length) >= BUSY) busyAt = performance.now()
      if (events.length < FEED_PAGE) await this.#untilWorthReading()
    }
  }

  /** Whether most of what is under way can be in the next page: a page costs the server as much as several events. */
  #isWorthReading(): boolean {
    const { overdue, waiting } = this.#confirmations
    return overdue > 0 && overdue * 4 >= waiting * 3
  }

  #untilWorthReading(): Promise<void> {
    if (this.#isWorthReading()) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, PAGE_PAUSE_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #publish(): void {
    const { to } = this.feed
    // the feed may have read on by itself
    const fresh = this.#arrived.filter((event) => event.position > to)
    this.#arrived = []
    if (fresh.length > 0) this.feed.publish(to, fresh)
  }

  /** Looks whether the log went on without this process hearing of it. */
  async #beat(): Promise<void> {
    if (this.#beating) return
    this.#beating = true
    try {
      const head = await this.#reader.head()
      const { to } = this.feed
      this.#behind = head <= to || to > this.#lastSeen ? 0 : this.#behind + 1
      this.#lastSeen = to
      if (this.#behind < BEATS_BEHIND) return
      this.#behind = 0
      this.#log.warn({ reason: 'it is silent' }, 'following the event log failed, trying again')
      this.feed.announce(head)
      this.#following?.end()
    } catch {
      // the server is away; the subscription tells by itself, or the next beat
    } finally {
      this.#beating = false
    }
  }
}

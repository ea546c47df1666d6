import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import { type Changes, type EventToAppend, LOG_START } from '../../../application/ports/event-log.ts'
import { Gathered } from '../../gathered.ts'
import { LiveFeed } from '../live-feed.ts'
import { RecentlySent } from '../recently-sent.ts'
import { retryPause } from '../retry.ts'
import type { Connection } from './client.ts'
import { failureOf, oneLine } from './client-errors.ts'
import type { LogReader } from './log-reader.ts'
import { storedEvent } from './stored-texts.ts'
import { type Stretch, Subscription } from './subscription.ts'

const FEED_PAGE = 1_000
const BEAT_MS = 2_000
/** How long the feed may take to reach the head before it counts as silent, in milliseconds: less than a look may take. */
const AWAITED_MS = 500

export interface LiveLog {
  warn(fields: { readonly reason: string }, message: string): void
}

/**
 * Follows the log once for all readers at its head in this process, and only the types that they want, into a
 * {@link LiveFeed}. Without readers nothing is followed.
 */
export class Live {
  readonly feed: LiveFeed
  readonly #connection: Connection
  readonly #reader: LogReader
  readonly #sent = new RecentlySent()
  readonly #head = new Gathered(() => this.#reader.head())
  readonly #log: LiveLog
  readonly #closing: AbortSignal
  #subscription: Subscription | undefined
  /** For good. */
  #isAllWanted = false
  /** Nobody waits for the feed until then, as it was silent; on the clock of `performance.now()`. */
  #silentUntil = 0
  /** Everything wanted up to here has come from the subscription. */
  #delivered = LOG_START
  /** Everything wanted before here. */
  #deliveredBefore = LOG_START
  /** An event of the log stands here, or further on. */
  #end: bigint
  #isRunning = false
  /** Where the feed stood at the beat before, when the log was ahead of it. */
  #stoodAt: bigint | undefined
  #isBeating = false

  constructor(
    parts: {
      connection: Connection
      reader: LogReader
      log: LiveLog
      closing: AbortSignal
    },
    head: bigint,
  ) {
    this.#connection = parts.connection
    this.#reader = parts.reader
    this.#log = parts.log
    this.#closing = parts.closing
    this.#end = head
    this.feed = new LiveFeed(head, (after, types) =>
      this.#reader.page({ after, maxCount: FEED_PAGE, ...(types && { types }) }),
    )
    const beats = setInterval(() => {
      if (this.#isBeating) return
      this.#isBeating = true
      void this.#beat().finally(() => {
        this.#isBeating = false
        // a server that was away answers late: two looks in a row tell nothing
        beats.refresh()
      })
    }, BEAT_MS).unref()
    this.#closing.addEventListener('abort', () => {
      clearInterval(beats)
      this.#subscription?.end()
      this.feed.close()
    })
  }

  /** Takes an event that is sent, so that its readers need not have it parsed once more. */
  willShow(eventId: string, event: EventToAppend, metadata: string): void {
    if (this.feed.wants(event.type)) this.#sent.add(eventId, { ...event, metadata })
  }

  /** Has the feed hold these types from its end on, all where none are named. @returns how to end that. */
  want(types: readonly string[] | undefined): () => void {
    const followed = new Set(this.feed.types)
    const isFollowed = this.feed.types === undefined || (types?.every((type) => followed.has(type)) ?? false)
    const release = this.feed.want(types)
    if (!isFollowed || !this.#isRunning) this.#follow()
    return () => {
      release()
      if (this.feed.isResting) this.#subscription?.end()
    }
  }

  /** Learns that an event of the log stands at a position. */
  reaches(position: bigint): void {
    if (position <= this.#end) return
    this.#end = position
    this.#publish()
  }

  /** Which streams have gone on behind a position, see EventLog.changes: from then on everything is followed. */
  async changes(after: bigint): Promise<Changes> {
    if (!this.#isAllWanted) this.want(undefined)
    this.#isAllWanted = true
    const head = await this.#reader.head()
    this.reaches(head)
    if (performance.now() >= this.#silentUntil) {
      await this.feed.beyond(head - 1n, AbortSignal.timeout(technicalDeadline(AWAITED_MS)))
      if (this.feed.to < head) this.#silentUntil = performance.now() + BEAT_MS
    }
    const page = this.feed.after(after, Number.POSITIVE_INFINITY, undefined)
    if (this.feed.to < head || page === 'behind') return { upTo: head, revisions: null }
    const events = page === 'nothing' ? [] : page.events
    return {
      upTo: this.feed.to,
      revisions: new Map(events.map(({ stream, revision }) => [stream, revision])),
    }
  }

  /** Follows what is wanted now, from where the feed ends. */
  #follow(): void {
    // what it told, and has yet to tell, lacks the new types
    this.#delivered = LOG_START
    this.#deliveredBefore = LOG_START
    this.#subscription?.end()
    this.#subscription = undefined
    if (!this.#isRunning) void this.#run()
  }

  /** Follows until no reader is left: one that begins at that very moment must find it ended. */
  async #run(): Promise<void> {
    this.#isRunning = true
    for (let attempt = 0; !this.#closing.aborted && !this.feed.isResting; ) {
      let subscription: Subscription | undefined
      try {
        // as for every read: what a restarted server has not indexed yet is not there
        const isComplete = await this.#reader.complete()
        const from = await this.#reader.beginningFor(this.feed.to)
        if (this.#closing.aborted || this.feed.isResting) break
        // meanwhile the feed may have read on, and more be wanted
        subscription = new Subscription(this.#connection.client, {
          after: this.feed.to,
          from,
          types: this.feed.types,
          near: true,
          stored: (resolved) => storedEvent(resolved, this.#sent.take(resolved.event!.id)),
        })
        this.#subscription = subscription
        for (;;) {
          const stretch = await subscription.next(FEED_PAGE)
          if (!stretch || subscription !== this.#subscription || !isComplete()) break
          attempt = 0
          this.#take(stretch)
        }
      } catch (error) {
        const reason = oneLine(failureOf(this.#connection.target, error))
        if (attempt === 0 && !this.#closing.aborted) {
          this.#log.warn({ reason }, 'following the event log failed, trying again')
        }
        await retryPause(attempt, this.#closing)
        attempt += 1
      } finally {
        subscription?.end()
      }
    }
    this.#isRunning = false
  }

  #take({ events, checkpoint, before }: Stretch): void {
    this.#delivered = checkpoint
    this.#deliveredBefore = before
    const last = events.at(-1)
    if (last && last.position > this.#end) this.#end = last.position
    this.#publish(events)
    if (checkpoint <= this.#end && before <= this.#end) return
    this.#head.ask(undefined).then(
      (head) => this.reaches(head),
      // the server is away: the next beat sees whether the log is ahead
      () => undefined,
    )
  }

  /**
   * The server tells of checkpoints at events of its own too, which are none of the log's: the feed goes no further than
   * the log is known to.
   */
  #publish(events: Stretch['events'] = []): void {
    const { to } = this.feed
    const isAll = this.#delivered >= this.#end || this.#deliveredBefore > this.#end
    const checkpoint = isAll ? this.#end : this.#delivered
    // the feed may have read on by itself
    const fresh = events.filter(({ position }) => position > to)
    if (checkpoint > to) this.feed.publish(to, fresh, checkpoint)
  }

  /** A subscription can be silent while the log goes on, such as at a node that leads no more. */
  async #beat(): Promise<void> {
    if (this.feed.isResting) return
    const head = await this.#reader.head().catch(() => undefined)
    const { to } = this.feed
    if (head === undefined || head <= to || this.feed.isResting) {
      this.#stoodAt = undefined
      return
    }
    if (this.#stoodAt !== to) {
      this.#stoodAt = to
      return
    }
    this.#log.warn({ reason: 'it is silent' }, 'following the event log failed, trying again')
    this.#follow()
    this.feed.announce(head)
  }
}

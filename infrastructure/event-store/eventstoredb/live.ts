import type { EventToAppend } from '../../../application/ports/event-log.ts'
import { LiveFeed } from '../live-feed.ts'
import { type Connection, retryPause } from './client.ts'
import { failureOf, oneLine } from './errors.ts'
import type { LogReader } from './log-reader.ts'
import { RecentlySent } from './stored-texts.ts'
import { Subscription } from './subscription.ts'

const FEED_PAGE = 1_000
const BEAT_MS = 2_000

export interface LiveLog {
  warn(fields: { readonly reason: string }, message: string): void
}

/**
 * Follows the log once for all who are at its head in this process, and only the types that somebody wants, into a
 * {@link LiveFeed}. While nobody wants anything nothing is followed.
 */
export class Live {
  readonly feed: LiveFeed
  readonly #connection: Connection
  readonly #reader: LogReader
  readonly #sent = new RecentlySent()
  readonly #log: LiveLog
  readonly #closing: AbortSignal
  #subscription: Subscription | undefined
  #isRunning = false
  /** Where the feed stood at the beat before, when the log was ahead of it. */
  #stoodAt: bigint | undefined

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
    this.feed = new LiveFeed(head, (after, types) =>
      this.#reader.page({ after, maxCount: FEED_PAGE, ...(types && { types }) }),
    )
    const beat = setInterval(() => void this.#beat(), BEAT_MS).unref()
    this.#closing.addEventListener('abort', () => {
      clearInterval(beat)
      this.#subscription?.end()
      this.feed.close()
    })
  }

  /** Learns of an event that is sent: who follows it need not have it parsed once more. */
  willShow(eventId: string, event: EventToAppend, metadata: string): void {
    if (this.feed.wants(event.type)) this.#sent.add(eventId, event, metadata)
  }

  /** Has the feed hold these types from its end on, all where none are named. @returns how to end that. */
  want(types: readonly string[] | undefined): () => void {
    const followed = new Set(this.feed.types)
    const isFollowed = this.feed.types === undefined || (types?.every((type) => followed.has(type)) ?? false)
    const release = this.feed.want(types)
    if (!isFollowed || !this.#isRunning) this.#follow()
    return () => {
      release()
      if (this.#isResting) this.#subscription?.end()
    }
  }

  get #isResting(): boolean {
    return this.feed.types?.length === 0
  }

  /** Follows what is wanted now, from where the feed ends. */
  #follow(): void {
    // what it has yet to tell lacks the new types
    this.#subscription?.end()
    this.#subscription = undefined
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run().finally(() => {
      this.#isRunning = false
    })
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#closing.aborted && !this.#isResting; ) {
      const subscription = new Subscription(this.#connection.client, {
        ...{ after: this.feed.to, types: this.feed.types, near: true },
        stored: (event) => this.#sent.see(event),
      })
      this.#subscription = subscription
      try {
        for (;;) {
          const stretch = await subscription.next(FEED_PAGE)
          if (!stretch || subscription !== this.#subscription) break
          attempt = 0
          const { to } = this.feed
          // the feed may have read on by itself
          const fresh = stretch.events.filter(({ position }) => position > to)
          if (stretch.checkpoint > to) this.feed.publish(to, fresh, stretch.checkpoint)
        }
      } catch (error) {
        if (this.#closing.aborted) return
        const reason = oneLine(failureOf(this.#connection.target, error))
        if (attempt === 0) this.#log.warn({ reason }, 'following the event log failed, trying again')
        await retryPause(attempt, this.#closing)
        attempt += 1
      } finally {
        subscription.end()
      }
    }
  }

  /** A subscription can be silent while the log goes on, such as at a node that leads no more. */
  async #beat(): Promise<void> {
    if (this.#isResting) return
    const { to } = this.feed
    const head = await this.#reader.head().catch(() => undefined)
    if (head === undefined || head <= to || this.#isResting) {
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

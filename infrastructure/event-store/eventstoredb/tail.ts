import type { StoredEvent } from '../../../application/ports/event-log.ts'
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

export interface TailLog {
  warn(fields: { readonly reason: string }, message: string): void
}

/**
 * Follows the log live, once for the whole process, into a {@link LiveFeed} that all subscribers at the head read
 * from. A subscription that fails or falls silent is replaced by one that goes on where the feed ends.
 */
export class Tail {
  readonly feed: LiveFeed
  readonly #connection: EventStoreConnection
  readonly #reader: LogReader
  readonly #confirmations: Confirmations
  readonly #log: TailLog
  readonly #closing: AbortSignal
  #following: Following | undefined
  #arrived: StoredEvent[] = []
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
    this.feed = new LiveFeed(head, (after) => this.#reader.page({ after, maxCount: FEED_PAGE }))
  }

  /** Begins to follow. @returns when the first subscription stands or has failed. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
    this.#closing.addEventListener('abort', () => {
      clearInterval(this.#timer)
      this.#following?.end()
      this.feed.close()
    })
    await new Promise<void>((resolve) => void this.#run(resolve))
  }

  async #run(started: () => void): Promise<void> {
    for (let attempt = 0; !this.#closing.aborted; attempt += 1) {
      try {
        this.#arrived = []
        this.#following = await follow(
          this.#connection,
          { after: this.feed.to },
          {
            event: (recorded) => {
              attempt = 0
              if (this.#arrived.length === 0) setImmediate(() => this.#publish())
              this.#arrived.push(this.#confirmations.see(recorded))
            },
          },
        )
        if (this.#closing.aborted) this.#following.end()
        started()
        await this.#following.ended
      } catch (error) {
        started()
        if (this.#closing.aborted) return
        this.#publish()
        if (attempt === 0)
          this.#log.warn({ reason: oneLine(error) }, 'following the event log failed, trying again')
      }
      await retryPause(attempt, this.#closing)
    }
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

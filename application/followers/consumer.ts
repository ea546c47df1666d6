import type { EventLog, LogPage, StoredEvent } from '../ports/event-log.ts'
import { PageFeed } from './page-feed.ts'
import { waitingEvents } from './waiting-events.ts'

/** Events of a dead-lettered stream that are replayed before what they came to is stored, at the most. */
const REPLAY_PAGE = 100

/** Where a stream stops, and why. */
export interface Stop {
  readonly at: StoredEvent
  readonly error: unknown
}

/** What events came to. */
export interface Applied {
  /** Whether that has to be committed; without it the checkpoint has time. */
  readonly hasChanges: boolean
  /** Streams that stop; what follows in them was left alone. */
  readonly stops: readonly Stop[]
  /** Events that are to come again once those before them are committed; default none. */
  readonly left?: readonly StoredEvent[]
}

/** A stream that waits from a revision on: at the event where it stopped, or behind one that was applied. */
export interface DeadLettered {
  readonly at: StoredEvent
  readonly from: number
  /** Why it stopped; absent where it only goes on there. */
  readonly error?: unknown
}

/**
 * A move of the checkpoint, with what was applied, streams that are dead-lettered, and dead-lettered streams that are
 * free again.
 */
export interface Commit {
  readonly from: bigint
  readonly to: bigint
  readonly deadLetter: readonly DeadLettered[]
  readonly free: readonly string[]
}

/** What a {@link Consumer} reads, and what it does with it. All times are real milliseconds. */
export interface Consumed {
  readonly log: Pick<EventLog, 'subscribe' | 'readStream'>
  readonly types: ReadonlySet<string>
  /** Events that are applied at a time, at the most. */
  readonly pageSize: number
  /** The checkpoint as stored. */
  readonly from: bigint
  /** Streams that are dead-lettered; nobody but the owner of the checkpoint adds to them or takes from them. */
  readonly deadLettered: Iterable<string>
  /**
   * How often a checkpoint that moved over events without consequences is committed: at multiples of this, so that all
   * consumers of a process do so at the same moments and their stores can do it for all of them at once.
   */
  readonly checkpointMs: () => number
  /** Applies events, those of one stream in order. @throws what may pass. */
  readonly apply: (events: readonly StoredEvent[]) => Promise<Applied>
  /** Commits what was applied, all or nothing. @throws when the checkpoint is not at `from` any more, or has another owner. */
  readonly commit: (commit: Commit) => Promise<void>
  /**
   * Whether so much was applied that it has to be committed. With it, pages are applied while others are committed, and
   * collected until the next one is not there yet; without it, each is committed before the next is applied.
   */
  readonly isFull?: () => boolean
  /** With {@link isFull}: what was applied has time until the next moment for checkpoints. */
  readonly hasTime?: boolean
  /** Hears of streams that stop. */
  readonly stopped?: (stop: Stop) => void
  /** Hears of each page when it was applied, and committed unless it is collected. */
  readonly taken?: (page: LogPage) => void | Promise<void>
  /** Hears how far the consequences of everything are committed. Must not throw. */
  readonly reached?: (position: bigint) => void
  /** Done between pages while streams are dead-lettered, also while no page comes. */
  readonly retry?: { readonly everyMs: number; readonly run: () => Promise<void> }
}

/**
 * Reads the log on from a checkpoint, page by page, and moves the checkpoint as the consequences are committed: by
 * compare-and-set, so that of two consumers only one gets on.
 *
 * An event that cannot be applied dead-letters its stream: later events of the stream wait behind it, everything else
 * goes on.
 * {@link replay} takes it up again.
 */
export class Consumer {
  readonly #consumed: Consumed
  readonly #deadLettered: Set<string>
  #stored: bigint
  /** Where the last write that was begun moves the checkpoint. */
  #storing: bigint
  #seen: bigint
  #reached: bigint
  /** Whether anything applied has consequences that no write has begun to store. */
  #isCollecting = false
  /** Stored with the next move of the checkpoint. */
  #deadLetter: DeadLettered[] = []
  #writing: Promise<void> | null = null
  #storedAt = performance.now()
  #retryAt = performance.now()

  constructor(consumed: Consumed) {
    this.#consumed = consumed
    this.#deadLettered = new Set(consumed.deadLettered)
    this.#stored = consumed.from
    this.#storing = consumed.from
    this.#seen = consumed.from
    this.#reached = consumed.from
  }

  /**
   * Reads on until `ended` aborts, or to exactly a position; what was not stored by then is for {@link storeRest}.
   * @throws what the log and the parts it was given throw.
   */
  async run(ended: AbortSignal, upTo?: bigint): Promise<void> {
    const isThere = () => ended.aborted || (upTo !== undefined && this.#seen >= upTo)
    if (isThere()) return
    const { log, types, pageSize, retry } = this.#consumed
    const subscription = new AbortController()
    const { signal } = subscription
    const feed = new PageFeed(log.subscribe({ after: this.#seen, types: [...types], pageSize, signal }))
    const end = () => {
      subscription.abort()
      feed.close()
    }
    ended.addEventListener('abort', end)
    try {
      while (!isThere()) {
        const page = await feed.take(this.#patienceMs())
        if (page === 'ended' || ended.aborted) break
        if (page !== 'late') await this.#takeIn(upTo === undefined ? page : cut(page, upTo), feed)
        else if (this.#bareCheckpointMs() === 0) await this.#storeOn(feed)
        if ((this.#retryMs() ?? 1) > 0) continue
        await retry!.run()
        this.#retryAt = performance.now() + retry!.everyMs
      }
    } finally {
      ended.removeEventListener('abort', end)
      end()
      await this.#writing?.catch(() => undefined)
    }
  }

  /** Stores what was applied and is not stored yet. */
  async storeRest(): Promise<void> {
    await this.#writing
    if (this.#isCollecting || this.#seen !== this.#stored) await this.#write()
  }

  /**
   * Replays a dead-lettered stream in one pass up to where everything else is; where it goes on is stored with what a
   * part of it came to. Free again, it goes with the checkpoint, so that an owner that was replaced frees no stream
   * that its successor passed over.
   * @param from revision of its first event that waits.
   * @returns where it stops, null once it is free.
   */
  async replay(stream: string, from: number): Promise<Stop | null> {
    const { log, types, apply } = this.#consumed
    const pageSize = Math.min(this.#consumed.pageSize, REPLAY_PAGE)
    for await (const events of waitingEvents(log, stream, { from, upTo: this.#seen, types, pageSize })) {
      const [stop = null] = (await apply(events)).stops
      const at = stop?.at ?? events.at(-1)!
      const next = stop ? at.revision : at.revision + 1
      if (next !== from) {
        this.#deadLetter = [{ at, from: next }]
        await this.#write()
      }
      if (stop) return stop
      from = next
    }
    await this.#write([stream])
    this.#deadLettered.delete(stream)
    return null
  }

  async #takeIn(page: LogPage, feed: PageFeed): Promise<void> {
    const { taken, isFull, hasTime } = this.#consumed
    await this.#apply(page.events)
    this.#seen = page.checkpoint
    if (this.#isCollecting) {
      const mayWait = () => feed.ready || !page.atHead || (hasTime && this.#bareCheckpointMs() !== 0)
      const more = () => isFull && mayWait() && !isFull()
      if (!more()) {
        await this.#writing
        // what came in during the last write goes into this one
        if (!more()) await this.#storeOn(feed)
      }
    } else if (this.#bareCheckpointMs() === 0) await this.#storeOn(feed)
    this.#advance()
    await taken?.(page)
  }

  async #apply(events: readonly StoredEvent[]): Promise<void> {
    const { apply, stopped } = this.#consumed
    const open = events.filter(({ stream }) => !this.#deadLettered.has(stream))
    if (open.length === 0) return
    const { hasChanges, stops, left = [] } = await apply(open)
    if (hasChanges || stops.length > 0) this.#isCollecting = true
    for (const stop of stops) {
      this.#deadLettered.add(stop.at.stream)
      this.#deadLetter.push({ ...stop, from: stop.at.revision })
      stopped?.(stop)
    }
    if (left.length === 0) return
    await this.#writing
    this.#seen = open.at(-left.length - 1)!.position
    await this.#write()
    await this.#apply(left)
  }

  /** Stores what was collected, beside the applying where that is allowed. */
  async #storeOn(feed: PageFeed): Promise<void> {
    await this.#writing
    const writing = this.#write()
    if (this.#consumed.isFull) writing.catch((error) => feed.fail(error))
    else await writing
  }

  #write(free: readonly string[] = []): Promise<void> {
    const to = this.#seen
    const deadLetter = this.#deadLetter
    this.#deadLetter = []
    this.#isCollecting = false
    this.#storing = to
    const writing = this.#consumed.commit({ from: this.#stored, to, deadLetter, free }).then(() => {
      this.#stored = to
      this.#storedAt = performance.now()
      this.#writing = null
      this.#advance()
    })
    // a failed write stays where it is, so that nothing is written after it
    this.#writing = writing
    return writing
  }

  #advance(): void {
    const position = this.#isCollecting || this.#writing ? this.#stored : this.#seen
    if (position <= this.#reached) return
    this.#reached = position
    this.#consumed.reached?.(position)
  }

  /** How long the next page may be waited for. */
  #patienceMs(): number | null {
    const [bare, retry] = [this.#bareCheckpointMs(), this.#retryMs()]
    return bare === null || retry === null ? (bare ?? retry) : Math.min(bare, retry)
  }

  /** How long until a checkpoint without consequences is to be stored; null when it stands there already. */
  #bareCheckpointMs(): number | null {
    if (this.#seen === this.#storing) return null
    const everyMs = this.#consumed.checkpointMs()
    return Math.max(0, (Math.floor(this.#storedAt / everyMs) + 1) * everyMs - performance.now())
  }

  /** How long until dead-lettered streams are to be retried; null while there are none. */
  #retryMs(): number | null {
    return this.#consumed.retry && this.#deadLettered.size > 0 ? this.#retryAt - performance.now() : null
  }
}

/** What of a page is not after a position. */
function cut({ events, checkpoint }: LogPage, upTo: bigint): LogPage {
  return {
    events: events.filter(({ position }) => position <= upTo),
    checkpoint: checkpoint < upTo ? checkpoint : upTo,
    atHead: false,
  }
}

import type { EventLog, LogPage } from '../ports/event-log.ts'
import { PageFeed } from './page-feed.ts'

/** What a {@link Follower} follows, and what it does with it. All times are real milliseconds. */
export interface Followed {
  readonly log: Pick<EventLog, 'subscribe'>
  readonly types: readonly string[]
  /** Events in a page at the most. */
  readonly pageSize: number
  /** The checkpoint as stored. */
  readonly from: bigint
  /** How often a checkpoint that moved over events without consequences is stored. */
  readonly checkpointMs: () => number
  /** Takes a page in. @returns whether it has consequences, which {@link store} is to store. */
  readonly take: (page: LogPage) => Promise<boolean>
  /**
   * Stores the consequences of what was taken in and moves the checkpoint, all or nothing.
   * @throws when the checkpoint is not at `from` any more, or belongs to another owner.
   */
  readonly store: (from: bigint, to: bigint) => Promise<void>
  /**
   * Whether so much was collected that it has to be stored. With it, pages are taken in while others are stored, and
   * collected until the next one is not there yet; without it, each is stored before the next is taken in.
   */
  readonly isFull?: () => boolean
  /** Hears of each page when it was taken in, and stored unless it is collected. */
  readonly taken?: (page: LogPage) => void | Promise<void>
  /** Hears how far the consequences of everything are stored. Must not throw. */
  readonly reached?: (position: bigint) => void
  /** Done between pages, also while none comes. */
  readonly between?: {
    /** How long until it is due; null while it is not wanted. */
    readonly dueMs: () => number | null
    readonly run: () => Promise<void>
  }
}

/**
 * Follows the log from a checkpoint, page by page, and moves the checkpoint as the consequences are stored: by
 * compare-and-set, so that of two followers only one gets on.
 */
export class Follower {
  readonly #followed: Followed
  #stored: bigint
  /** Where the last write that was begun moves the checkpoint. */
  #storing: bigint
  #seen: bigint
  #reached: bigint
  /** Whether anything taken in has consequences that no write has begun to store. */
  #isCollecting = false
  #writing: Promise<void> | null = null
  #storedAt = performance.now()

  constructor(followed: Followed) {
    this.#followed = followed
    this.#stored = followed.from
    this.#storing = followed.from
    this.#seen = followed.from
    this.#reached = followed.from
  }

  /** Everything up to here was taken in. */
  get seen(): bigint {
    return this.#seen
  }

  /**
   * Follows the log until `ended` aborts; what was not stored by then is for {@link storeRest}.
   * @throws what the log and the parts it was given throw.
   */
  async run(ended: AbortSignal): Promise<void> {
    const { log, types, pageSize, between } = this.#followed
    const subscription = new AbortController()
    const { signal } = subscription
    const feed = new PageFeed(log.subscribe({ after: this.#seen, types, pageSize, signal }))
    const end = () => {
      subscription.abort()
      feed.close()
    }
    ended.addEventListener('abort', end)
    try {
      while (!ended.aborted) {
        const page = await feed.take(this.#patienceMs())
        if (page === 'ended' || ended.aborted) break
        if (page !== 'late') await this.#takeIn(page, feed)
        else if (this.#bareCheckpointMs() === 0) await this.#storeOn(feed)
        const due = between?.dueMs() ?? null
        if (due !== null && due <= 0) await between!.run()
      }
    } finally {
      ended.removeEventListener('abort', end)
      end()
      await this.#writing?.catch(() => undefined)
    }
  }

  /** Stores what was taken in. @param upTo so far, in the midst of a page; default all. */
  async store(upTo: bigint = this.#seen): Promise<void> {
    await this.#writing
    this.#seen = upTo
    await this.#write()
  }

  /** Stores what was taken in and is not stored yet. */
  async storeRest(): Promise<void> {
    await this.#writing
    if (this.#isCollecting || this.#seen !== this.#stored) await this.#write()
  }

  async #takeIn(page: LogPage, feed: PageFeed): Promise<void> {
    const { take, taken, isFull } = this.#followed
    if (await take(page)) this.#isCollecting = true
    this.#seen = page.checkpoint
    if (this.#isCollecting) {
      const more = () => isFull && (feed.ready || !page.atHead) && !isFull()
      if (!more()) {
        await this.#writing
        // what came in during the last write goes into this one
        if (!more()) await this.#storeOn(feed)
      }
    } else if (this.#bareCheckpointMs() === 0) await this.#storeOn(feed)
    this.#advance()
    await taken?.(page)
  }

  /** Stores what was collected, beside the taking in where that is allowed. */
  async #storeOn(feed: PageFeed): Promise<void> {
    await this.#writing
    const writing = this.#write()
    if (this.#followed.isFull) writing.catch((error) => feed.fail(error))
    else await writing
  }

  #write(): Promise<void> {
    const to = this.#seen
    this.#isCollecting = false
    this.#storing = to
    const writing = this.#followed.store(this.#stored, to).then(() => {
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
    this.#followed.reached?.(position)
  }

  /** How long the next page may be waited for. */
  #patienceMs(): number | null {
    const [bare, between] = [this.#bareCheckpointMs(), this.#followed.between?.dueMs() ?? null]
    return bare === null || between === null ? (bare ?? between) : Math.min(bare, between)
  }

  /** How long until a checkpoint without consequences is to be stored; null when it stands there already. */
  #bareCheckpointMs(): number | null {
    if (this.#seen === this.#storing) return null
    return Math.max(0, this.#storedAt + this.#followed.checkpointMs() - performance.now())
  }
}

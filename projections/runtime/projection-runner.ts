import type { EventRegistry } from '../../application/event-store.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import { TimeSlice } from '../../application/time-slices.ts'
import { categoryOf, failureOf, safeMessage } from './failures.ts'
import { Fold } from './fold.ts'
import { type Batch, bytesOf, PageFeed } from './page-feed.ts'
import type { Handler, Projection, ProjectionState } from './projection.ts'
import {
  type Failure,
  type FailureCategory,
  type GenerationRef,
  type ParkedStream,
  type ProjectionStore,
  ProjectionStoreError,
} from './projection-store.ts'
import { elapsed, pause } from './real-time.ts'

/** Events asked of the log at once. */
const READ_PAGE = 1000
/** Events folded at the most before the next look at anything else. */
const BATCH_EVENTS = 4000
/** While catching up, changes are collected until one of these is reached: rows that change often are written once. */
const WRITE_ROWS = 5_000
const WRITE_BYTES = 16 * 1024 * 1024
const WRITE_MS = 500
/** A checkpoint that moved over events of other types is stored this often at the most. */
const BARE_CHECKPOINT_MS = { alone: 250, shared: 50 }
const RETRY_MS = { first: 50, most: 5000, fatal: 15_000 }
const REDRIVE_PAGE = 200
/** Transient failures in a row that are not worth telling of. */
const FAILURES_UNTIL_ERROR = 3

/** What a runner tells its owner. */
export interface RunnerEvents {
  /** Everything up to here is applied and visible. */
  reached(position: bigint): void
  /** What was reached is stored: other processes can see it. */
  stored(): void
  /** It stands at the end of the log; told once per start. */
  caughtUp(): void
  /** Its epoch is outdated: somebody else owns the projection now. */
  fenced(): void
  /** A page was written. */
  page(events: number, ms: number): void
}

/** Result of {@link ProjectionRunner.redrive}. */
export interface Redriven {
  readonly streams: number
  readonly events: number
  /** Streams that are parked still, or again. */
  readonly remaining: number
}

/**
 * Keeps one generation of a projection up to date: reads the log from the checkpoint, folds events
 * into rows in memory, and writes rows and checkpoint together. Reading, folding and writing overlap;
 * what arrives during a write goes into the next one.
 *
 * A failure that may pass is retried from the checkpoint. An event that cannot be applied parks its
 * stream: found at once when its handler throws, by halving the pages when the database refuses rows.
 */
export class ProjectionRunner {
  readonly #log: EventLog
  readonly #registry: EventRegistry
  readonly #store: ProjectionStore
  readonly #generation: GenerationRef
  readonly #epoch: number
  readonly #events: RunnerEvents
  readonly #handlers = new Map<string, Handler[]>()
  readonly #types: readonly string[]
  readonly #fold: Fold

  /** The checkpoint as stored. */
  #stored: bigint
  /** Everything up to here was read; beyond `#stored` it is in memory only. */
  #seen: bigint
  #reached: bigint
  #parked = new Map<string, ParkedStream>()
  #newlyParked: ParkedStream[] = []
  /** Positions of events that the database refuses, found by halving. */
  readonly #refused = new Map<bigint, ParkedStream>()
  /** Events folded since the last write was started. */
  #pending = 0
  #lastPending: StoredEvent | null = null
  #pendingBytes = 0
  #pendingSince = 0
  #writing: Promise<void> | null = null
  /** Events in one transaction at the most; below the maximum only while a bad event is searched. */
  #limit = BATCH_EVENTS
  #storedAt = 0
  #storeTimer: NodeJS.Timeout | null = null
  /** Positions per second. */
  #rate: number
  #rateFrom: { at: number; position: bigint }

  #state: ProjectionState
  #failure: Failure | null = null
  #caughtUp = false
  /** Whether this generation ever was at the end of the log: until then it boots. */
  #booted: boolean
  #session: AbortController | null = null
  #running: Promise<void> | null = null

  constructor(options: {
    projection: Projection
    generation: GenerationRef
    position: bigint
    state: ProjectionState
    rate: number
    epoch: number
    log: EventLog
    registry: EventRegistry
    store: ProjectionStore
    events: RunnerEvents
  }) {
    this.#log = options.log
    this.#registry = options.registry
    this.#store = options.store
    this.#generation = options.generation
    this.#epoch = options.epoch
    this.#events = options.events
    for (const handler of options.projection.handlers) {
      const handlers = this.#handlers.get(handler.type) ?? []
      this.#handlers.set(handler.type, [...handlers, handler])
    }
    this.#types = [...this.#handlers.keys()]
    this.#fold = new Fold(options.projection.tables)
    this.#stored = options.position
    this.#seen = options.position
    this.#reached = options.position
    this.#state = options.state
    this.#booted = options.state === 'active' || options.state === 'parked'
    this.#rate = options.rate
    this.#rateFrom = { at: elapsed(), position: options.position }
  }

  get generation(): GenerationRef {
    return this.#generation
  }

  /** Everything up to here is applied. */
  get reached(): bigint {
    return this.#reached
  }

  get caughtUp(): boolean {
    return this.#caughtUp
  }

  get state(): ProjectionState {
    return this.#state
  }

  get failure(): Failure | null {
    return this.#failure
  }

  /** Positions per second, lately. */
  get rate(): number {
    return this.#rate
  }

  get parkedStreams(): number {
    return this.#parked.size
  }

  /** Starts, or goes on after {@link hold}. */
  start(): void {
    if (this.#running) return
    const session = new AbortController()
    this.#session = session
    this.#running = this.#run(session.signal).finally(() => {
      this.#running = null
    })
  }

  /** Finishes what was begun, stores the checkpoint and stands still. @returns the checkpoint. */
  async hold(): Promise<bigint> {
    this.#session?.abort()
    await this.#running
    this.#session = null
    return this.#stored
  }

  /** While held: applies the log up to exactly this position. @throws ProjectionStoreError */
  async runTo(position: bigint, signal?: AbortSignal): Promise<void> {
    await this.#recover()
    while (this.#stored < position && !signal?.aborted) {
      const page = await this.#log.readAll({ after: this.#seen, maxCount: this.#limit, types: this.#types })
      const events = page.events.filter((event) => event.position <= position)
      const checkpoint = page.checkpoint < position ? page.checkpoint : position
      try {
        await this.#apply(events)
        this.#seen = checkpoint
        await this.#write()
      } catch (error) {
        if (!this.#narrowDown(error)) throw error
        await this.#recover()
        continue
      }
      this.#limit = Math.min(BATCH_EVENTS, this.#limit * 2)
      if (page.atHead && page.events.length === 0 && checkpoint < position) await pause(10, signal)
    }
  }

  /**
   * While held: applies the parked streams from the log up to the checkpoint, in order. What cannot
   * be applied yet stays parked. A dry run only counts.
   */
  async redrive(options: { stream?: string; dryRun: boolean }): Promise<Redriven> {
    await this.#recover()
    const wanted = [...this.#parked.values()].filter(
      (parked) => options.stream === undefined || parked.stream === options.stream,
    )
    let events = 0
    for (const parked of wanted.sort((a, b) => (a.position < b.position ? -1 : 1))) {
      events += options.dryRun ? await this.#countHeldBack(parked) : await this.#redriveStream(parked)
    }
    if (!options.dryRun) await this.#settleState()
    return { streams: wanted.length, events, remaining: this.#parked.size }
  }

  // ---- the loop

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      const before = this.#stored
      try {
        await this.#recover()
        await this.#follow(signal)
        return
      } catch (error) {
        if (this.#narrowDown(error)) continue
        const category = categoryOf(error)
        if (category === 'fenced') {
          this.#events.fenced()
          return
        }
        failures = this.#stored > before ? 1 : failures + 1
        if (category === 'fatal' || failures >= FAILURES_UNTIL_ERROR) await this.#fail(error)
        const most = category === 'fatal' ? RETRY_MS.fatal : RETRY_MS.most
        await pause(Math.min(RETRY_MS.first * 2 ** Math.min(failures - 1, 16), most), signal)
      }
    }
  }

  async #follow(stop: AbortSignal): Promise<void> {
    const subscription = new AbortController()
    const end = () => subscription.abort()
    stop.addEventListener('abort', end)
    const feed = new PageFeed(
      this.#log.subscribe({
        after: this.#seen,
        types: this.#types,
        pageSize: READ_PAGE,
        signal: subscription.signal,
      }),
    )
    try {
      while (!stop.aborted) {
        const batch = await feed.take(this.#limit)
        if (!batch) break
        await this.#take(batch, feed)
      }
      await this.#writeNow()
    } finally {
      stop.removeEventListener('abort', end)
      subscription.abort()
      clearTimeout(this.#storeTimer ?? undefined)
      this.#storeTimer = null
      await this.#writing?.catch(() => {})
      this.#writing = null
      await feed.close()
    }
  }

  async #take(batch: Batch, feed: PageFeed): Promise<void> {
    const narrowed = this.#limit < BATCH_EVENTS
    await this.#apply(batch.events)
    this.#seen = batch.checkpoint
    if (narrowed) {
      await this.#writeNow()
      this.#limit = Math.min(BATCH_EVENTS, this.#limit * 2)
    } else if (this.#hasChanges()) {
      const more = () => (feed.ready || !batch.atHead) && !this.#isFull()
      if (!more()) {
        await this.#writing
        // what came in during the last write goes into this one
        if (!more()) this.#writeBeside(feed)
      }
    } else {
      // the log went on without anything for this projection: that counts at once
      if (!this.#writing) this.#advance(this.#seen)
      this.#storeLater(feed)
    }
    if (batch.atHead && !this.#caughtUp) {
      await this.#writeNow()
      this.#caughtUp = true
      this.#booted = true
      await this.#settleState()
      this.#events.caughtUp()
    }
    if (this.#failure) {
      this.#failure = null
      await this.#settleState()
    }
  }

  #hasChanges(): boolean {
    return this.#fold.changedRows > 0 || this.#newlyParked.length > 0
  }

  #isFull(): boolean {
    return (
      this.#fold.changedRows >= WRITE_ROWS ||
      this.#pendingBytes >= WRITE_BYTES ||
      elapsed() - this.#pendingSince >= WRITE_MS
    )
  }

  /** Writes after what is being written, and waits for it; a checkpoint that falls due meanwhile waits, too. */
  async #writeNow(): Promise<void> {
    await this.#writing
    const writing = this.#write()
    this.#writing = writing
    await writing
    if (this.#writing === writing) this.#writing = null
  }

  #writeBeside(feed: PageFeed): void {
    const writing = this.#write()
    this.#writing = writing
    writing.then(
      () => {
        if (this.#writing !== writing) return
        this.#writing = null
        // what went by without anything for this projection since the write was through
        if (!this.#hasChanges()) this.#advance(this.#seen)
      },
      // a failed write stays where it is, so that nothing is written after it
      (error) => feed.fail(error),
    )
  }

  /** Stores a checkpoint that comes without rows, now and then. */
  #storeLater(feed: PageFeed): void {
    if (this.#storeTimer) return
    // other processes know of it only from what is stored
    const every = this.#log.isExclusive ? BARE_CHECKPOINT_MS.alone : BARE_CHECKPOINT_MS.shared
    const wait = Math.max(0, every - (elapsed() - this.#storedAt))
    this.#storeTimer = setTimeout(() => {
      this.#storeTimer = null
      // rows under way or to come take the checkpoint along
      if (this.#seen === this.#stored || this.#hasChanges()) return
      if (this.#writing) this.#storeLater(feed)
      else this.#writeBeside(feed)
    }, wait)
  }

  // ---- folding

  async #apply(events: readonly StoredEvent[]): Promise<void> {
    if (this.#pending === 0) this.#pendingSince = elapsed()
    const slice = new TimeSlice()
    for (let index = 0; index < events.length; index += 1) {
      // one page of large events may change far more rows than one write should hold
      if (index > 0 && this.#fold.changedRows >= WRITE_ROWS) {
        this.#seen = events[index - 1]!.position
        await this.#writeNow()
      }
      const stored = events[index]!
      const handlers = this.#handlers.get(stored.type)
      if (!handlers || (this.#parked.size > 0 && this.#parked.has(stored.stream))) continue
      const refused = this.#refused.size > 0 ? this.#refused.get(stored.position) : undefined
      if (refused) {
        this.#park(refused)
        continue
      }
      try {
        // only pages at the head are shared with other readers
        const event = this.#registry.decode(stored, this.#caughtUp)
        for (const handler of handlers) {
          if (!this.#fold.holds(handler.reads(event))) await this.#load(events, index)
        }
        this.#fold.apply(handlers, event)
        this.#pending += 1
        this.#lastPending = stored
        const turn = slice.over()
        if (turn) await turn
      } catch (error) {
        if (error instanceof ProjectionStoreError) {
          throw error.category === 'data'
            ? new RefusedPage(this.#pending + events.length - index, stored, error)
            : error
        }
        this.#park(parkedBy(stored, 'handler', safeMessage(error), 1))
      }
    }
    this.#pendingBytes += bytesOf(events)
  }

  /** Fetches what the events from `index` on read and memory does not hold, one statement per table. */
  async #load(events: readonly StoredEvent[], index: number): Promise<void> {
    const reads: ReturnType<Handler['reads']>[] = []
    for (let at = index; at < events.length; at += 1) {
      const stored = events[at]!
      if (this.#parked.has(stored.stream)) continue
      for (const handler of this.#handlers.get(stored.type) ?? []) {
        try {
          reads.push(handler.reads(this.#registry.decode(stored)))
        } catch {
          // it fails again when its turn comes, and is dealt with there
        }
      }
    }
    for (const [table, keys] of this.#fold.missing(reads)) {
      this.#fold.learn(table, keys, await this.#store.fetch(this.#generation, table, keys))
    }
  }

  #park(parked: ParkedStream): void {
    this.#parked.set(parked.stream, parked)
    this.#newlyParked.push(parked)
  }

  // ---- writing

  /** Writes what was folded, and the checkpoint. One write at a time. */
  async #write(unpark: readonly string[] = []): Promise<void> {
    if (!this.#hasChanges() && unpark.length === 0 && this.#seen === this.#stored) return
    const startedAt = elapsed()
    const to = this.#seen
    const events = this.#pending
    const lastEvent = this.#lastPending
    const park = this.#newlyParked
    const tables = this.#fold.take()
    this.#pending = 0
    this.#pendingBytes = 0
    this.#pendingSince = startedAt
    this.#newlyParked = []
    this.#measure(to)
    try {
      await this.#store.write(this.#generation, {
        epoch: this.#epoch,
        from: this.#stored,
        to,
        tables,
        park,
        unpark,
        rate: this.#rate,
      })
    } catch (error) {
      throw categoryOf(error) === 'data' && lastEvent && events > 0
        ? new RefusedPage(events, lastEvent, error)
        : error
    }
    this.#stored = to
    this.#storedAt = elapsed()
    this.#fold.written()
    for (const position of this.#refused.keys()) if (position <= to) this.#refused.delete(position)
    this.#advance(this.#hasChanges() ? to : this.#seen)
    this.#events.stored()
    if (events > 0) this.#events.page(events, elapsed() - startedAt)
    if (park.length > 0) await this.#settleState()
  }

  #advance(position: bigint): void {
    if (position <= this.#reached) return
    this.#reached = position
    this.#events.reached(position)
  }

  #measure(position: bigint): void {
    const now = elapsed()
    const ms = now - this.#rateFrom.at
    if (ms < 100) return
    const rate = (Number(position - this.#rateFrom.position) * 1000) / ms
    this.#rate = this.#rate === 0 ? rate : this.#rate * 0.7 + rate * 0.3
    this.#rateFrom = { at: now, position }
  }

  // ---- parked streams

  /** Applies one parked stream. @returns how many of its events were applied. */
  async #redriveStream(parked: ParkedStream): Promise<number> {
    const { stream } = parked
    let applied = 0
    let next: ParkedStream | null = parked
    let alone = false
    this.#parked.delete(stream)
    while (next) {
      const from: ParkedStream = next
      const limit = alone ? 1 : REDRIVE_PAGE
      const page = await this.#heldBack(stream, from.revision, limit + 1)
      let failed: ParkedStream | null
      let count: number
      try {
        failed = await this.#applyHeldBack(page.slice(0, limit), from)
        count = this.#pending
        const rest = page[limit]
        next = failed ?? (rest ? parkedBy(rest, from.category, from.message, from.attempts) : null)
        if (next) this.#newlyParked.push(next)
        await this.#write(next ? [] : [stream])
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        await this.#recover()
        this.#parked.delete(stream)
        next = from
        if (!alone) {
          alone = true
          continue
        }
        next = parkedBy(error.last, 'data', error.message, from.attempts + 1)
        this.#newlyParked.push(next)
        await this.#write()
        this.#parked.set(stream, next)
        return applied
      }
      applied += count
      if (failed) {
        this.#parked.set(stream, failed)
        return applied
      }
    }
    return applied
  }

  /** Folds events of one stream up to the first that fails. @returns how the stream is parked again, or null. */
  async #applyHeldBack(events: readonly StoredEvent[], before: ParkedStream): Promise<ParkedStream | null> {
    for (let index = 0; index < events.length; index += 1) {
      const stored = events[index]!
      await this.#apply([stored])
      const again = this.#newlyParked.pop()
      if (again) return { ...again, attempts: before.attempts + 1 }
    }
    return null
  }

  async #countHeldBack(parked: ParkedStream): Promise<number> {
    let count = 0
    let revision = parked.revision
    for (;;) {
      const page = await this.#heldBack(parked.stream, revision, REDRIVE_PAGE)
      count += page.length
      if (page.length < REDRIVE_PAGE) return count
      revision = page.at(-1)!.revision + 1
    }
  }

  /** Events of a stream that this projection handles, from a revision up to the checkpoint. */
  async #heldBack(stream: string, revision: number, maxCount: number): Promise<readonly StoredEvent[]> {
    const held: StoredEvent[] = []
    let from = revision
    while (held.length < maxCount) {
      const page = await this.#log.readStream(stream, { from, maxCount: REDRIVE_PAGE })
      for (const event of page) {
        if (event.position > this.#stored) return held
        if (held.length < maxCount && this.#handlers.has(event.type)) held.push(event)
      }
      if (page.length < REDRIVE_PAGE) return held
      from = page.at(-1)!.revision + 1
    }
    return held
  }

  // ---- state and failures

  /** Starts over from what is stored: after a failed write nobody knows whether it went through. */
  async #recover(): Promise<void> {
    this.#newlyParked = []
    this.#pending = 0
    this.#pendingBytes = 0
    this.#stored = await this.#store.position(this.#generation, this.#epoch)
    this.#fold.forget(this.#stored === LOG_START)
    this.#seen = this.#stored
    this.#advance(this.#stored)
    const parked = await this.#store.parked(this.#generation)
    this.#parked = new Map(parked.map((one) => [one.stream, one]))
  }

  /**
   * The database refused values: halves the pages until one event stands alone, which then parks its
   * stream. @returns false when the failure is of another kind.
   */
  #narrowDown(error: unknown): boolean {
    if (!(error instanceof RefusedPage)) return false
    const { count, last, message } = error
    if (count === 1) this.#refused.set(last.position, parkedBy(last, 'data', message, 1))
    this.#limit = Math.max(1, Math.floor(Math.min(count, this.#limit) / 2))
    return true
  }

  async #settleState(): Promise<void> {
    const state = this.#booted ? (this.#parked.size > 0 ? 'parked' : 'active') : 'booting'
    if (state === this.#state) return
    await this.#store.note(this.#generation, this.#epoch, { state, failure: this.#failure })
    this.#state = state
  }

  /** Shows a failure to operators, as far as the database can be reached. */
  async #fail(error: unknown): Promise<void> {
    this.#failure = failureOf(error)
    this.#state = 'error'
    try {
      await this.#store.note(this.#generation, this.#epoch, { state: 'error', failure: this.#failure })
    } catch {
      // the failure itself is what keeps it from being noted; this process shows it all the same
    }
  }
}

/** The database refused values of one or more events, of which the last is known. */
class RefusedPage extends Error {
  readonly count: number
  readonly last: StoredEvent
  constructor(count: number, last: StoredEvent, cause: unknown) {
    super(safeMessage(cause))
    this.count = count
    this.last = last
  }
}

function parkedBy(
  event: StoredEvent,
  category: FailureCategory,
  message: string,
  attempts: number,
): ParkedStream {
  const { stream, position, revision, type } = event
  return { stream, position, revision, type, category, message, attempts, parkedAt: '' }
}

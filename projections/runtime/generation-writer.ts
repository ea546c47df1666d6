import type { EventRegistry } from '../../application/event-store.ts'
import { bytesOf } from '../../application/following/page-feed.ts'
import { LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import { TimeSlice } from '../../application/time-slices.ts'
import { categoryOf, type FailureCategory, ProjectionStoreError, safeMessage } from './failures.ts'
import { Fold } from './fold.ts'
import type { Handler, Projection } from './projection.ts'
import { elapsed } from './real-time.ts'
import type { GenerationRef, PageStore, ParkedStream } from './store.ts'

/** Changes are collected until one of these is reached: rows that change often are written once. */
const WRITE_ROWS = 5_000
const WRITE_BYTES = 16 * 1024 * 1024
const WRITE_MS = 500

/** The database refused values of one or more events, of which the last is known. */
export class RefusedPage extends Error {
  readonly count: number
  readonly last: StoredEvent
  constructor(count: number, last: StoredEvent, cause: unknown) {
    super(safeMessage(cause))
    this.count = count
    this.last = last
  }
}

/** How a stream is parked behind an event. */
export function parkedBy(
  event: StoredEvent,
  category: FailureCategory,
  message: string,
  attempts: number,
): ParkedStream {
  const { stream, position, revision, type } = event
  return { stream, position, revision, type, category, message, attempts, parkedAt: '' }
}

/**
 * Folds events into rows of one generation, in memory, and writes the rows and the checkpoint together. An event that
 * cannot be applied parks its stream: found at once when its handler throws; where the database refuses rows, the caller
 * finds it by halving the pages.
 */
export class GenerationWriter {
  /** Event types that are handled. */
  readonly types: ReadonlySet<string>
  readonly #generation: GenerationRef
  readonly #epoch: number
  readonly #registry: EventRegistry
  readonly #pages: PageStore
  readonly #handlers = new Map<string, Handler[]>()
  readonly #fold: Fold
  #stored: bigint
  #parked = new Map<string, ParkedStream>()
  #newlyParked: ParkedStream[] = []
  /** Positions of events that the database refuses. */
  readonly #refused = new Map<bigint, ParkedStream>()
  /** Events folded since the last write was started. */
  #pending = 0
  #lastPending: StoredEvent | null = null
  #pendingBytes = 0
  #pendingSince = 0
  #rate: number
  #rateFrom: { at: number; position: bigint }

  constructor(options: {
    projection: Projection
    generation: GenerationRef
    position: bigint
    rate: number
    epoch: number
    registry: EventRegistry
    pages: PageStore
  }) {
    this.#generation = options.generation
    this.#epoch = options.epoch
    this.#registry = options.registry
    this.#pages = options.pages
    for (const handler of options.projection.handlers) {
      const handlers = this.#handlers.get(handler.type) ?? []
      this.#handlers.set(handler.type, [...handlers, handler])
    }
    this.types = new Set(this.#handlers.keys())
    this.#fold = new Fold(options.projection.tables)
    this.#stored = options.position
    this.#rate = options.rate
    this.#rateFrom = { at: elapsed(), position: options.position }
  }

  /** The checkpoint as stored. */
  get stored(): bigint {
    return this.#stored
  }

  /** Positions per second, lately. */
  get rate(): number {
    return this.#rate
  }

  /** Parked streams, those included that are not written yet. */
  get parked(): ReadonlyMap<string, ParkedStream> {
    return this.#parked
  }

  get hasChanges(): boolean {
    return this.#fold.changedRows > 0 || this.#newlyParked.length > 0
  }

  /** Events folded and not yet written. */
  get pending(): number {
    return this.#pending
  }

  /** Whether so much was collected that it should be written. */
  get isFull(): boolean {
    return (
      this.#fold.changedRows >= WRITE_ROWS ||
      this.#pendingBytes >= WRITE_BYTES ||
      elapsed() - this.#pendingSince >= WRITE_MS
    )
  }

  /** Starts over from what is stored: after a failed write nobody knows whether it went through. */
  async recover(): Promise<void> {
    this.#newlyParked = []
    this.#pending = 0
    this.#pendingBytes = 0
    this.#stored = await this.#pages.position(this.#generation, this.#epoch)
    this.#fold.forget(this.#stored === LOG_START)
    const parked = await this.#pages.parked(this.#generation)
    this.#parked = new Map(parked.map((one) => [one.stream, one]))
  }

  /**
   * Folds events in order.
   * @param writeUpTo writes, where one page changes far more rows than one write should hold.
   * @param areShared whether others read the same events at the same time, so that decoding them once serves all.
   * @throws ProjectionStoreError, RefusedPage
   */
  async apply(
    events: readonly StoredEvent[],
    writeUpTo: (position: bigint) => Promise<void>,
    areShared = false,
  ): Promise<void> {
    if (this.#pending === 0) this.#pendingSince = elapsed()
    const slice = new TimeSlice()
    for (let index = 0; index < events.length; index += 1) {
      if (index > 0 && this.#fold.changedRows >= WRITE_ROWS) await writeUpTo(events[index - 1]!.position)
      const stored = events[index]!
      const handlers = this.#handlers.get(stored.type)
      if (!handlers || (this.#parked.size > 0 && this.#parked.has(stored.stream))) continue
      const refused = this.#refused.size > 0 ? this.#refused.get(stored.position) : undefined
      if (refused) {
        this.park(refused)
        continue
      }
      try {
        const event = this.#registry.decode(stored, areShared)
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
        this.park(parkedBy(stored, 'handler', safeMessage(error), 1))
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
      this.#fold.learn(table, keys, await this.#pages.fetch(this.#generation, table, keys))
    }
  }

  /** Sets a stream aside; stored with the next write. */
  park(parked: ParkedStream): void {
    this.#parked.set(parked.stream, parked)
    this.#newlyParked.push(parked)
  }

  /** Lets events of a parked stream be applied; what is stored of it goes with a write that unparks it. */
  free(stream: string): void {
    this.#parked.delete(stream)
    this.#newlyParked = this.#newlyParked.filter((parked) => parked.stream !== stream)
  }

  /** An event that the database refuses, found: it parks its stream when its turn comes. */
  refuse(event: StoredEvent, message: string): void {
    this.#refused.set(event.position, parkedBy(event, 'data', message, 1))
  }

  /**
   * Writes what was folded, and the checkpoint. One write at a time.
   * @returns how many events it was, how long it took in real milliseconds, and whether streams were parked.
   * @throws ProjectionStoreError, RefusedPage
   */
  async write(
    to: bigint,
    unpark: readonly string[] = [],
  ): Promise<{ events: number; ms: number; parked: boolean }> {
    const startedAt = elapsed()
    const events = this.#pending
    const lastEvent = this.#lastPending
    const park = this.#newlyParked
    const tables = this.#fold.take()
    this.#pending = 0
    this.#pendingBytes = 0
    this.#pendingSince = startedAt
    this.#newlyParked = []
    this.#measure(to)
    const page = { epoch: this.#epoch, from: this.#stored, to, tables, park, unpark, rate: this.#rate }
    try {
      await this.#pages.write(this.#generation, page)
    } catch (error) {
      throw categoryOf(error) === 'data' && lastEvent && events > 0
        ? new RefusedPage(events, lastEvent, error)
        : error
    }
    this.#stored = to
    this.#fold.written()
    for (const position of this.#refused.keys()) if (position <= to) this.#refused.delete(position)
    return { events, ms: elapsed() - startedAt, parked: park.length > 0 }
  }

  #measure(position: bigint): void {
    const now = elapsed()
    const ms = now - this.#rateFrom.at
    if (ms < 100) return
    const rate = (Number(position - this.#rateFrom.position) * 1000) / ms
    this.#rate = this.#rate === 0 ? rate : this.#rate * 0.7 + rate * 0.3
    this.#rateFrom = { at: now, position }
  }
}

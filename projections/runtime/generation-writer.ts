import type { EventRegistry } from '../../application/commands/event-registry.ts'
import { TimeSlice } from '../../application/commands/time-slices.ts'
import type { Applied, Commit, DeadLettered, Stop } from '../../application/followers/consumer.ts'
import { describeError } from '../../application/followers/describe-error.ts'
import { LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import { isTraced, tracedPast, traceIdOf } from '../../application/ports/tracing.ts'
import { categoryOf, ProjectionStoreError } from './failures.ts'
import { Fold } from './fold.ts'
import type { Handler, Projection } from './projection.ts'
import type { DeadLetteredStream, GenerationRecord, GenerationRef, PageStore } from './store.ts'

/** Changes are collected until one of these is reached: rows that change often are written once. */
const WRITE_ROWS = 5_000
const WRITE_BYTES = 16 * 1024 * 1024
const WRITE_MS = 500

/** The database refused values of events, of which the last is known; it stops there where it stood alone. */
export class RefusedPage extends Error implements Stop {
  readonly at: StoredEvent
  readonly error: unknown
  constructor(at: StoredEvent, error: unknown) {
    super()
    this.at = at
    this.error = error
  }
}

/** What a generation is written with. */
export interface WriterParts {
  readonly projection: Projection
  /** The generation as it is stored. */
  readonly record: GenerationRecord
  readonly epoch: number
  readonly registry: EventRegistry
  readonly store: { readonly pages: PageStore }
}

/**
 * Folds events into rows of one generation, in memory, and writes the rows and the checkpoint together. An event that
 * cannot be applied stops its stream: found at once when its handler throws; where the database refuses rows, the caller
 * finds it by applying the events one by one.
 */
export class GenerationWriter {
  /** Event types that are handled. */
  readonly types: ReadonlySet<string>
  /** With the tables as the code has them. */
  readonly generation: GenerationRef
  readonly #parts: WriterParts
  readonly #handlers = new Map<string, Handler[]>()
  readonly #fold: Fold
  #stored: bigint
  #deadLettered = new Map<string, DeadLetteredStream>()
  /** Events folded since the last write was started. */
  #pending = 0
  #lastPending: StoredEvent | null = null
  #pendingBytes = 0
  #pendingSince = 0
  /** Of the events folded since, by trace: the first one's `traceparent`. */
  #traces = new Map<string, string>()
  #rate: number
  #rateFrom: { at: number; position: bigint }

  constructor(parts: WriterParts) {
    const { record, projection } = parts
    this.#parts = parts
    this.generation = { ...record, tables: projection.tables }
    for (const handler of projection.handlers) {
      this.#handlers.set(handler.type, [...(this.#handlers.get(handler.type) ?? []), handler])
    }
    this.types = new Set(this.#handlers.keys())
    this.#fold = new Fold(projection.tables)
    this.#stored = record.position
    this.#rate = record.rate
    this.#rateFrom = { at: performance.now(), position: record.position }
  }

  /** The checkpoint as stored. */
  get stored(): bigint {
    return this.#stored
  }

  /** Dead-lettered streams. */
  get deadLettered(): ReadonlyMap<string, DeadLetteredStream> {
    return this.#deadLettered
  }

  /** Whether the tables hold none of the rows that were changed and not written yet. */
  async changesNewRowsOnly(): Promise<boolean> {
    const { generation } = this
    const { store } = this.#parts
    for (const [table, keys] of this.#fold.changedKeys()) {
      if ((await store.pages.fetch(generation, table, keys)).length > 0) return false
    }
    return true
  }

  /** Whether so much was collected that it should be written. */
  get isFull(): boolean {
    return (
      this.#fold.changedRows >= WRITE_ROWS ||
      this.#pendingBytes >= WRITE_BYTES ||
      performance.now() - this.#pendingSince >= WRITE_MS
    )
  }

  /** Starts over from what is stored: after a failed write it is unknown whether it went through. */
  async recover(): Promise<void> {
    this.#pending = 0
    this.#pendingBytes = 0
    this.#traces.clear()
    const { generation } = this
    const { epoch, store } = this.#parts
    this.#stored = await store.pages.position(generation, epoch)
    this.#fold.forget(this.#stored === LOG_START)
    const deadLettered = await store.pages.deadLettered(generation)
    this.#deadLettered = new Map(deadLettered.map((one) => [one.stream, one]))
  }

  /**
   * Folds events in order, and leaves the rest where they change far more rows than one write should hold.
   * @param areShared whether others read the same events at the same time, so that decoding them once serves all.
   * @throws ProjectionStoreError, RefusedPage
   */
  async apply(
    events: readonly StoredEvent[],
    { areShared = false, mostRows = WRITE_ROWS } = {},
  ): Promise<Applied> {
    if (this.#pending === 0) this.#pendingSince = performance.now()
    const stops = new Map<string, Stop>()
    const slice = new TimeSlice()
    let index = 0
    for (; index < events.length; index += 1) {
      if (index > 0 && this.#fold.changedRows >= mostRows) break
      const stored = events[index]!
      const handlers = this.#handlers.get(stored.type)
      if (!handlers || stops.has(stored.stream)) continue
      try {
        const event = this.#parts.registry.decode(stored, areShared)
        for (const handler of handlers) {
          if (!this.#fold.holds(handler.reads(event))) await this.#load(events, index)
        }
        this.#fold.apply(handlers, event)
        this.#pending += 1
        this.#lastPending = stored
        // what is caught up on belongs to no trace any more
        if (areShared && isTraced()) this.#follow(event.metadata.traceparent)
        const turn = slice.over()
        if (turn) await turn
      } catch (error) {
        if (error instanceof ProjectionStoreError) {
          throw error.category === 'data' ? new RefusedPage(stored, error) : error
        }
        stops.set(stored.stream, { at: stored, error })
      }
    }
    const left = events.slice(index)
    this.#pendingBytes += bytesOf(events)
    return { hasChanges: this.#fold.changedRows > 0, stops: [...stops.values()], left }
  }

  /** Fetches what the events from `index` on read and memory does not hold, one statement per table. */
  async #load(events: readonly StoredEvent[], index: number): Promise<void> {
    const reads: ReturnType<Handler['reads']>[] = []
    for (let at = index; at < events.length; at += 1) {
      const stored = events[at]!
      for (const handler of this.#handlers.get(stored.type) ?? []) {
        try {
          reads.push(handler.reads(this.#parts.registry.decode(stored)))
        } catch {
          // it fails again when its turn comes, and is dealt with there
        }
      }
    }
    const { generation } = this
    const { store } = this.#parts
    for (const [table, keys] of this.#fold.missing(reads)) {
      this.#fold.learn(table, keys, await store.pages.fetch(generation, table, keys))
    }
  }

  /**
   * Writes what was folded, and the checkpoint. One write at a time.
   * @returns how many events it was, and how long it took in real milliseconds.
   * @throws ProjectionStoreError, RefusedPage
   */
  async write({ to, deadLetter, free }: Omit<Commit, 'from'>): Promise<{ events: number; ms: number }> {
    const startedAt = performance.now()
    const events = this.#pending
    const since = this.#pendingSince
    const traces = [...this.#traces.values()]
    const lastEvent = this.#lastPending
    const deadLettered = deadLetter.map((one) => this.#deadLetteredStream(one))
    for (const one of deadLettered) this.#deadLettered.set(one.stream, one)
    for (const stream of free) this.#deadLettered.delete(stream)
    const tables = this.#fold.take()
    this.#pending = 0
    this.#pendingBytes = 0
    this.#pendingSince = startedAt
    this.#traces.clear()
    this.#measure(to)
    const { generation } = this
    const { epoch, store } = this.#parts
    const from = this.#stored
    try {
      await store.pages.write(generation, {
        epoch,
        from,
        to,
        tables,
        deadLetter: deadLettered,
        redriven: free,
        rate: this.#rate,
      })
    } catch (error) {
      throw categoryOf(error) === 'data' && lastEvent && events > 0
        ? new RefusedPage(lastEvent, error)
        : error
    }
    this.#stored = to
    this.#fold.written()
    for (const causedBy of traces) this.#traced(causedBy, to, since)
    return { events, ms: performance.now() - startedAt }
  }

  #follow(traceparent: string | undefined): void {
    const trace = traceIdOf(traceparent)
    if (trace !== undefined && !this.#traces.has(trace)) this.#traces.set(trace, traceparent!)
  }

  #traced(causedBy: string, to: bigint, since: number): void {
    const { name } = this.#parts.projection
    const { generation } = this.generation
    const attributes = { projection: name, generation, position: String(to) }
    tracedPast({ name: `projection ${name}`, kind: 'consumer', causedBy, attributes }, since)
  }

  #deadLetteredStream({ at, from, error }: DeadLettered): DeadLetteredStream {
    const { stream, position, revision, type } = at
    const before = this.#deadLettered.get(stream)
    if (error === undefined) return { ...before!, position, revision: from }
    const category = categoryOf(error) === 'data' ? 'data' : 'handler'
    const attempts = (before?.attempts ?? 0) + 1
    return {
      stream,
      position,
      revision,
      type,
      category,
      message: describeError(error),
      attempts,
      deadLetteredAt: '',
    }
  }

  #measure(position: bigint): void {
    const now = performance.now()
    const ms = now - this.#rateFrom.at
    if (ms < 100) return
    const rate = (Number(position - this.#rateFrom.position) * 1000) / ms
    this.#rate = this.#rate === 0 ? rate : this.#rate * 0.7 + rate * 0.3
    this.#rateFrom = { at: now, position }
  }
}

/** Characters of the JSON texts, which is near enough to bytes to bound memory. */
function bytesOf(events: readonly StoredEvent[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0)
}

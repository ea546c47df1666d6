import { backOff } from '../../application/followers/backoff.ts'
import { type Commit, Consumer, type Stop } from '../../application/followers/consumer.ts'
import { describeError } from '../../application/followers/describe-error.ts'
import { waitingEvents } from '../../application/followers/waiting-events.ts'
import type { EventLog, LogPage, StoredEvent } from '../../application/ports/event-log.ts'
import { categoryOf, type Failure, FoldError, failureOf } from './failures.ts'
import { GenerationWriter, RefusedPage, type WriterParts } from './generation-writer.ts'
import type { ProjectionState } from './projection.ts'
import type { GenerationRecord, GenerationRef, ProjectionStore } from './store.ts'

/** Events folded at the most before the next look at anything else. */
const PAGE = 1000
/** A checkpoint that moved over events of other types is stored this often at the most; with rows of what has time, too. */
const BARE_CHECKPOINT_MS = { alone: 250, shared: 50 }
const RETRY = { passing: { firstMs: 50, mostMs: 5_000 }, fatal: { firstMs: 50, mostMs: 15_000 } }
/** Transient failures in a row that are not worth telling of. */
const FAILURES_UNTIL_ERROR = 3
const REBUILD = 'an earlier event of the stream was never applied: rebuild the projection'

/** What a runner tells its owner. */
export interface RunnerEvents {
  /** Everything up to here is applied and visible. */
  reached(position: bigint): void
  /** What was reached is stored, with the rows of so many events: other processes can see it. */
  stored(events: number, ms: number): void
  /** The projection stands at the end of the log; told once per start. */
  caughtUp(): void
  /** Its epoch is outdated: another process owns the projection now. */
  fenced(): void
}

/** What a generation lacks of the log. */
export interface Arrears {
  readonly projection: string
  readonly generation: number
  /** Lease epoch of the owner. */
  readonly epoch: number
  /** Position up to which it is to be applied. */
  readonly upTo: bigint
}

/** Hears how a generation gets on. */
export type Progress = Pick<RunnerEvents, 'reached' | 'stored'>

/**
 * Applies the log to a generation elsewhere, so that this thread has time for others. Resolves when that is done, or stands
 * still since `signal` has aborted; what was stored by then stays in any case.
 * @throws ProjectionStoreError
 */
export type CatchUp = (arrears: Arrears, progress: Progress, signal: AbortSignal) => Promise<void>

/** What a generation is run with. */
export interface RunnerParts extends WriterParts {
  readonly log: Pick<EventLog, 'subscribe' | 'readStream' | 'isExclusive'>
  readonly store: ProjectionStore
  readonly events: RunnerEvents
  /** Done each time before it follows the log, as long as the generation is far behind. */
  readonly elsewhere?: {
    readonly catchUp: CatchUp
    /** Up to where, from its checkpoint on; null when little is left. */
    readonly upTo: (from: bigint) => Promise<bigint | null>
  }
}

/** Result of {@link ProjectionRunner.redrive}. */
export interface Redriven {
  readonly streams: number
  readonly events: number
  /** Streams that are dead-lettered still, or again. */
  readonly remaining: number
}

/**
 * Keeps one generation of a projection up to date: follows the log from the checkpoint. Reading, folding and writing
 * overlap; what arrives during a write goes into the next one. A failure that may pass is retried from the checkpoint.
 */
export class ProjectionRunner {
  readonly #parts: RunnerParts
  readonly #writer: GenerationWriter
  #reached: bigint
  #state: ProjectionState
  #failure: Failure | null = null
  #caughtUp = false
  /** Events that were written. */
  #applied = 0
  /** Whether this generation ever was at the end of the log: until then it boots. */
  #booted: boolean
  #session: AbortController | null = null
  #running: Promise<void> | null = null

  constructor(parts: RunnerParts) {
    this.#parts = parts
    this.#writer = new GenerationWriter(parts)
    this.#reached = parts.record.position
    this.#state = parts.record.state
    this.#booted = this.#state === 'active' || this.#state === 'parked'
  }

  /** As it was stored when this began. */
  get record(): GenerationRecord {
    return this.#parts.record
  }

  get generation(): GenerationRef {
    return this.#writer.generation
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

  get deadLetteredStreams(): number {
    return this.#writer.deadLettered.size
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

  /** Finishes what was begun, stores the checkpoint and stands still. */
  async hold(): Promise<void> {
    this.#session?.abort()
    await this.#running
    this.#session = null
  }

  /** While held: applies the log up to exactly this position. @throws ProjectionStoreError */
  runTo(position: bigint, signal: AbortSignal): Promise<void> {
    return this.#consume(signal, position)
  }

  /**
   * While held: applies the dead-lettered streams from the log up to the checkpoint, in order. What cannot
   * be applied yet stays dead-lettered. A dry run only counts.
   */
  async redrive(options: { stream?: string; dryRun: boolean }): Promise<Redriven> {
    await this.#recover()
    const wanted = [...this.#writer.deadLettered.values()].filter(
      ({ stream }) => options.stream === undefined || stream === options.stream,
    )
    let waiting = 0
    this.#applied = 0
    for (const { stream, revision } of wanted.sort((a, b) => (a.position < b.position ? -1 : 1))) {
      if (!options.dryRun) await this.#replay(stream)
      else for await (const events of this.#waiting(stream, revision)) waiting += events.length
    }
    if (!options.dryRun) await this.#settleState()
    const events = options.dryRun ? waiting : this.#applied
    return { streams: wanted.length, events, remaining: this.deadLetteredStreams }
  }

  // ---- the loop

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      const before = this.#writer.stored
      try {
        await this.#catchUpElsewhere(signal)
        return await this.#consume(signal)
      } catch (error) {
        const category = categoryOf(error)
        if (category === 'fenced') return this.#parts.events.fenced()
        failures = this.#writer.stored > before ? 1 : failures + 1
        if (category === 'fatal' || failures >= FAILURES_UNTIL_ERROR) await this.#fail(error)
        await backOff(failures, category === 'fatal' ? RETRY.fatal : RETRY.passing, signal)
      }
    }
  }

  async #catchUpElsewhere(signal: AbortSignal): Promise<void> {
    const { elsewhere, record, epoch, events } = this.#parts
    if (!elsewhere) return
    const { projection, generation } = record
    const progress: Progress = {
      reached: (position) => this.#advance(position),
      stored: (...page) => {
        events.stored(...page)
        if (!this.#failure) return
        this.#failure = null
        // it is shown late where the database is away; the catching up fails then, too
        this.#settleState().catch(() => undefined)
      },
    }
    while (!signal.aborted) {
      await this.#recover()
      const upTo = await elsewhere.upTo(this.#writer.stored)
      if (upTo === null) return
      await elsewhere.catchUp({ projection, generation, epoch, upTo }, progress, signal)
    }
  }

  /**
   * Reads the log on, to a position or until `signal` aborts. Up to where the database refuses an event it goes one by
   * one, and the event that is refused alone dead-letters its stream.
   */
  async #consume(signal: AbortSignal, upTo?: bigint, pageSize = PAGE): Promise<void> {
    for (;;) {
      try {
        await this.#recover()
        const consumer = this.#consumer(pageSize)
        await consumer.run(signal, upTo)
        return await consumer.storeRest()
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        if (pageSize > 1) await this.#consume(signal, error.at.position, 1)
        else await this.#deadLetter(error, error.at.position)
      }
    }
  }

  #consumer(pageSize: number): Consumer {
    const { log, projection } = this.#parts
    const writer = this.#writer
    const hasTime = projection.readersWait === true
    const consumer: Consumer = new Consumer({
      log,
      types: writer.types,
      pageSize,
      from: writer.stored,
      deadLettered: writer.deadLettered.keys(),
      // other processes know of it only from what is stored
      checkpointMs: () =>
        log.isExclusive && !hasTime ? BARE_CHECKPOINT_MS.alone : BARE_CHECKPOINT_MS.shared,
      // only pages at the head are shared with other readers
      apply: (events) => writer.apply(events, { areShared: this.#caughtUp }),
      commit: (commit) => this.#commit(commit),
      // one by one, each is written before the next is applied
      ...(pageSize > 1 && { isFull: () => writer.isFull, hasTime }),
      taken: (page) => this.#taken(page, consumer),
      reached: (position) => this.#advance(position),
    })
    return consumer
  }

  async #taken({ atHead }: LogPage, consumer: Consumer): Promise<void> {
    const isThere = atHead && !this.#caughtUp
    if (isThere) {
      await consumer.storeRest()
      this.#caughtUp = true
      this.#booted = true
    }
    if (!isThere && !this.#failure) return
    this.#failure = null
    await this.#settleState()
    if (isThere) this.#parts.events.caughtUp()
  }

  async #commit(commit: Omit<Commit, 'from'>): Promise<void> {
    const { events, ms } = await this.#writer.write(commit)
    this.#applied += events
    this.#parts.events.stored(events, ms)
    if (commit.deadLetter.length > 0) await this.#settleState()
  }

  #advance(position: bigint): void {
    if (position <= this.#reached) return
    this.#reached = position
    this.#parts.events.reached(position)
  }

  /** Parks the stream of an event that cannot be applied, with the checkpoint; what is folded goes. */
  async #deadLetter({ at, error }: Stop, to: bigint): Promise<void> {
    await this.#recover()
    await this.#commit({ to, deadLetter: [{ at, from: at.revision, error }], free: [] })
  }

  // ---- dead-lettered streams

  /**
   * Replays a dead-lettered stream, each event in a write of its own, so that one that the database refuses is known.
   */
  async #replay(stream: string): Promise<void> {
    for (;;) {
      let stop: Stop | null = null
      try {
        stop = await this.#consumer(1).replay(stream, this.#writer.deadLettered.get(stream)!.revision)
        if (!stop) return
        stop = await this.#fromStart(stop)
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        // of an event before, which was passed long ago, the stream does not wait anew
        stop = { at: (stop ?? error).at, error: error.error }
      }
      if (stop) return this.#deadLetter(stop, this.#writer.stored)
    }
  }

  /**
   * An event can fail because one before it was never applied. Where the tables hold no row that the stream's earlier
   * events change, the stream is applied from its beginning up to that event, in one write; where they hold some, they may
   * hold too little or too much.
   * @returns null where it was applied, else where the stream stops, and whether only a rebuild mends the tables.
   */
  async #fromStart(stop: Stop): Promise<Stop | null> {
    const { at } = stop
    const writer = this.#writer
    const isTaken = async (events: readonly StoredEvent[]) =>
      (await writer.apply(events, { mostRows: Number.POSITIVE_INFINITY })).stops.length === 0
    let count = 0
    for await (const events of this.#waiting(at.stream, 0, at.position - 1n)) {
      if (!(await isTaken(events))) return stop
      count += events.length
    }
    const isMissing = await writer.changesNewRowsOnly()
    if (count === 0 || !(await isTaken([at]))) return stop
    if (!isMissing) return { at, error: new FoldError(`${describeError(stop.error)}; ${REBUILD}`) }
    await this.#commit({ to: writer.stored, deadLetter: [{ at, from: at.revision + 1 }], free: [] })
    return null
  }

  #waiting(stream: string, from: number, upTo = this.#writer.stored) {
    return waitingEvents(this.#parts.log, stream, { from, upTo, types: this.#writer.types })
  }

  // ---- state and failures

  async #recover(): Promise<void> {
    await this.#writer.recover()
    this.#advance(this.#writer.stored)
  }

  async #settleState(): Promise<void> {
    const state = this.#booted ? (this.#writer.deadLettered.size > 0 ? 'parked' : 'active') : 'booting'
    if (state === this.#state) return
    await this.#note(state)
    this.#state = state
  }

  /** Shows a failure to operators, as far as the database can be reached. */
  async #fail(error: unknown): Promise<void> {
    this.#failure = failureOf(error)
    this.#state = 'error'
    try {
      await this.#note('error')
    } catch {
      // the failure itself is what keeps it from being noted; this process shows it all the same
    }
  }

  #note(state: ProjectionState): Promise<void> {
    const { store, record, epoch } = this.#parts
    return store.generations.note(record, epoch, { state, failure: this.#failure })
  }
}

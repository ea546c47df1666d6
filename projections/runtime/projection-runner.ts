import { setTimeout as delay } from 'node:timers/promises'
import { backOff } from '../../application/followers/backoff.ts'
import { Follower } from '../../application/followers/follower.ts'
import type { EventLog, LogPage } from '../../application/ports/event-log.ts'
import { categoryOf, type Failure, failureOf } from './failures.ts'
import { GenerationWriter, parkedBy, RefusedPage, type WriterParts } from './generation-writer.ts'
import type { ProjectionState } from './projection.ts'
import { countWaiting, redriveStream } from './redrive.ts'
import type { GenerationRef, ProjectionStore } from './store.ts'

/** Events folded at the most before the next look at anything else. */
const PAGE = 1000
/** A checkpoint that moved over events of other types is stored this often at the most. */
const BARE_CHECKPOINT_MS = { alone: 250, shared: 50 }
const RETRY = { passing: { firstMs: 50, mostMs: 5_000 }, fatal: { firstMs: 50, mostMs: 15_000 } }
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

/** What a generation is run with; position, rate and state as they are stored. */
export interface RunnerParts extends WriterParts {
  readonly state: ProjectionState
  readonly log: EventLog
  readonly store: ProjectionStore
  readonly events: RunnerEvents
}

/** Result of {@link ProjectionRunner.redrive}. */
export interface Redriven {
  readonly streams: number
  readonly events: number
  /** Streams that are parked still, or again. */
  readonly remaining: number
}

/**
 * Keeps one generation of a projection up to date: follows the log from the checkpoint. Reading, folding and writing
 * overlap; what arrives during a write goes into the next one. A failure that may pass is retried from the checkpoint.
 */
export class ProjectionRunner {
  readonly #parts: RunnerParts
  readonly #writer: GenerationWriter
  readonly #types: readonly string[]
  #reached: bigint
  #state: ProjectionState
  #failure: Failure | null = null
  #caughtUp = false
  /** Whether this generation ever was at the end of the log: until then it boots. */
  #booted: boolean
  #session: AbortController | null = null
  #running: Promise<void> | null = null

  constructor(parts: RunnerParts) {
    this.#parts = parts
    this.#writer = new GenerationWriter(parts)
    this.#types = [...this.#writer.types]
    this.#reached = parts.position
    this.#state = parts.state
    this.#booted = parts.state === 'active' || parts.state === 'parked'
  }

  get generation(): GenerationRef {
    return this.#parts.generation
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
    return this.#writer.rate
  }

  get parkedStreams(): number {
    return this.#writer.parked.size
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
  runTo(position: bigint, signal?: AbortSignal): Promise<void> {
    return this.#runTo(position, PAGE, signal)
  }

  /** @param atOnce events in one write; where it is one, an event that the database refuses parks its stream. */
  async #runTo(position: bigint, atOnce: number, signal?: AbortSignal): Promise<void> {
    await this.#recover()
    while (this.#writer.stored < position && !signal?.aborted) {
      const after = this.#writer.stored
      const page = await this.#parts.log.readAll({ after, maxCount: atOnce, types: this.#types })
      const events = page.events.filter((event) => event.position <= position)
      const checkpoint = page.checkpoint < position ? page.checkpoint : position
      try {
        await this.#writer.apply(events, (upTo) => this.#write(upTo))
        await this.#write(checkpoint)
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        if (atOnce > 1) await this.#runTo(error.last.position, 1, signal)
        else await this.#park(error)
        continue
      }
      this.#advance(this.#writer.stored)
      if (page.atHead && page.events.length === 0 && checkpoint < position)
        await delay(10, null, { signal }).catch(() => undefined)
    }
  }

  /**
   * While held: applies the parked streams from the log up to the checkpoint, in order. What cannot
   * be applied yet stays parked. A dry run only counts.
   */
  async redrive(options: { stream?: string; dryRun: boolean }): Promise<Redriven> {
    await this.#recover()
    const writer = this.#writer
    const wanted = [...writer.parked.values()].filter(
      (parked) => options.stream === undefined || parked.stream === options.stream,
    )
    const write = (unpark: readonly string[]) => this.#write(writer.stored, unpark)
    const one = options.dryRun ? countWaiting : redriveStream
    let events = 0
    for (const parked of wanted.sort((a, b) => (a.position < b.position ? -1 : 1))) {
      events += await one({ log: this.#parts.log, writer, write }, parked)
    }
    if (!options.dryRun) await this.#settleState()
    return { streams: wanted.length, events, remaining: writer.parked.size }
  }

  // ---- the loop

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0
    /** The database refused an event on the way: up to there it goes one by one. */
    let refused: RefusedPage | null = null
    while (!signal.aborted) {
      const before = this.#writer.stored
      try {
        if (refused) {
          await this.#runTo(refused.last.position, 1, signal)
          refused = null
        }
        await this.#recover()
        await this.#follow(signal)
        return
      } catch (error) {
        if (error instanceof RefusedPage) {
          refused = error
          continue
        }
        const category = categoryOf(error)
        if (category === 'fenced') {
          this.#parts.events.fenced()
          return
        }
        failures = this.#writer.stored > before ? 1 : failures + 1
        if (category === 'fatal' || failures >= FAILURES_UNTIL_ERROR) await this.#fail(error)
        await backOff(failures, category === 'fatal' ? RETRY.fatal : RETRY.passing, signal)
      }
    }
  }

  async #follow(stop: AbortSignal): Promise<void> {
    const writer = this.#writer
    const follower: Follower = new Follower({
      log: this.#parts.log,
      types: this.#types,
      pageSize: PAGE,
      from: writer.stored,
      // other processes know of it only from what is stored
      checkpointMs: () =>
        this.#parts.log.isExclusive ? BARE_CHECKPOINT_MS.alone : BARE_CHECKPOINT_MS.shared,
      take: async ({ events }) => {
        // only pages at the head are shared with other readers
        await writer.apply(events, (upTo) => follower.store(upTo), this.#caughtUp)
        return writer.hasChanges
      },
      store: (_, to) => this.#write(to),
      isFull: () => writer.isFull,
      taken: (page) => this.#taken(page, follower),
      reached: (position) => this.#advance(position),
    })
    await follower.run(stop)
    await follower.storeRest()
  }

  async #taken({ atHead }: LogPage, follower: Follower): Promise<void> {
    const isThere = atHead && !this.#caughtUp
    if (isThere) {
      await follower.storeRest()
      this.#caughtUp = true
      this.#booted = true
    }
    if (!isThere && !this.#failure) return
    this.#failure = null
    await this.#settleState()
    if (isThere) this.#parts.events.caughtUp()
  }

  /** Writes what was folded, and the checkpoint. */
  async #write(to: bigint, unpark: readonly string[] = []): Promise<void> {
    const writer = this.#writer
    if (!writer.hasChanges && unpark.length === 0 && to === writer.stored) return
    const { events, ms, parked } = await writer.write(to, unpark)
    this.#parts.events.stored()
    if (events > 0) this.#parts.events.page(events, ms)
    if (parked) await this.#settleState()
  }

  #advance(position: bigint): void {
    if (position <= this.#reached) return
    this.#reached = position
    this.#parts.events.reached(position)
  }

  // ---- state and failures

  async #recover(): Promise<void> {
    await this.#writer.recover()
    this.#advance(this.#writer.stored)
  }

  /** The database refused an event that stood alone. */
  async #park({ last, message }: RefusedPage): Promise<void> {
    await this.#recover()
    this.#writer.park(parkedBy(last, 'data', message, 1))
    await this.#write(last.position)
  }

  async #settleState(): Promise<void> {
    const state = this.#booted ? (this.#writer.parked.size > 0 ? 'parked' : 'active') : 'booting'
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
    const { store, generation, epoch } = this.#parts
    return store.generations.note(generation, epoch, { state, failure: this.#failure })
  }
}

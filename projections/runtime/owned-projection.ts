import type { EventRegistry } from '../../application/commands/event-registry.ts'
import { describeError } from '../../application/followers/describe-error.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import type { HeldBackRebuild } from '../../domain/operations/read-model-rebuild.ts'
import { categoryOf, ProjectionStoreError } from './failures.ts'
import { Generations } from './generations.ts'
import type { Projection } from './projection.ts'
import { type CatchUp, ProjectionRunner } from './projection-runner.ts'
import type {
  Comparison,
  GenerationRecord,
  ProjectionRequest,
  ProjectionStore,
  RequestOutcome,
} from './store.ts'

/** What happens in the runtime, for metrics. */
export interface ProjectionMetrics {
  /** A page was written: events in it, real milliseconds it took. */
  onPage?(page: { name: string; events: number; ms: number }): void
}

export interface OwnedProjectionParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly store: ProjectionStore
  readonly metrics: ProjectionMetrics
  /** Hears how far the live generation is applied. */
  readonly reached: (position: bigint) => void
  /** Called whenever other processes can see that the live generation has moved on. */
  readonly moved?: () => void
  /** Where a rebuild catches up, default here. */
  readonly catchUp?: CatchUp
  /** Calls a person to a rebuild that does not switch by itself; may hear of one again. */
  readonly heldBack?: (rebuild: HeldBackRebuild) => Promise<void>
}

/** A request cannot be met as things stand; nothing was changed. */
class Refused extends Error {}

/** How long going back may catch up before it goes on by itself in the background. */
const ROLLBACK_WAIT_MS = 10_000
/** Events that are applied as soon as another thread has started. */
const FEW_EVENTS = 20_000

type Result = Readonly<Record<string, unknown>>

/**
 * A projection while this process owns it: runs the live generation, and beside it the one that is being rebuilt.
 * Everything that concerns both (pause, switch, going back, requests of operators) happens one at a time; a failure of it
 * ends the ownership, and everything starts afresh.
 */
export class OwnedProjection {
  readonly #projection: Projection
  readonly #parts: OwnedProjectionParts
  readonly #epoch: number
  readonly #generations: Generations
  readonly #over = new AbortController()
  #failure: unknown = null
  #live: ProjectionRunner | null = null
  #shadow: ProjectionRunner | null = null
  #paused = false
  #tasks: Promise<void> = Promise.resolve()
  readonly #answering = new Set<string>()

  constructor(projection: Projection, parts: OwnedProjectionParts, epoch: number) {
    this.#projection = projection
    this.#parts = parts
    this.#epoch = epoch
    this.#generations = new Generations(projection, parts.store.generations, epoch)
  }

  /** The runners of this process, for what is known in memory before it is stored. */
  runnerOf(generation: number): ProjectionRunner | null {
    const isIt = (runner: ProjectionRunner | null) => runner?.record.generation === generation
    return [this.#live, this.#shadow].find(isIt) ?? null
  }

  /**
   * Runs the projection until `ended` aborts, or another owner or a newer release has taken over.
   * @param begun called when it runs.
   * @throws what it failed by.
   */
  async run(ended: AbortSignal, begun: () => void): Promise<void> {
    const end = () => this.#over.abort()
    ended.addEventListener('abort', end)
    if (ended.aborted) end()
    try {
      await this.#exclusively(() => this.#begin())
      if (!this.#over.signal.aborted) {
        begun()
        await new Promise((resolve) => this.#over.signal.addEventListener('abort', resolve))
      }
    } finally {
      ended.removeEventListener('abort', end)
      end()
      await this.#tasks
      await this.#holdRunners()
    }
    if (this.#failure !== null) throw this.#failure
  }

  /** Carries out requests that were left for this projection. */
  async answer(requests: readonly ProjectionRequest[]): Promise<void> {
    for (const request of requests) {
      if (this.#answering.has(request.id)) continue
      this.#answering.add(request.id)
      await this.#exclusively(async () => {
        const store = this.#parts.store.requests
        // the look that found it may have begun before its answer was stored
        if (await store.outcome(request.id)) return
        await store.answer(request.id, await this.#outcome(request))
      })
      this.#answering.delete(request.id)
    }
  }

  /** What has to run, given what is stored and what the code says. */
  async #begin(): Promise<void> {
    const { version } = this.#projection
    const generations = this.#generations
    await generations.claim()
    // a newer release made it since this process looked
    if (generations.areOfNewerRelease) return this.#over.abort()
    const live = await generations.liveOrNew()
    this.#paused = live.state === 'paused'
    this.#parts.reached(live.position)
    // the same tables are kept up to date by today's handlers, also those of an older version;
    // but not by those that an operator went back from
    if (generations.fits(live) && (live.version === version || live.rolledBackFrom !== version)) {
      this.#live = this.#runnerFor(live)
    } else if (live.version === version) {
      const why = `the tables of version ${version} were changed without raising the version`
      return generations.noteProblem(live, 'error', why)
    } else {
      const why = `no code for version ${live.version} any more: it answers as it stands until version ${version} is built`
      await generations.noteProblem(live, 'detached', why)
    }
    const shadow = await generations.wantedShadow()
    if (shadow) this.#shadow = this.#runnerFor(shadow)
    this.#startRunners()
  }

  #runnerFor(record: GenerationRecord): ProjectionRunner {
    const { log, registry, store, metrics, reached, moved, catchUp } = this.#parts
    const { name } = this.#projection
    const isLive = () => this.#live?.record.generation === record.generation
    const upToWhenFar = async (from: bigint) => {
      // a rebuild that is live waits behind no other
      if (isLive()) return null
      const head = await log.head()
      return (await log.count(from, head)) > FEW_EVENTS ? head : null
    }
    return new ProjectionRunner({
      projection: this.#projection,
      record,
      epoch: this.#epoch,
      log,
      registry,
      store,
      ...(catchUp && record.role === 'shadow' && { elsewhere: { catchUp, upTo: upToWhenFar } }),
      events: {
        reached: (to) => {
          if (isLive()) reached(to)
        },
        stored: (events, ms) => {
          if (isLive()) moved?.()
          if (events > 0) metrics.onPage?.({ name, events, ms })
        },
        caughtUp: () => {
          if (!isLive()) void this.#exclusively(() => this.#finishRebuild())
        },
        fenced: () => this.#over.abort(),
      },
    })
  }

  #startRunners(): void {
    if (this.#paused) return
    this.#live?.start()
    this.#shadow?.start()
  }

  async #holdRunners(): Promise<void> {
    // a rebuild may take its time to stand still: the live generation goes on meanwhile
    await this.#shadow?.hold()
    await this.#live?.hold()
  }

  #exclusively(task: () => Promise<void>): Promise<void> {
    const run = this.#tasks.then(async () => {
      if (!this.#over.signal.aborted) await task()
    })
    this.#tasks = run.catch((error) => {
      if (categoryOf(error) !== 'fenced') this.#failure = error
      this.#over.abort()
    })
    return this.#tasks
  }

  // ---- rebuild

  /** The shadow has caught up: compares it with the live generation, and switches where that was asked for. */
  async #finishRebuild(): Promise<void> {
    const shadow = this.#shadow
    if (!shadow || this.#paused) return
    const comparison = await this.#compare()
    await this.#generations.claim()
    const isAuto = this.#generations.shadow?.autoSwitch ?? false
    const heldBack = isAuto ? this.#whyHeldBack(shadow, comparison) : null
    if (heldBack) await this.#parts.heldBack?.(heldBack)
    await this.#generations.note(shadow.generation, {
      ...(comparison && { comparison }),
      ...(heldBack && { autoSwitch: false }),
    })
    await this.#generations.claim()
    if (isAuto && !heldBack) await this.#switch(shadow)
  }

  /** Why a shadow does not go live without an operator; null when it does. */
  #whyHeldBack(shadow: ProjectionRunner, comparison: Comparison | null): HeldBackRebuild | null {
    const live = this.#live
    const { generation, version } = shadow.record
    const tables = (comparison?.tables ?? []).filter(({ equal }) => !equal).map(({ table }) => table)
    const heldBack = { projection: this.#projection.name, generation, tables }
    if (shadow.deadLetteredStreams > (live?.deadLetteredStreams ?? 0)) {
      return { ...heldBack, reason: 'parked_streams' }
    }
    // going back to an earlier generation means other rows
    const isRebuild = live?.record.version === version && generation > live.record.generation
    return isRebuild && tables.length > 0 ? { ...heldBack, reason: 'rows_differ' } : null
  }

  /** Holds both generations at one position, and lets them go as soon as the database keeps that moment. */
  async #compare(): Promise<Comparison | null> {
    const live = this.#live
    const shadow = this.#shadow
    if (!live || !shadow) return null
    await this.#holdRunners()
    try {
      // no Math.max: positions are bigints
      const position = live.reached > shadow.reached ? live.reached : shadow.reached
      for (const runner of [live, shadow]) await runner.runTo(position, this.#over.signal)
      if (live.reached !== position || shadow.reached !== position) {
        throw new ProjectionStoreError('transient', 'interrupted on the way to a common position')
      }
      // the tables as this code declares them: stored declarations may not say yet what is personal
      const built = { ...shadow.generation, tables: this.#projection.tables }
      return await this.#parts.store.generations.compare(live.generation, built, () => this.#startRunners())
    } finally {
      this.#startRunners()
    }
  }

  /**
   * Makes another generation answer, the shadow or the one that was kept. Readers never see the log go back: it is at
   * least as far by then.
   * @param request is answered by the switch itself: done twice, it would lead back again.
   */
  async #switch(next: ProjectionRunner, request?: ProjectionRequest): Promise<Result> {
    await this.#holdRunners()
    try {
      const live = this.#live
      if (live && next.reached < live.reached) await next.runTo(live.reached, this.#over.signal)
      const { record, reached } = next
      const { generation } = record
      const isRollback = request?.kind === 'rollback'
      const result = { generation, ...(isRollback && { switched: true, position: Number(reached) }) }
      const answered = request && { request, result }
      await this.#generations.switchTo(record, null, answered, this.#over.signal)
      this.#live = next
      this.#shadow = null
      this.#parts.reached(reached)
      await this.#generations.dropRetired(generation)
      return result
    } finally {
      this.#startRunners()
    }
  }

  // ---- requests

  async #outcome(request: ProjectionRequest): Promise<RequestOutcome> {
    try {
      return { ok: true, result: await this.#carryOut(request) }
    } catch (error) {
      if (error instanceof Refused) return { ok: false, kind: 'conflict', message: error.message }
      if (categoryOf(error) === 'fenced') throw error
      return { ok: false, kind: 'failed', message: describeError(error) }
    }
  }

  async #carryOut(request: ProjectionRequest): Promise<Result> {
    const generations = this.#generations
    const live = generations.live!
    switch (request.kind) {
      case 'pause': {
        if (this.#paused) return { state: 'paused' }
        await this.#holdRunners()
        this.#paused = true
        await generations.note(live, { state: 'paused' })
        return { state: 'paused' }
      }
      case 'resume': {
        if (!this.#paused) throw new Refused('The projection is not paused')
        this.#paused = false
        await generations.note(live, { state: 'booting' })
        await generations.claim()
        if (this.#live) this.#live = this.#runnerFor(generations.live!)
        this.#startRunners()
        return { state: 'booting' }
      }
      case 'rebuild': {
        if (generations.shadow) throw new Refused('A rebuild is under way already')
        const shadow = await generations.createShadow(request.arguments.switch !== 'manual')
        this.#shadow = this.#runnerFor(shadow)
        this.#startRunners()
        return { generation: shadow.generation, version: shadow.version }
      }
      case 'cancel': {
        const { shadow } = generations
        if (!shadow) throw new Refused('No rebuild is under way')
        await this.#shadow?.hold()
        this.#shadow = null
        await generations.drop(shadow)
        return { generation: shadow.generation }
      }
      case 'switch': {
        if (!this.#shadow) throw new Refused('No rebuild is under way')
        if (this.#paused) throw new Refused('The projection is paused')
        // what had caught up before this process took over is brought up again on the way
        if (!this.#shadow.caughtUp && this.#shadow.record.comparison === null) {
          throw new Refused('The rebuild has not caught up yet')
        }
        return this.#switch(this.#shadow, request)
      }
      case 'rollback':
        return this.#rollback(live, request)
      case 'redrive':
        return this.#redrive(request)
    }
  }

  /**
   * Goes back to the retired generation. One that the code still runs catches up first; one of
   * another version answers at once, as it stands, until code of that version is there again.
   */
  async #rollback(live: GenerationRecord, request: ProjectionRequest): Promise<Result> {
    const generations = this.#generations
    const over = this.#over.signal
    const { retired } = generations
    if (!retired) throw new Refused('There is no earlier generation to go back to')
    if (generations.shadow) throw new Refused('A rebuild is under way; cancel it first')
    if (this.#paused) throw new Refused('The projection is paused')
    if (retired.version > this.#projection.version) {
      throw new Refused(`Version ${retired.version} is of a newer release than this process`)
    }
    const { generation, position } = retired
    if (!generations.isCurrent(retired)) {
      await this.#holdRunners()
      const result = { generation, switched: true, position: Number(position) }
      await generations.switchTo(retired, live.version, { request, result }, over)
      await generations.noteProblem(retired, 'detached')
      // what runs from here on, if anything, is decided as at a start
      this.#over.abort()
      return result
    }
    // it becomes a shadow only when it takes long: an earlier break leaves everything as it was
    const kept = this.#runnerFor(retired)
    const target = this.#live?.reached ?? live.position
    await kept.runTo(target, AbortSignal.any([over, AbortSignal.timeout(ROLLBACK_WAIT_MS)]))
    if (kept.reached >= target) return this.#switch(kept, request)
    // the next owner takes the request up
    if (over.aborted) throw new ProjectionStoreError('fenced', 'the lease was lost on the way')
    this.#shadow = this.#runnerFor(await generations.becomesShadow(retired))
    this.#shadow.start()
    return { generation, switched: false }
  }

  async #redrive(request: ProjectionRequest): Promise<Result> {
    const { stream, dryRun = false } = request.arguments as { stream?: string; dryRun?: boolean }
    if (!this.#live) throw new Refused('No code keeps this generation up to date')
    const options = { dryRun, ...(stream === undefined ? {} : { stream }) }
    await this.#holdRunners()
    try {
      const result = await this.#live.redrive(options)
      const rebuild = await this.#shadow?.redrive(options)
      return { ...result, dry_run: dryRun, ...(rebuild ? { rebuild } : {}) }
    } finally {
      this.#startRunners()
    }
  }
}

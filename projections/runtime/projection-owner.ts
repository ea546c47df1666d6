import type { EventRegistry } from '../../application/event-store.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import type { Lease, Leases } from '../../application/ports/leases.ts'
import { categoryOf, failureOf, safeMessage } from './failures.ts'
import { Progress } from './progress.ts'
import type { Projection } from './projection.ts'
import { ProjectionRunner } from './projection-runner.ts'
import {
  type Comparison,
  type Failure,
  type GenerationRecord,
  type ProjectionRequest,
  type ProjectionStore,
  ProjectionStoreError,
  type RequestOutcome,
  shapeOf,
} from './projection-store.ts'
import { pause } from './real-time.ts'

/** What happens in the runtime, for metrics. */
export interface ProjectionMetrics {
  /** A page was written: events in it, real milliseconds it took. */
  onPage?(page: { name: string; events: number; ms: number }): void
  /** How far a projection is behind, now and then: events and real seconds. */
  lag?(lag: { name: string; events: number; seconds: number }): void
}

export interface OwnerOptions {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly store: ProjectionStore
  readonly leases: Leases
  readonly metrics: ProjectionMetrics
  /** Called whenever other processes can see that the live generation has moved on. */
  readonly moved?: () => void
  /** Real milliseconds between attempts to get a lease that somebody else holds. */
  readonly retryMs: number
}

/** The lease of a projection. */
export function leaseOf(projection: string): string {
  return `projection:${projection}`
}

/** A request cannot be met as things stand; nothing was changed. */
class Refused extends Error {}

const SWITCH_ATTEMPTS = 20
/** How long going back may catch up before it goes on by itself in the background. */
const ROLLBACK_WAIT_MS = 10_000

/** A request and what it is answered with. */
interface Answered {
  readonly request: ProjectionRequest
  readonly result: Readonly<Record<string, unknown>>
}

interface Running {
  readonly record: GenerationRecord
  readonly runner: ProjectionRunner
}

/**
 * Runs one projection wherever this process holds its lease: the live generation, and beside it the
 * one that is being rebuilt. Everything that concerns both (pause, switch, going back, requests of
 * operators) happens here, one at a time.
 */
export class ProjectionOwner {
  readonly #projection: Projection
  readonly #options: OwnerOptions
  readonly #stopping = new AbortController()
  #lease: Lease | null = null
  #lost = new AbortController()
  #progress: Progress | null = null
  #records: readonly GenerationRecord[] = []
  #live: Running | null = null
  #shadow: Running | null = null
  #paused = false
  #problem: Failure | null = null
  #tasks: Promise<void> = Promise.resolve()
  readonly #answering = new Set<string>()
  #loop: Promise<void> | null = null
  #tried: () => void = () => undefined

  constructor(projection: Projection, options: OwnerOptions) {
    this.#projection = projection
    this.#options = options
  }

  get name(): string {
    return this.#projection.name
  }

  /** The progress of the live generation while this process runs it, else null. */
  get progress(): Progress | null {
    return this.#progress
  }

  get owns(): boolean {
    return this.#lease !== null
  }

  /** Why this process could not run the projection, where that is not about the projector alone. */
  get problem(): Failure | null {
    return this.#problem
  }

  /** The runners of this process, for what is known in memory before it is stored. */
  runnerOf(generation: number): ProjectionRunner | null {
    for (const running of [this.#live, this.#shadow]) {
      if (running?.record.generation === generation) return running.runner
    }
    return null
  }

  /** Begins to run the projection as soon as its lease is free. @returns after the first attempt. */
  start(options: { takeOver: boolean }): Promise<void> {
    const tried = new Promise<void>((resolve) => {
      this.#tried = resolve
    })
    this.#loop ??= this.#run(options.takeOver)
    return tried
  }

  /** Finishes the current page and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#tried()
    await this.#loop
  }

  /** Carries out requests that were left for this projection. */
  async answer(requests: readonly ProjectionRequest[]): Promise<void> {
    for (const request of requests) {
      if (!this.#lease || this.#answering.has(request.id)) continue
      this.#answering.add(request.id)
      await this.#exclusively(async () => {
        const { store } = this.#options
        // the look that found it may have begun before its answer was stored
        if (await store.outcome(request.id)) return
        await store.answer(request.id, await this.#outcome(request))
      })
      this.#answering.delete(request.id)
    }
  }

  // ---- ownership

  async #run(takeOverFirst: boolean): Promise<void> {
    const { leases, retryMs } = this.#options
    const stopping = this.#stopping.signal
    let takeOver = takeOverFirst
    let failures = 0
    while (!stopping.aborted) {
      let lease: Lease | null = null
      try {
        if (this.#isOlderThan(await this.#options.store.generations())) {
          this.#problem = null
        } else {
          lease = await leases.acquire(leaseOf(this.name), { takeOver })
          takeOver = false
          if (lease) await this.#own(lease)
        }
      } catch (error) {
        this.#problem = failureOf(error)
      } finally {
        await this.#disown()
        // without a connection the lease runs out by itself
        await lease?.release().catch(() => undefined)
      }
      this.#tried()
      failures = this.#problem ? failures + 1 : 0
      if (!stopping.aborted) await pause(Math.min(retryMs * 2 ** Math.min(failures, 5), 10_000), stopping)
    }
  }

  async #own(lease: Lease): Promise<void> {
    this.#problem = null
    const lost = new AbortController()
    const end = () => lost.abort()
    lease.lost.addEventListener('abort', end)
    this.#stopping.signal.addEventListener('abort', end)
    try {
      this.#lost = lost
      this.#lease = lease
      await this.#exclusively(() => this.#begin(lease))
      this.#tried()
      if (!lost.signal.aborted && !lease.lost.aborted && !this.#stopping.signal.aborted) {
        await new Promise((resolve) => lost.signal.addEventListener('abort', resolve))
      }
    } finally {
      lease.lost.removeEventListener('abort', end)
      this.#stopping.signal.removeEventListener('abort', end)
    }
  }

  async #disown(): Promise<void> {
    this.#lost.abort()
    this.#lease = null
    await this.#tasks
    await Promise.all([this.#live?.runner.hold(), this.#shadow?.runner.hold()])
    this.#progress?.close()
    this.#progress = null
    this.#live = null
    this.#shadow = null
    this.#records = []
  }

  /** What has to run, given what is stored and what the code says. */
  async #begin(lease: Lease): Promise<void> {
    const { store } = this.#options
    const { name, version, tables } = this.#projection
    this.#records = await store.claim(name, lease.epoch)
    // a newer release made it since this process looked
    if (this.#isOlderThan(this.#records)) {
      this.#lost.abort()
      return
    }
    let live = this.#role('live')
    if (!live) {
      await store.create(
        { projection: name, generation: 1, tables, version, role: 'live', autoSwitch: false },
        lease.epoch,
      )
      await this.#reload(lease)
      live = this.#role('live')!
    }
    this.#paused = live.state === 'paused'
    this.#progress = new Progress(live.position)
    // the same tables are kept up to date by today's handlers, also those of an older version;
    // but not by those that an operator went back from
    if (this.#fits(live) && (live.version === version || live.rolledBackFrom !== version)) {
      this.#live = this.#runnerFor(live)
    } else if (live.version === version) {
      await store.note(live, lease.epoch, {
        state: 'error',
        failure: {
          category: 'fatal',
          message: `the tables of version ${version} were changed without raising the version`,
          position: null,
          type: null,
        },
      })
      return
    } else {
      await store.note(live, lease.epoch, {
        state: 'detached',
        failure: {
          category: 'fatal',
          message: `no code for version ${live.version} any more: it answers as it stands until version ${version} is built`,
          position: null,
          type: null,
        },
      })
    }
    await this.#prepareShadow(lease, live)
    if (!this.#paused) this.#startRunners()
  }

  /** Goes on with a rebuild, or begins one when the code has another version than the live generation. */
  async #prepareShadow(lease: Lease, live: GenerationRecord): Promise<void> {
    const { store } = this.#options
    const { version } = this.#projection
    let shadow = this.#role('shadow')
    if (shadow && !(shadow.version === version && this.#fits(shadow))) {
      await store.drop(shadow, lease.epoch)
      await this.#reload(lease)
      shadow = undefined
    }
    if (!shadow && live.version !== version && live.rolledBackFrom !== version) {
      const retired = this.#role('retired')
      if (retired && retired.version === version && this.#fits(retired)) {
        await store.note(retired, lease.epoch, { role: 'shadow', autoSwitch: true })
      } else {
        await this.#createShadow(lease, true)
      }
      await this.#reload(lease)
      shadow = this.#role('shadow')
    }
    if (shadow) this.#shadow = this.#runnerFor(shadow)
  }

  /**
   * Whether a newer release built, or builds, this projection: its tables are not this code's to write, drop or switch.
   * One that an operator went back from is retired, and does not count.
   */
  #isOlderThan(records: readonly GenerationRecord[]): boolean {
    const { name, version } = this.#projection
    return records.some(
      (record) => record.projection === name && record.role !== 'retired' && record.version > version,
    )
  }

  /** Whether today's code can write the tables of a generation. */
  #fits(record: GenerationRecord): boolean {
    return record.shape === shapeOf(this.#projection.tables)
  }

  #role(role: GenerationRecord['role']): GenerationRecord | undefined {
    return this.#records.find((record) => record.role === role)
  }

  async #reload(lease: Lease): Promise<void> {
    this.#records = await this.#options.store.claim(this.name, lease.epoch)
  }

  async #createShadow(lease: Lease, autoSwitch: boolean): Promise<void> {
    const generation = Math.max(...this.#records.map((record) => record.generation)) + 1
    const { version, tables } = this.#projection
    await this.#options.store.create(
      { projection: this.name, generation, tables, version, role: 'shadow', autoSwitch },
      lease.epoch,
    )
  }

  #runnerFor(record: GenerationRecord): Running {
    const { log, registry, store, metrics, moved } = this.#options
    const isLive = () => this.#live?.record.generation === record.generation
    const runner = new ProjectionRunner({
      projection: this.#projection,
      generation: { projection: this.name, generation: record.generation, tables: this.#projection.tables },
      position: record.position,
      state: record.state,
      rate: record.rate,
      epoch: this.#lease!.epoch,
      log,
      registry,
      store,
      events: {
        reached: (position) => {
          if (isLive()) this.#progress?.advance(position)
        },
        stored: () => {
          if (isLive()) moved?.()
        },
        caughtUp: () => {
          if (!isLive()) void this.#exclusively(() => this.#finishRebuild())
        },
        fenced: () => this.#lost.abort(),
        page: (events, ms) => metrics.onPage?.({ name: this.name, events, ms }),
      },
    })
    return { record, runner }
  }

  #startRunners(): void {
    this.#live?.runner.start()
    this.#shadow?.runner.start()
  }

  async #holdRunners(): Promise<void> {
    await Promise.all([this.#live?.runner.hold(), this.#shadow?.runner.hold()])
  }

  /** Runs one thing at a time; a failure ends the ownership, and everything starts afresh. */
  #exclusively(task: () => Promise<void>): Promise<void> {
    const run = this.#tasks.then(async () => {
      if (this.#lost.signal.aborted) return
      await task()
    })
    this.#tasks = run.catch((error) => {
      if (categoryOf(error) !== 'fenced') this.#problem = failureOf(error)
      this.#lost.abort()
    })
    return this.#tasks
  }

  // ---- rebuild

  /** The shadow has caught up: compares it with the live generation, and switches where that was asked for. */
  async #finishRebuild(): Promise<void> {
    const shadow = this.#shadow
    const lease = this.#lease
    if (!shadow || !lease || this.#paused) return
    const comparison = await this.#compare()
    if (comparison) await this.#options.store.note(shadow.runner.generation, lease.epoch, { comparison })
    await this.#reload(lease)
    const record = this.#role('shadow')
    // a shadow that lost streams on the way is not let loose on readers without anybody having looked
    const worse = shadow.runner.parkedStreams > (this.#live?.runner.parkedStreams ?? 0)
    if (record?.autoSwitch && !worse) await this.#switch(shadow)
  }

  /** Holds both generations at one position, and lets them go as soon as the database keeps that moment. */
  async #compare(): Promise<Comparison | null> {
    const live = this.#live
    const shadow = this.#shadow
    if (!live || !shadow) return null
    await this.#holdRunners()
    try {
      await this.#meet()
      return await this.#options.store.compare(live.runner.generation, shadow.runner.generation, () =>
        this.#startRunners(),
      )
    } finally {
      this.#startRunners()
    }
  }

  /** While held: brings the one that is behind to the position of the other. */
  async #meet(): Promise<void> {
    const live = this.#live!.runner
    const shadow = this.#shadow!.runner
    const [a, b] = [live.reached, shadow.reached]
    // no Math.max: positions are bigints
    const position = a > b ? a : b
    await live.runTo(position, this.#lost.signal)
    await shadow.runTo(position, this.#lost.signal)
    if (live.reached !== position || shadow.reached !== position) {
      throw new ProjectionStoreError('transient', 'interrupted on the way to a common position')
    }
  }

  /**
   * Makes another generation answer, the shadow or the one that was kept. Readers never see the log go back: it is at
   * least as far by then.
   * @param request is answered by the switch itself: done twice, it would lead back again.
   */
  async #switch(next: Running, request?: ProjectionRequest): Promise<Readonly<Record<string, unknown>>> {
    const lease = this.#lease!
    const { store } = this.#options
    await this.#holdRunners()
    try {
      const live = this.#live?.runner
      if (live && next.runner.reached < live.reached) {
        await next.runner.runTo(live.reached, this.#lost.signal)
      }
      const { generation } = next.record
      const result =
        request?.kind === 'rollback'
          ? { generation, switched: true, position: Number(next.runner.reached) }
          : { generation }
      await this.#switchViews(this.#role('live')!, next.record, null, request && { request, result })
      const surplus = this.#records.filter(
        (record) => record.role === 'retired' && record.generation !== generation,
      )
      this.#live = next
      this.#shadow = null
      this.#progress?.advance(next.runner.reached)
      for (const record of surplus) {
        // readers with an old snapshot may hold its tables for a while: then it goes with the next switch
        await store.drop(record, lease.epoch).catch((error) => {
          if (categoryOf(error) === 'fenced') throw error
        })
      }
      await this.#reload(lease)
      return result
    } finally {
      if (!this.#paused) this.#startRunners()
    }
  }

  async #switchViews(
    from: GenerationRecord,
    to: GenerationRecord,
    rolledBackFrom: number | null,
    answered: Answered | undefined,
  ): Promise<void> {
    const answer = answered && {
      id: answered.request.id,
      outcome: { ok: true, result: answered.result } as const,
    }
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#options.store.switchTo(from, to, this.#lease!.epoch, { rolledBackFrom, answer })
        return
      } catch (error) {
        if (categoryOf(error) !== 'transient' || attempt >= SWITCH_ATTEMPTS) throw error
        await pause(50 * attempt, this.#lost.signal)
      }
    }
  }

  // ---- requests

  async #outcome(request: ProjectionRequest): Promise<RequestOutcome> {
    try {
      return { ok: true, result: await this.#carryOut(request) }
    } catch (error) {
      if (error instanceof Refused) return { ok: false, kind: 'conflict', message: error.message }
      if (categoryOf(error) === 'fenced') throw error
      return { ok: false, kind: 'failed', message: safeMessage(error) }
    }
  }

  async #carryOut(request: ProjectionRequest): Promise<Readonly<Record<string, unknown>>> {
    const { store } = this.#options
    const lease = this.#lease!
    const live = this.#role('live')!
    switch (request.kind) {
      case 'pause': {
        if (this.#paused) return { state: 'paused' }
        await this.#holdRunners()
        this.#paused = true
        await store.note(live, lease.epoch, { state: 'paused' })
        return { state: 'paused' }
      }
      case 'resume': {
        if (!this.#paused) throw new Refused('The projection is not paused')
        this.#paused = false
        await store.note(live, lease.epoch, { state: 'booting' })
        await this.#reload(lease)
        if (this.#live) this.#live = this.#runnerFor(this.#role('live')!)
        this.#startRunners()
        return { state: 'booting' }
      }
      case 'rebuild': {
        if (this.#role('shadow')) throw new Refused('A rebuild is under way already')
        await this.#createShadow(lease, request.arguments.switch !== 'manual')
        await this.#reload(lease)
        const shadow = this.#role('shadow')!
        this.#shadow = this.#runnerFor(shadow)
        if (!this.#paused) this.#startRunners()
        return { generation: shadow.generation, version: shadow.version }
      }
      case 'cancel': {
        const shadow = this.#role('shadow')
        if (!shadow) throw new Refused('No rebuild is under way')
        await this.#shadow?.runner.hold()
        this.#shadow = null
        await store.drop(shadow, lease.epoch)
        await this.#reload(lease)
        return { generation: shadow.generation }
      }
      case 'switch': {
        if (!this.#shadow) throw new Refused('No rebuild is under way')
        if (this.#paused) throw new Refused('The projection is paused')
        // what had caught up before this process took over is brought up again on the way
        if (!this.#shadow.runner.caughtUp && this.#shadow.record.comparison === null) {
          throw new Refused('The rebuild has not caught up yet')
        }
        return this.#switch(this.#shadow, request)
      }
      case 'rollback':
        return this.#rollback(lease, request)
      case 'redrive':
        return this.#redrive(request)
    }
  }

  /**
   * Goes back to the retired generation. One that the code still runs catches up first; one of
   * another version answers at once, as it stands, until code of that version is there again.
   */
  async #rollback(lease: Lease, request: ProjectionRequest): Promise<Readonly<Record<string, unknown>>> {
    const { store } = this.#options
    const retired = this.#role('retired')
    if (!retired) throw new Refused('There is no earlier generation to go back to')
    if (this.#role('shadow')) throw new Refused('A rebuild is under way; cancel it first')
    if (this.#paused) throw new Refused('The projection is paused')
    if (retired.version > this.#projection.version) {
      throw new Refused(`Version ${retired.version} is of a newer release than this process`)
    }
    const live = this.#role('live')!
    if (retired.version !== this.#projection.version || !this.#fits(retired)) {
      await this.#holdRunners()
      const { generation } = retired
      const result = { generation, switched: true, position: Number(retired.position) }
      await this.#switchViews(live, retired, live.version, { request, result })
      await store.note(retired, lease.epoch, { state: 'detached' })
      // what runs from here on, if anything, is decided as at a start
      this.#lost.abort()
      return result
    }
    // it becomes a shadow only when it takes long: who breaks off before that leaves everything as it was
    const kept = this.#runnerFor(retired)
    const wait = AbortSignal.any([this.#lost.signal, AbortSignal.timeout(ROLLBACK_WAIT_MS)])
    const target = this.#live?.runner.reached ?? live.position
    await kept.runner.runTo(target, wait)
    if (kept.runner.reached >= target) return this.#switch(kept, request)
    // the next owner takes the request up
    if (this.#lost.signal.aborted) throw new ProjectionStoreError('fenced', 'the lease was lost on the way')
    await store.note(retired, lease.epoch, { role: 'shadow', autoSwitch: true })
    await this.#reload(lease)
    this.#shadow = this.#runnerFor(this.#role('shadow')!)
    this.#shadow.runner.start()
    return { generation: retired.generation, switched: false }
  }

  async #redrive(request: ProjectionRequest): Promise<Readonly<Record<string, unknown>>> {
    const { stream, dryRun } = request.arguments as { stream?: string; dryRun?: boolean }
    if (!this.#live) throw new Refused('No code keeps this generation up to date')
    const options = { dryRun: dryRun ?? false, ...(stream === undefined ? {} : { stream }) }
    await this.#holdRunners()
    try {
      const result = await this.#live.runner.redrive(options)
      const shadow = await this.#shadow?.runner.redrive(options)
      return { ...result, dry_run: options.dryRun, ...(shadow ? { rebuild: shadow } : {}) }
    } finally {
      if (!this.#paused) this.#startRunners()
    }
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { EventRegistry } from '../../application/commands/event-registry.ts'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import type { Clock } from '../../application/ports/clock.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import type { Leases } from '../../application/ports/leases.ts'
import type { Notices } from '../../application/ports/notices.ts'
import type { ReadModels } from '../../application/ports/read-models.ts'
import type { Aggregate } from '../../domain/kernel/decider.ts'
import { LogLag } from './log-lag.ts'
import type { OwnedProjectionParts, ProjectionMetrics } from './owned-projection.ts'
import type { Projection } from './projection.ts'
import { leaseOf, ProjectionOwner } from './projection-owner.ts'
import { type ProjectionStatus, type ShownDeadLetteredStream, statusOf } from './projection-status.ts'
import { ReachedPositions } from './reached-positions.ts'
import type { GenerationRecord, ProjectionStore, RequestKind } from './store.ts'

const REACH_TIMEOUT_MS = 5000
const REQUEST_TIMEOUT_MS = 15_000
/** How often requests from other processes are looked for. */
const REQUEST_POLL_MS = 500
const POLL_MS = { first: 4, most: 100 }

/** An operator asked for something that is not possible. */
export class ProjectionError extends Error {
  readonly kind: 'not_found' | 'conflict' | 'unavailable'
  constructor(kind: 'not_found' | 'conflict' | 'unavailable', message: string) {
    super(message)
    this.name = 'ProjectionError'
    this.kind = kind
  }
}

interface ProjectionsOptions {
  /** Every projection the code has. */
  readonly projections: readonly Projection[]
  /** What the projections follow; it may be waited for. */
  readonly log: EventLog
  /** The store for reads that a caller waits for, default the same. */
  readonly askedLog?: EventLog
  readonly registry: EventRegistry
  readonly store: ProjectionStore
  readonly leases: Leases
  readonly clock: Clock
  readonly metrics?: ProjectionMetrics
  /** What tells other processes that a projection moved on, and wakes requests that wait here. */
  readonly notices?: Notices
  readonly heldBack?: OwnedProjectionParts['heldBack']
  readonly catchUp?: OwnedProjectionParts['catchUp']
  /** Real milliseconds between attempts to take over from another process, default 500. */
  readonly retryMs?: number
}

/**
 * All projections, as the rest of the service sees them: waiting for them, and operating them. In a
 * process with the role for it, {@link start} runs them here; every other method works in any process.
 */
export class Projections implements ReadModels {
  readonly #options: ProjectionsOptions
  readonly #projections: ReadonlyMap<string, Projection>
  readonly #askedLog: EventLog
  readonly #lag: LogLag
  readonly #reached: ReachedPositions
  readonly #owners = new Map<string, ProjectionOwner>()
  /** Projections that handle events of an aggregate. */
  readonly #awaited = new Map<object, readonly string[]>()
  #requestTimer: NodeJS.Timeout | null = null
  #looking: Promise<void> | null = null

  /** @throws Error when two projections share a name or a table, or handle a type the registry does not know. */
  constructor(options: ProjectionsOptions) {
    this.#options = options
    this.#projections = checked(options.projections, options.registry)
    this.#askedLog = options.askedLog ?? options.log
    this.#lag = new LogLag(this.#askedLog, options.clock)
    this.#reached = new ReachedPositions(options.store.generations, options.notices ?? null)
  }

  /** Names of the projections in the code. */
  get names(): readonly string[] {
    return [...this.#projections.keys()]
  }

  /**
   * Runs the projections here, each as soon as its lease is free.
   * @returns when each was tried once.
   */
  async start(): Promise<void> {
    if (this.#owners.size > 0) return
    const {
      log,
      registry,
      store,
      leases,
      metrics = {},
      notices,
      heldBack,
      catchUp,
      retryMs = 500,
    } = this.#options
    for (const [name, projection] of this.#projections) {
      const owner = new ProjectionOwner(projection, {
        log,
        registry,
        store,
        leases,
        metrics,
        retryMs,
        reached: (position) => this.#reached.reached(name, position),
        released: () => this.#reached.released(name),
        moved: () => notices?.wake('position'),
        ...(heldBack && { heldBack }),
        ...(catchUp && { catchUp }),
      })
      this.#owners.set(name, owner)
    }
    this.#requestTimer = setInterval(() => void this.#lookForRequests(), REQUEST_POLL_MS)
    await Promise.all([...this.#owners.values()].map((owner) => owner.start()))
  }

  /** Finishes the pages under way and gives the leases back. */
  async stop(): Promise<void> {
    clearInterval(this.#requestTimer ?? undefined)
    await Promise.all([...this.#owners.values()].map((owner) => owner.stop()))
    await this.#looking
    this.#owners.clear()
  }

  // ---- read your writes

  async reached(
    projections: readonly string[],
    position: bigint,
    options: { timeoutMs?: number } = {},
  ): Promise<boolean> {
    const timeoutMs = options.timeoutMs ?? technicalDeadline(REACH_TIMEOUT_MS)
    const waits: Promise<boolean>[] = []
    for (const name of projections) {
      if (!this.#projections.has(name)) throw new ProjectionError('not_found', `No projection ${name}`)
      const here = this.#reached.here(name)
      if (here === undefined || here < position) waits.push(this.#reached.waitFor(name, position, timeoutMs))
    }
    if (waits.length === 0) return true
    return (await Promise.all(waits)).every(Boolean)
  }

  awaitProjections(aggregate: Pick<Aggregate, 'events'>, position: bigint): Promise<boolean> {
    let names = this.#awaited.get(aggregate)
    if (!names) {
      const types = new Set(aggregate.events.map(({ name }) => name))
      names = this.names.filter((name) => {
        const { readersWait, handlers } = this.#projections.get(name)!
        return !readersWait && handlers.some(({ type }) => types.has(type))
      })
      this.#awaited.set(aggregate, names)
    }
    return this.reached(names, position)
  }

  // ---- operating

  /** Every projection, those without code included, by name. */
  async list(): Promise<readonly ProjectionStatus[]> {
    const [records, head] = await Promise.all([this.#options.store.generations.all(), this.#askedLog.head()])
    this.#lag.note(head)
    const byName = new Map<string, GenerationRecord[]>(this.names.map((name) => [name, []]))
    for (const record of records) {
      byName.set(record.projection, [...(byName.get(record.projection) ?? []), record])
    }
    const holders = await this.#options.leases.holders([...byName.keys()].map(leaseOf))
    const all = [...byName].map(([name, generations]) =>
      statusOf({
        name,
        codeVersion: this.#projections.get(name)?.version ?? null,
        local: this.#owners.get(name),
        generations,
        head,
        owner: holders.get(leaseOf(name)) ?? null,
        log: this.#askedLog,
        lag: this.#lag,
      }),
    )
    return Promise.all(all)
  }

  /** One projection with its dead-lettered streams. @throws ProjectionError `not_found` */
  async show(
    name: string,
  ): Promise<ProjectionStatus & { readonly parked: readonly ShownDeadLetteredStream[] }> {
    const status = (await this.list()).find((one) => one.name === name)
    if (!status) throw new ProjectionError('not_found', `No projection ${name}`)
    const generations = [status.generation, ...(status.rebuild ? [status.rebuild.generation] : [])]
    const parked = await Promise.all(
      generations.map(async (generation) =>
        (await this.#options.store.pages.deadLettered({ projection: name, generation })).map(
          ({ deadLetteredAt, position, ...one }) => ({
            generation,
            ...one,
            position: Number(position),
            parked_at: deadLetteredAt,
          }),
        ),
      ),
    )
    return { ...status, parked: parked.flat() }
  }

  /** Stands still until {@link resume}, also across restarts; queries go on with what is there. */
  pause(name: string): Promise<unknown> {
    return this.#ask(name, 'pause')
  }

  resume(name: string): Promise<unknown> {
    return this.#ask(name, 'resume')
  }

  /** Begins to build the tables anew beside the live ones; progress is shown by {@link show}. */
  rebuild(name: string, options: { switch?: 'auto' | 'manual' } = {}): Promise<unknown> {
    return this.#ask(name, 'rebuild', { switch: options.switch ?? 'auto' })
  }

  /** Lets the rebuilt tables answer. @throws ProjectionError `conflict` while they have not caught up. */
  switch(name: string): Promise<unknown> {
    return this.#ask(name, 'switch')
  }

  /** Lets the tables answer that did before the last switch. */
  rollback(name: string): Promise<unknown> {
    return this.#ask(name, 'rollback')
  }

  /** Gives a rebuild up. */
  cancel(name: string): Promise<unknown> {
    return this.#ask(name, 'cancel')
  }

  /** Applies dead-lettered streams again, one or all; a dry run only counts. @returns streams, events, remaining. */
  redrive(name: string, options: { stream?: string; dryRun?: boolean } = {}): Promise<unknown> {
    return this.#ask(name, 'redrive', { stream: options.stream, dryRun: options.dryRun ?? false })
  }

  async #ask(
    name: string,
    kind: RequestKind,
    args: Readonly<Record<string, unknown>> = {},
  ): Promise<unknown> {
    if (!this.#projections.has(name)) throw new ProjectionError('not_found', `No projection ${name}`)
    const id = await this.#options.store.requests.ask(name, kind, args)
    const deadline = performance.now() + technicalDeadline(REQUEST_TIMEOUT_MS)
    let wait = POLL_MS.first
    for (;;) {
      // where this process runs the projection, the request is carried out right now
      await this.#lookForRequests()
      const outcome = await this.#options.store.requests.outcome(id)
      if (outcome?.ok) return outcome.result
      if (outcome) {
        throw new ProjectionError(outcome.kind === 'conflict' ? 'conflict' : 'unavailable', outcome.message)
      }
      if (performance.now() >= deadline) break
      await delay(wait)
      wait = Math.min(wait * 2, POLL_MS.most)
    }
    await this.#options.store.requests.answer(id, {
      ok: false,
      kind: 'expired',
      message: 'nobody took the request up in time',
    })
    const late = await this.#options.store.requests.outcome(id)
    if (late?.ok) return late.result
    throw new ProjectionError('unavailable', `No process runs the projection ${name} at present`)
  }

  /** Hands requests to the projections run here; one look at a time. */
  #lookForRequests(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    const owned = [...this.#owners.values()].filter((owner) => owner.owns)
    if (owned.length === 0) return
    try {
      const requests = await this.#options.store.requests.open(owned.map((owner) => owner.name))
      // a request that takes long must not hold up those of other projections
      for (const owner of owned) {
        void owner.answer(requests.filter((request) => request.projection === owner.name))
      }
    } catch {
      // the database is away; the requests wait
    }
  }
}

function checked(
  projections: readonly Projection[],
  registry: EventRegistry,
): ReadonlyMap<string, Projection> {
  const byName = new Map<string, Projection>()
  const tables = new Set<string>()
  for (const projection of projections) {
    if (!/^[a-z][a-z0-9-]*$/.test(projection.name)) throw new Error(`Projection name ${projection.name}`)
    if (byName.has(projection.name)) throw new Error(`Duplicate projection ${projection.name}`)
    byName.set(projection.name, projection)
    for (const table of projection.tables) {
      if (tables.has(table.name)) throw new Error(`Duplicate read model table ${table.name}`)
      tables.add(table.name)
    }
    for (const handler of projection.handlers) {
      if (!registry.knows(handler.type)) {
        throw new Error(`Projection ${projection.name} handles the unknown event type ${handler.type}`)
      }
    }
  }
  return byName
}

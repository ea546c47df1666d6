import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { EventRegistry } from '../commands/event-registry.ts'
import { type EventLog, LOG_START } from '../ports/event-log.ts'
import type { Backoff } from './backoff.ts'
import { describeError } from './describe-error.ts'
import { type FollowerStatus, OwnedFollower, statusOfFollowers } from './owned-follower.ts'
import type { ProcessManager } from './process-manager.ts'
import { reactionsOf } from './reactions.ts'
import { DEAD_LETTERED_STREAM, type FailedWork, type KindOfWork, type WorkKey } from './work-store.ts'
import { Workers, type WorkersParts, type WorkersReport } from './workers.ts'

export interface RunnerParts extends Omit<WorkersParts, 'report'> {
  readonly log: EventLog
  readonly registry: EventRegistry
  /** Hears of what goes wrong; fields hold no personal data. */
  readonly report: WorkersReport &
    ((
      what: 'reaction_parked' | 'process_manager_restarted',
      fields: Readonly<Record<string, string | number>>,
    ) => void)
}

/** All times are real milliseconds. */
export interface RunnerOptions {
  /** How often the table of work is polled, default 1000. */
  readonly pollMs?: number
  /** How often checkpoints over events without consequences are stored, default 250. */
  readonly checkpointMs?: number
  /** Pauses after what failed and is retried in real time, default from 250 to 60000. */
  readonly backoff?: Backoff
  /** Events in a page at the most, default 1000; the log ends pages of large events earlier. */
  readonly pageSize?: number
}

const STOP_WAIT_MS = 10_000

/**
 * Runs process managers. Each follows the log in whichever process holds its lease; workers in every process carry out
 * what it wants.
 */
export class ProcessManagerRunner {
  readonly #parts: RunnerParts
  readonly #managers: readonly ProcessManager[]
  readonly #followers: ReadonlyMap<string, OwnedFollower>
  readonly #workers: Workers
  readonly #stopping = new AbortController()
  #following: Promise<unknown> = Promise.resolve()

  constructor(parts: RunnerParts, processManagers: readonly ProcessManager[], options: RunnerOptions = {}) {
    const given = {
      pollMs: 1_000,
      checkpointMs: 250,
      pageSize: 1_000,
      backoff: { firstMs: 250, mostMs: 60_000 },
      ...options,
    }
    this.#parts = parts
    this.#managers = processManagers
    // each of them listens, once: more than the ten that Node takes for a leak
    setMaxListeners(processManagers.length, this.#stopping.signal)
    this.#workers = new Workers(parts, processManagers, given)
    this.#followers = new Map(
      processManagers.map((manager) => [manager.name, this.#followerOf(manager, given)]),
    )
  }

  #followerOf(manager: ProcessManager, options: Required<RunnerOptions>): OwnedFollower {
    const { log, registry, clock, store, leases, notices, report } = this.#parts
    const { pollMs, backoff, checkpointMs, pageSize } = options
    const { name } = manager
    return new OwnedFollower({
      name,
      log,
      leases,
      store,
      ...reactionsOf(manager, registry, clock),
      checkpointMs,
      pageSize: manager.pageSize ?? pageSize,
      pauseMs: pollMs,
      longestPauseMs: Math.max(pollMs, backoff.mostMs),
      advance: (...args) => this.#workers.advance(...args),
      moved: () => notices.wake('progress'),
      deadLettered: ({ at: { stream, revision }, error }) =>
        report('reaction_parked', { process_manager: name, stream, revision, reason: describeError(error) }),
      failed: (reason) => report('process_manager_restarted', { process_manager: name, reason }),
    })
  }

  get names(): readonly string[] {
    return this.#managers.map(({ name }) => name)
  }

  /** Every kind of work that they have, dead-lettered streams included. */
  get kinds(): readonly KindOfWork[] {
    return this.#managers.flatMap(({ name: processManager, work }) =>
      [...Object.keys(work), DEAD_LETTERED_STREAM].map((kind) => ({ processManager, kind })),
    )
  }

  /**
   * Gives process managers that are new to this installation their first checkpoint. Every process of a service does so
   * before it takes requests, so that those which start at their registration miss nothing that follows.
   */
  async register(): Promise<void> {
    const { store, log } = this.#parts
    const known = await store.checkpoints(this.names)
    const late = this.#managers.filter(({ name, startAt }) => startAt === 'registration' && !known.has(name))
    if (late.length === 0) return
    await store.register(
      late.map(({ name }) => name),
      await log.head(),
    )
  }

  /** Starts following the log and working. */
  async start(): Promise<void> {
    await this.register()
    this.#workers.start()
    this.#following = Promise.all(
      [...this.#followers.values()].map((follower) => follower.run(this.#stopping.signal)),
    )
  }

  /** Lets running work come to its next safe point (bounded), stores checkpoints and gives leases back. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort()
    const ended = Promise.all([this.#following, this.#workers.stop()])
    const patience = new AbortController()
    await Promise.race([ended, delay(STOP_WAIT_MS, null, { signal: patience.signal }).catch(() => null)])
    patience.abort()
  }

  /** How far each process manager has got in the log, wherever it runs. */
  async positions(): Promise<ReadonlyMap<string, bigint>> {
    const stored = await this.#parts.store.checkpoints(this.names)
    return new Map(
      [...this.#followers].map(([name, { position }]) => [
        name,
        position ?? stored.get(name)?.position ?? LOG_START,
      ]),
    )
  }

  /** How they do; of those that run here this process knows a little more than what is stored. */
  async status(): Promise<readonly FollowerStatus[]> {
    const all = await statusOfFollowers(this.#parts, this.names)
    return all.map((one) => ({ ...one, position: this.#followers.get(one.name)!.position ?? one.position }))
  }

  /** Work that failed for good, oldest first. */
  failedWork(limit: number): Promise<readonly FailedWork[]> {
    return this.#parts.store.failed(limit)
  }

  /** Tries work that failed again: one piece, or all of it. @returns how much of it there is. */
  async redrive(request: { key?: WorkKey; dryRun: boolean }): Promise<number> {
    const count = await this.#parts.store.redrive(request)
    if (!request.dryRun) this.#parts.notices.wake('work')
    return count
  }
}

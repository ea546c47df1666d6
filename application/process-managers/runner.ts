import { setTimeout as delay } from 'node:timers/promises'
import { LOG_START } from '../ports/event-log.ts'
import { OwnedProcessManager, type OwnedProcessManagerParts } from './owned-process-manager.ts'
import { leaseOf, type ProcessManager } from './process-manager.ts'
import { type FailedWork, PARKED_STREAM, type WorkKey } from './work-store.ts'
import { Workers, type WorkersParts, type WorkersReport } from './workers.ts'

export type RunnerParts = Omit<OwnedProcessManagerParts, 'stored' | 'report'> &
  Omit<WorkersParts, 'report'> & {
    /** Hears of what goes wrong; fields hold no personal data. */
    readonly report: OwnedProcessManagerParts['report'] & WorkersReport
  }

/** All times are real milliseconds. */
export interface RunnerOptions {
  /** How long a dead worker's work waits for another, default 5000. */
  readonly workLeaseMs?: number
  /** How often the table of work is polled, default 1000. */
  readonly pollMs?: number
  /** How often checkpoints over events without consequences are stored, default 250. */
  readonly checkpointMs?: number
  /** First pause after what failed and is retried in real time, default 250; it doubles up to `longestBackoffMs`. */
  readonly backoffMs?: number
  /** Default 60000. */
  readonly longestBackoffMs?: number
  /** Events in a page at the most, default 1000; the log ends pages of large events earlier. */
  readonly pageSize?: number
}

/** How a process manager does, as operators see it. */
export interface ProcessManagerStatus {
  readonly name: string
  readonly position: bigint
  /** `idle`: no process runs it; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly problem: string | null
  /** Who runs it; null when nobody does. */
  readonly owner: string | null
  /** Streams that wait behind an event that it could not react to. */
  readonly parkedStreams: number
}

const STOP_WAIT_MS = 10_000

/**
 * Runs process managers. Each follows the log in whichever process holds its lease; workers in every process carry out
 * what it wants.
 */
export class ProcessManagerRunner {
  readonly #parts: RunnerParts
  readonly #managers: readonly ProcessManager[]
  readonly #owned: ReadonlyMap<string, OwnedProcessManager>
  readonly #workers: Workers
  readonly #stopping = new AbortController()
  #following: Promise<unknown> = Promise.resolve()

  constructor(parts: RunnerParts, processManagers: readonly ProcessManager[], options: RunnerOptions = {}) {
    const given = {
      ...{ workLeaseMs: 5_000, pollMs: 1_000, checkpointMs: 250, pageSize: 1_000 },
      ...{ backoffMs: 250, longestBackoffMs: 60_000, ...options },
    }
    this.#parts = parts
    this.#managers = processManagers
    this.#workers = new Workers(parts, processManagers, given)
    const ownedParts: OwnedProcessManagerParts = { ...parts, stored: (work) => this.#workers.stored(work) }
    this.#owned = new Map(
      processManagers.map((manager) => [manager.name, new OwnedProcessManager(ownedParts, manager, given)]),
    )
  }

  get names(): readonly string[] {
    return this.#managers.map(({ name }) => name)
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

  /** Starts following the log and working; resolves when work of a dead predecessor was taken over. */
  async start(): Promise<void> {
    const { log, store } = this.#parts
    await this.register()
    // alone on the log means that whoever held leases is dead: nothing has to run out first
    if (log.isExclusive) await store.releaseAll(this.names)
    this.#workers.start()
    this.#following = Promise.all(
      [...this.#owned.values()].map((follower) => follower.run(this.#stopping.signal)),
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
    this.#workers.stopHeartbeat()
  }

  /** How far each process manager has got in the log, wherever it runs. */
  async positions(): Promise<ReadonlyMap<string, bigint>> {
    const stored = await this.#parts.store.checkpoints(this.names)
    return new Map(
      [...this.#owned].map(([name, { position }]) => [
        name,
        position ?? stored.get(name)?.position ?? LOG_START,
      ]),
    )
  }

  async status(): Promise<readonly ProcessManagerStatus[]> {
    const { store, leases } = this.#parts
    const [stored, positions, holders, parked] = await Promise.all([
      store.checkpoints(this.names),
      this.positions(),
      leases.holders(this.names.map(leaseOf)),
      Promise.all(this.names.map((name) => store.keysOf(name, PARKED_STREAM))),
    ])
    return this.names.map((name, index) => {
      const problem = stored.get(name)?.problem ?? null
      const owner = holders.get(leaseOf(name)) ?? null
      const state = problem !== null ? 'problem' : owner !== null ? 'active' : 'idle'
      const parkedStreams = parked[index]!.length
      return { name, position: positions.get(name)!, state, problem, owner, parkedStreams }
    })
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

import type { EventRegistry } from '../event-registry.ts'
import { whileOwned } from '../ownership/while-owned.ts'
import type { Clock } from '../ports/clock.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import type { Notices } from '../ports/notices.ts'
import { TimeSlice } from '../time-slices.ts'
import { describeError } from './describe-error.ts'
import { type Handled, ParkingFollower, type Stop } from './parking-follower.ts'
import { leaseOf, type ProcessManager } from './process-manager.ts'
import { Reactions, Wanted } from './reactions.ts'
import { CheckpointMoved, PARKED_STREAM, type WorkStore, type WorkToStore } from './work-store.ts'

export interface OwnedProcessManagerParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly clock: Clock
  readonly store: WorkStore
  readonly leases: Leases
  readonly notices: Notices
  readonly report: (
    what: 'reaction_parked' | 'process_manager_restarted',
    fields: Readonly<Record<string, string | number>>,
  ) => void
  /** Hears of work that was stored. */
  readonly stored: (work: readonly WorkToStore[]) => void
}

/** All times are real milliseconds. */
export interface OwnershipOptions {
  /** Pause before a lease that somebody else holds is tried again; doubles after failures. */
  readonly pollMs: number
  readonly longestBackoffMs: number
  /** How often checkpoints over events without consequences are stored. */
  readonly checkpointMs: number
  readonly pageSize: number
}

/**
 * Follows the log for one process manager, in whichever process holds its lease: what a page makes it want is stored
 * together with the checkpoint. An event that cannot be read or reacted to parks its stream.
 */
export class OwnedProcessManager {
  readonly #parts: OwnedProcessManagerParts
  readonly #manager: ProcessManager
  readonly #options: OwnershipOptions
  readonly #reactions: Reactions
  #position: bigint | null = null

  constructor(parts: OwnedProcessManagerParts, manager: ProcessManager, options: OwnershipOptions) {
    this.#parts = parts
    this.#manager = manager
    this.#options = options
    this.#reactions = new Reactions(manager, parts.registry, parts.clock)
  }

  /**
   * Up to here everything is reacted to, ahead of the stored checkpoint by pages without consequences. Null while this
   * process does not own it.
   */
  get position(): bigint | null {
    return this.#position
  }

  /** Follows whenever this process holds the lease; resolves when `stopping` aborts. */
  run(stopping: AbortSignal): Promise<void> {
    const { leases, log, report, store } = this.#parts
    const { name } = this.#manager
    const { pollMs, longestBackoffMs } = this.#options
    return whileOwned({
      ...{ leases, name: leaseOf(name), stopping },
      // a dead predecessor's lease is taken at once, the first time; later owners are alive
      takeOver: log.isExclusive,
      pauseMs: pollMs,
      longestPauseMs: Math.max(pollMs, longestBackoffMs),
      run: async (lease, ended, progressed) => {
        try {
          await this.#follow(lease, ended, progressed)
        } finally {
          this.#position = null
        }
      },
      failed: async (error, lease) => {
        const why = describeError(error)
        report('process_manager_restarted', { process_manager: name, error: why })
        if (lease && !(error instanceof CheckpointMoved)) {
          await store.setProblem(name, lease.epoch, why).catch(() => undefined)
        }
      },
    })
  }

  async #follow({ epoch, lost }: Lease, ended: AbortSignal, progressed: () => void): Promise<void> {
    const { log, leases, store, notices, stored } = this.#parts
    const { name } = this.#manager
    const { pageSize, checkpointMs } = this.#options
    const from = await store.takeOver(name, epoch)
    const follower = new ParkingFollower(
      {
        ...{ name, log, leases, store, types: this.#reactions.types, pageSize, checkpointMs, stored },
        handle: (events) => this.#react(events),
        parked: (stop) => this.#reportParked(stop),
        taken: (position) => {
          this.#position = position
          notices.wake('progress')
          progressed()
        },
      },
      { epoch, from, parked: await store.keysOf(name, PARKED_STREAM) },
    )
    await follower.run(ended)
    if (!lost.aborted) await follower.storeRest()
  }

  /** What events make it want; later events of a stream that stops are left alone. */
  async #react(events: readonly StoredEvent[]): Promise<Handled> {
    const wanted = new Wanted()
    const stops = new Map<string, Stop>()
    const slice = new TimeSlice()
    for (const event of events) {
      const pause = slice.over()
      if (pause) await pause
      if (stops.has(event.stream)) continue
      try {
        wanted.add(...this.#reactions.to(event))
      } catch (error) {
        stops.set(event.stream, { at: event, error })
      }
    }
    return { changes: wanted.isEmpty ? null : wanted.changes(), stops: [...stops.values()] }
  }

  #reportParked({ at: { stream, revision }, error }: Stop): void {
    const fields = { process_manager: this.#manager.name, stream, revision, error: describeError(error) }
    this.#parts.report('reaction_parked', fields)
  }
}

import { LOG_START } from '../ports/event-log.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import { describeError } from './describe-error.ts'
import { type ParkingFollowed, ParkingFollower } from './parking-follower.ts'
import { whileOwned } from './while-owned.ts'
import { CheckpointMoved, PARKED_STREAM, type WorkStore } from './work-store.ts'

/** Where a follower begins under a lease: at its checkpoint, without the streams that are parked. */
export interface Beginning {
  readonly epoch: number
  readonly from: bigint
  readonly parked: readonly string[]
}

/** What an {@link OwnedFollower} follows, and what it does with it. All times are real milliseconds. */
export interface OwnedFollowed extends Omit<ParkingFollowed, 'taken' | 'store'> {
  readonly store: ParkingFollowed['store'] & Pick<WorkStore, 'takeOver' | 'keysOf' | 'setProblem'>
  /** Pause before the lease is tried again; after failures it doubles up to `longestPauseMs`. */
  readonly pauseMs: number
  readonly longestPauseMs: number
  /** Waits until, or tells whether, this process may follow at all. */
  readonly mayOwn?: () => Promise<boolean>
  /** Done first under each lease. @returns where it begins then. */
  readonly begin?: (beginning: Beginning) => Promise<Beginning>
  /** Hears that everything of a page is handled. */
  readonly moved?: () => void
  /** Hears of failures, in words that hold no values. */
  readonly failed: (why: string, failures: number) => void
}

/** Follows the log in whichever process holds its lease, with its checkpoint and what it comes to in the work store. */
export class OwnedFollower {
  readonly #followed: OwnedFollowed
  #position: bigint | null = null
  #turn = new AbortController()

  constructor(followed: OwnedFollowed) {
    this.#followed = followed
  }

  /**
   * Up to here everything is handled, ahead of the stored checkpoint by pages without consequences. Null while this
   * process does not own it.
   */
  get position(): bigint | null {
    return this.#position
  }

  /** Follows whenever this process holds the lease; resolves when `stopping` aborts. */
  run(stopping: AbortSignal): Promise<void> {
    const { name, leases, store, pauseMs, longestPauseMs, mayOwn, failed } = this.#followed
    return whileOwned({
      leases,
      name: leaseOf(name),
      stopping,
      pauseMs,
      longestPauseMs,
      ...(mayOwn && { mayOwn }),
      run: async (lease, ended, progressed) => {
        try {
          await this.#follow(lease, ended, progressed)
        } finally {
          this.#position = null
        }
      },
      failed: async (error, lease, failures) => {
        const why = describeError(error)
        failed(why, failures)
        if (lease && !(error instanceof CheckpointMoved)) {
          await store.setProblem(name, lease.epoch, why).catch(() => undefined)
        }
      },
    })
  }

  /** Gives the lease back and begins anew. */
  restart(): void {
    this.#turn.abort()
  }

  async #follow({ epoch, lost }: Lease, ended: AbortSignal, progressed: () => void): Promise<void> {
    const { name, store, moved, begin = async (beginning) => beginning } = this.#followed
    this.#turn = new AbortController()
    const turn = AbortSignal.any([ended, this.#turn.signal])
    const from = await store.takeOver(name, epoch)
    const beginning = await begin({ epoch, from, parked: await store.keysOf(name, PARKED_STREAM) })
    const taken = (position: bigint) => {
      this.#position = position
      moved?.()
      progressed()
    }
    const follower = new ParkingFollower({ ...this.#followed, taken }, beginning)
    await follower.run(turn)
    if (!lost.aborted) await follower.storeRest()
  }
}

/** How a follower does, as operators see it. */
export interface FollowerStatus {
  readonly name: string
  /** Its checkpoint. */
  readonly position: bigint
  /** `idle`: no process runs it; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly problem: string | null
  /** Who runs it; null when nobody does. */
  readonly owner: string | null
  /** Streams that wait behind an event that it could not handle. */
  readonly parkedStreams: number
}

/** How followers do, wherever they run. */
export async function statusOfFollowers(
  { store, leases }: { store: Pick<WorkStore, 'checkpoints'>; leases: Leases },
  names: readonly string[],
): Promise<readonly FollowerStatus[]> {
  const [checkpoints, holders] = await Promise.all([
    store.checkpoints(names),
    leases.holders(names.map(leaseOf)),
  ])
  return names.map((name) => {
    const { position = LOG_START, problem = null, parkedStreams = 0 } = checkpoints.get(name) ?? {}
    const owner = holders.get(leaseOf(name)) ?? null
    const state = problem !== null ? 'problem' : owner !== null ? 'active' : 'idle'
    return { name, position, state, problem, owner, parkedStreams }
  })
}

/** The lease under which the log is followed; its name is as old as the process managers. */
function leaseOf(name: string): string {
  return `process-manager/${name}`
}

import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import { Consumer, type DeadLettered, type Stop } from './consumer.ts'
import { describeError } from './describe-error.ts'
import { whileOwned } from './while-owned.ts'
import {
  CheckpointMoved,
  DEAD_LETTERED_STREAM,
  type WorkChanges,
  type WorkKey,
  type WorkStore,
  type WorkToStore,
} from './work-store.ts'

/** The service's clock has no say in when a dead-lettered stream is tried. */
export const ALWAYS_DUE = 0
export const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

/**
 * How dead-lettered streams are tried again, in real milliseconds: what failed by its contents fails until somebody
 * mends it.
 */
const DEAD_LETTERED = { tries: 3, pauseMs: 250, lookMs: 500, leaseMs: 10_000, atOnce: 100 }

/** Where a follower begins under a lease: at its checkpoint, without the streams that are dead-lettered. */
export interface Beginning {
  readonly epoch: number
  readonly from: bigint
  readonly deadLettered: readonly string[]
}

/** What events came to: work to be stored with the checkpoint, null when the checkpoint has time; and streams that stop. */
export interface Handled {
  readonly changes: WorkChanges | null
  readonly stops: readonly Stop[]
}

/** What an {@link OwnedFollower} follows, and what it does with it. All times are real milliseconds. */
export interface OwnedFollowed {
  /** Its name in the work store. */
  readonly name: string
  readonly log: EventLog
  readonly leases: Leases
  readonly store: Pick<
    WorkStore,
    'advance' | 'makeDue' | 'claim' | 'end' | 'takeOver' | 'keysOf' | 'setProblem'
  >
  readonly types: readonly string[]
  /** Events in a page at the most. */
  readonly pageSize: number
  /** How often a checkpoint that moved over events without consequences is stored. */
  readonly checkpointMs: number
  /** Handles events, those of one stream in order; later events of a stream that stops are left alone. @throws what may pass. */
  readonly handle: (events: readonly StoredEvent[]) => Promise<Handled>
  /** Hears of a stream that was dead-lettered. */
  readonly deadLettered: (stop: Stop) => void
  /** In place of that of the store. */
  readonly advance?: (...args: Parameters<WorkStore['advance']>) => Promise<unknown>
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

/** A stream that waits behind an event, as a piece of work. */
export function deadLetteredStream(processManager: string, stream: string): WorkKey {
  return { processManager, kind: DEAD_LETTERED_STREAM, key: stream }
}

/**
 * Follows the log in whichever process holds its lease, with its checkpoint and what it comes to in the work store:
 * another owner's epoch makes every later move fail. A dead-lettered stream is one piece of work there; after a few
 * tries it is shown as failed and waits for a redrive.
 */
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
    const { name, log, store, types, pageSize, checkpointMs } = this.#followed
    const { handle, deadLettered, moved, begin = async (beginning) => beginning } = this.#followed
    const { advance = (...args) => store.advance(...args) } = this.#followed
    this.#turn = new AbortController()
    const turn = AbortSignal.any([ended, this.#turn.signal])
    const position = await store.takeOver(name, epoch)
    const deadLetteredStreams = await store.keysOf(name, DEAD_LETTERED_STREAM)
    const { from, deadLettered: waiting } = await begin({
      epoch,
      from: position,
      deadLettered: deadLetteredStreams,
    })
    let changes = NO_CHANGES
    const consumer: Consumer = new Consumer({
      log,
      types: new Set(types),
      pageSize,
      from,
      deadLettered: waiting,
      checkpointMs: () => checkpointMs,
      apply: async (events) => {
        const handled = await handle(events)
        changes = handled.changes ?? NO_CHANGES
        return { hasChanges: handled.changes !== null, stops: handled.stops }
      },
      commit: async ({ from: position, to, deadLetter, free }) => {
        const { store: work, cancel } = changes
        changes = NO_CHANGES
        await advance(name, { position, epoch }, to, {
          store: [...work, ...deadLetter.map((one) => deadLetteredWork(name, one))],
          cancel: [...cancel, ...free.map((stream) => deadLetteredStream(name, stream))],
        })
      },
      stopped: deadLettered,
      taken: ({ checkpoint }) => {
        this.#position = checkpoint
        moved?.()
        progressed()
      },
      retry: { everyMs: DEAD_LETTERED.lookMs, run: () => this.#retryDeadLettered(consumer) },
    })
    await consumer.run(turn)
    if (!lost.aborted) await consumer.storeRest()
  }

  /** Tries dead-lettered streams that are due, each from its first waiting event up to where everything else is. */
  async #retryDeadLettered(consumer: Consumer): Promise<void> {
    const { store, leases, name } = this.#followed
    await store.makeDue(ALWAYS_DUE, leases.owner)
    const kinds = [{ processManager: name, kind: DEAD_LETTERED_STREAM, slots: DEAD_LETTERED.atOnce }]
    const claims = await store.claim({ owner: leases.owner, leaseMs: DEAD_LETTERED.leaseMs, kinds })
    for (const [index, claim] of claims.entries()) {
      try {
        const stop = await consumer.replay(
          claim.key,
          Number((claim.payload as { revision: number }).revision),
        )
        if (!stop) continue
        const why = describeError(stop.error)
        const isLast = claim.attempt >= DEAD_LETTERED.tries
        const afterMs = DEAD_LETTERED.pauseMs * claim.attempt
        await store.end(claim, isLast ? { end: 'failed', why } : { end: 'retry', afterMs, why })
      } catch (error) {
        // what may pass is no fault of the streams: it costs them no try
        const rest = claims.slice(index)
        await Promise.allSettled(rest.map((each) => store.end(each, { end: 'interrupted' })))
        throw error
      }
    }
  }
}

/** A stream that waits; metadata may be unreadable too, so nothing is taken from there. */
function deadLetteredWork(name: string, { at, from }: DeadLettered): WorkToStore {
  return {
    ...deadLetteredStream(name, at.stream),
    payload: { revision: from },
    dueAt: ALWAYS_DUE,
    correlationId: at.eventId,
    causationId: at.eventId,
    tenantId: null,
    environment: null,
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
  /** The process that runs it; null: none. */
  readonly owner: string | null
  /** Streams that wait behind an event that it could not handle. */
  readonly deadLetteredStreams: number
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
    const { position = LOG_START, problem = null, deadLetteredStreams = 0 } = checkpoints.get(name) ?? {}
    const owner = holders.get(leaseOf(name)) ?? null
    const state = problem !== null ? 'problem' : owner !== null ? 'active' : 'idle'
    return { name, position, state, problem, owner, deadLetteredStreams }
  })
}

/** The lease under which the log is followed; its name is as old as the process managers. */
function leaseOf(name: string): string {
  return `process-manager/${name}`
}

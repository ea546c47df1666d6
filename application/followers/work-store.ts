import type { Environment } from '../../domain/kernel/ids.ts'
import type { FaultPoint } from '../ports/faults.ts'
import { SafeError } from '../ports/safe-error.ts'

/** A kind of work, and whose. */
export interface KindOfWork {
  readonly processManager: string
  readonly kind: string
}

/** What makes work one piece. */
export interface WorkKey extends KindOfWork {
  readonly key: string
}

/** Kind of work by which a stream waits behind an event that failed: its key is the stream, its payload that event's place. */
export const DEAD_LETTERED_STREAM = '$stream'

/** Work as a process manager wants it stored. */
export interface WorkToStore extends WorkKey {
  readonly payload: unknown
  /** What its kind allows only some of at once (a host, a tenant); default: nothing of that sort. */
  readonly concurrencyKey?: string
  /** Service-clock milliseconds. */
  readonly dueAt: number
  /** True while that time may be still to come; default: it is due at once. */
  readonly isLater?: boolean
  readonly correlationId: string
  readonly causationId: string
  readonly tenantId: string | null
  readonly environment: Environment | null
  /** `traceparent` of what caused it; absent: that is in no trace. */
  readonly traceparent?: string | undefined
  /** The process that begins it at once; absent: a claim finds it. */
  readonly leaseTo?: string
}

/** What a stretch of the log changes about the work; no key appears twice. */
export interface WorkChanges {
  readonly store: readonly WorkToStore[]
  readonly cancel: readonly WorkKey[]
}

/** Work that a worker holds under a lease. */
export interface ClaimedWork
  extends Omit<WorkToStore, 'isLater' | 'leaseTo' | 'concurrencyKey' | 'traceparent'> {
  readonly concurrencyKey: string
  /** See {@link WorkToStore.traceparent}. */
  readonly traceparent: string | null
  /** Since when a provider is away that it waits for, service-clock milliseconds; null: none is. */
  readonly awaySince: number | null
  /** How often it was claimed since it was stored, from 1. */
  readonly attempt: number
  /** Names this claim and no other, ever: what every later write about it is fenced by. */
  readonly token: bigint
}

/** Claims that work was stored with. */
export type LeasedAsStored = ReadonlyMap<WorkToStore, ClaimedWork>

/** What a claim takes of one kind of work. */
export interface KindToClaim extends KindOfWork {
  /** Pieces at the most. */
  readonly slots: number
  /** How many of them may have the same concurrency key; default: all. */
  readonly perKey?: number
  /** What is taken of some concurrency keys already: it counts against `perKey`. */
  readonly busy?: ReadonlyMap<string, number>
  /** Only keys behind this one; default: from the first. */
  readonly after?: string | null
}

/** A payload that takes the place of the stored one, in it as `away_since` what {@link ClaimedWork.awaySince} is from then on. */
interface ChangedPayload {
  readonly payload: unknown
  readonly concurrencyKey: string
}

/** How a claim ends. */
export type WorkEnd =
  | { readonly end: 'done' }
  /** The try failed: again after real milliseconds, or at a service-clock time. `isTry` false: it does not count. */
  | {
      readonly end: 'retry'
      readonly afterMs?: number
      readonly at?: number
      readonly why: string
      readonly isTry?: boolean
      readonly changed?: ChangedPayload
    }
  /** Again after real milliseconds, or at a service-clock time, with attempts counted anew. */
  | {
      readonly end: 'again'
      readonly afterMs?: number
      readonly at?: number
      readonly changed?: ChangedPayload
    }
  /** Not before the hold at that point is cleared; the attempt does not count. */
  | { readonly end: 'held'; readonly at: FaultPoint }
  /** At once, by anybody; the attempt does not count. */
  | { readonly end: 'interrupted' }
  /** Not any more by itself; it stays visible with its reason. */
  | { readonly end: 'failed'; readonly why: string }

/** Where a process manager stands in the log. */
export interface Checkpoint {
  readonly position: bigint
  readonly epoch: number
}

/** Work that failed for good, as operators see it. */
export interface FailedWork extends WorkKey {
  readonly dueAt: number
  readonly attempts: number
  readonly error: string | null
  readonly correlationId: string
  readonly tenantId: string | null
}

/** Counts of the work that is there. */
export interface WorkCounts {
  /** Due at the given time, waiting for a retry in real time included. */
  readonly due: number
  /** Leased by a worker. */
  readonly leased: number
  /** Waiting for a hold to be cleared. */
  readonly held: number
  /** Due later. */
  readonly later: number
  /** When the oldest fell due that nobody has taken, on the service's clock; null: none is due. Pauses do not count. */
  readonly oldestDue: number | null
  readonly failed: number
}

/** Another process moved the process manager's checkpoint: nothing was written. */
export class CheckpointMoved extends SafeError {
  constructor(processManager: string) {
    super(`The checkpoint of process manager ${processManager} was moved by another owner`)
    this.name = 'CheckpointMoved'
  }
}

/**
 * Checkpoints of the process managers and the work they want done, in one database so that both
 * move in one transaction. Leases and pauses are in the database's own time; `due` times are
 * the service clock's.
 *
 * Work is `later`, `paused` (a pause in real time), `held`, `due`, `leased` or `failed`. Whoever looks for work first has
 * {@link makeDue} move what has waited long enough; claims then look at nothing but what is due, key by key.
 */
export interface WorkStore {
  /** Gives process managers that never ran their first checkpoint. Those that have one keep it. */
  register(processManagers: readonly string[], position: bigint): Promise<void>
  /**
   * Takes a process manager over under an epoch: owners of lower epochs can no longer write.
   * @returns its position, the start of the log for one that was never registered.
   * @throws CheckpointMoved when a higher epoch owns it.
   */
  takeOver(processManager: string, epoch: number): Promise<bigint>
  /**
   * Stores and cancels work and moves the checkpoint, all or nothing. Work of the same key gets the
   * new payload and due time, also while a worker has it: it is then done once more.
   * @returns what was stored under a lease, which lasts as long as its owner: webhook deliveries of new events that were to be.
   * @throws CheckpointMoved when the checkpoint is not at `from`.
   */
  advance(processManager: string, from: Checkpoint, to: bigint, changes: WorkChanges): Promise<LeasedAsStored>
  /** Notes why a process manager does not get on; that is cleared when it does. */
  setProblem(processManager: string, epoch: number, problem: string): Promise<void>
  /** Where process managers stand, and how many streams are dead-lettered; those that never ran are left out. */
  checkpoints(
    processManagers: readonly string[],
  ): Promise<
    ReadonlyMap<
      string,
      Checkpoint & { readonly problem: string | null; readonly deadLetteredStreams: number }
    >
  >

  /**
   * Makes work due whose time has come or whose pause is over, and such whose lease ran out or whose owner is gone.
   * @param now service-clock milliseconds.
   * @param owner the asking process, which is never gone.
   * @param running tokens of all claims of its own that have no end in time; what else it claimed, or stored under a lease, is due again. Default:
   *   nothing is.
   * @returns the tokens of those that still stand.
   */
  makeDue(now: number, owner: string, running?: readonly bigint[]): Promise<ReadonlySet<bigint>>
  /**
   * Leases work that is due: of each kind one piece of each concurrency key in turn, from `after` on, of each key those
   * that fell due first. What it costs grows with the slots, not with the work that is there.
   */
  claim(request: {
    readonly owner: string
    /** Real milliseconds until it is due again; default: that lasts as long as its owner. */
    readonly leaseMs?: number
    readonly kinds: readonly KindToClaim[]
  }): Promise<readonly ClaimedWork[]>
  /**
   * Ends a claim.
   * @returns `due` when the piece is to be done again at once: it was interrupted, or its hold is cleared; `again` when
   *   it was stored again meanwhile, and is done again at its new time; `lost` when the claim was lost, cancelled or taken over, and nothing was written.
   */
  end(claim: ClaimedWork, end: WorkEnd): Promise<'ended' | 'due' | 'again' | 'lost'>

  /**
   * When the next work is due after a service-clock time, in service-clock milliseconds; null when none is.
   * @param retriesUntil until when retries count that an outage of a provider put off; default: for ever.
   */
  nextDue(after: number, retriesUntil?: number): Promise<number | null>
  /** @param request.kinds of which work; default all that is there. */
  counts(request: { readonly now: number; readonly kinds?: readonly KindOfWork[] }): Promise<WorkCounts>
  /** How much failed work of some kinds there is. What it costs does not grow with the work that has not failed. */
  countFailed(kinds: readonly KindOfWork[]): Promise<number>
  /**
   * Kinds of the work that is there, in whatever state, other than those known, with how much it is. While there are none,
   * what it costs does not grow with the work.
   */
  unknownKinds(known: readonly KindOfWork[]): Promise<readonly (KindOfWork & { readonly count: number })[]>
  /** Removes work of a kind: all of it, or one piece. @returns how much of it there is. */
  discard(request: KindOfWork & { readonly key: string | null; readonly dryRun: boolean }): Promise<number>
  /** Keys of all work of a kind, failed work included, in order. */
  keysOf(processManager: string, kind: string): Promise<readonly string[]>
  failed(limit: number): Promise<readonly FailedWork[]>
  /** Tries failed work again. @returns how much of it there is. */
  redrive(request: { readonly key?: WorkKey; readonly dryRun: boolean }): Promise<number>
}

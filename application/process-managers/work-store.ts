import type { Environment } from '../../domain/kernel/ids.ts'
import type { FaultPoint } from '../ports/faults.ts'

/** What makes work one piece. */
export interface WorkKey {
  readonly processManager: string
  readonly kind: string
  readonly key: string
}

/** Work as a process manager wants it stored. */
export interface WorkToStore extends WorkKey {
  readonly payload: Readonly<Record<string, unknown>>
  /** Service-clock milliseconds. */
  readonly dueAt: number
  readonly correlationId: string
  readonly causationId: string
  readonly tenantId: string | null
  readonly environment: Environment | null
}

/** What a stretch of the log changes about the work; no key appears twice. */
export interface WorkChanges {
  readonly store: readonly WorkToStore[]
  readonly cancel: readonly WorkKey[]
}

/** Work that a worker holds under a lease. */
export interface ClaimedWork extends WorkToStore {
  /** How often it was claimed since it became due, from 1. */
  readonly attempt: number
  /** Names this claim and no other, ever: what every later write about it is fenced by. */
  readonly token: bigint
}

/** How a claim ends. */
export type WorkEnd =
  /** What it led to is stored and cancelled with its end, all or nothing. */
  | { readonly end: 'done'; readonly changes?: WorkChanges }
  /** Again after real milliseconds; `isTry` false: the attempt does not count. */
  | { readonly end: 'retry'; readonly afterMs: number; readonly why: string; readonly isTry?: boolean }
  /** Not before the hold at that point is cleared; the attempt does not count. */
  | { readonly end: 'held'; readonly at: FaultPoint }
  /** At once, by anybody; the attempt does not count. */
  | { readonly end: 'interrupted' }
  /** At a service-clock time, with attempts counted anew. */
  | { readonly end: 'reschedule'; readonly at: number }
  /** Not any more by itself; it stays visible with its reason. */
  | { readonly end: 'failed'; readonly why: string }

/** Where a process manager stands in the log. */
export interface Checkpoint {
  readonly position: bigint
  readonly epoch: number
}

/** Work that was given up, as operators see it. */
export interface FailedWork extends WorkKey {
  readonly dueAt: number
  readonly attempts: number
  readonly error: string | null
  readonly correlationId: string
  readonly tenantId: string | null
}

/** Counts of the work that is there. */
export interface WorkCounts {
  /** Due at the given time (waiting for a retry included), not held. */
  readonly due: number
  /** In the hands of a worker. */
  readonly leased: number
  /** Due, and waiting for a hold to be cleared. */
  readonly held: number
  /** Due later. */
  readonly later: number
  readonly failed: number
}

/** A process manager's checkpoint was moved by somebody else: nothing was written. */
export class CheckpointMoved extends Error {
  constructor(processManager: string) {
    super(`The checkpoint of process manager ${processManager} was moved by another owner`)
    this.name = 'CheckpointMoved'
  }
}

/**
 * Checkpoints of the process managers and the work they want done, in one database so that both
 * move in one transaction. Leases and retry times are in the database's own time; `due` times are
 * the service clock's.
 */
export interface WorkStore {
  /**
   * Takes a process manager over under an epoch: owners of lower epochs can no longer write.
   * @returns its position, the start of the log for a new one.
   * @throws CheckpointMoved when a higher epoch owns it.
   */
  takeOver(processManager: string, epoch: number): Promise<bigint>
  /**
   * Stores and cancels work and moves the checkpoint, all or nothing. Work of the same key gets the
   * new payload and due time, also while a worker has it in hands: it is then done once more.
   * @throws CheckpointMoved when the checkpoint is not at `from`.
   */
  advance(processManager: string, from: Checkpoint, to: bigint, changes: WorkChanges): Promise<void>
  /** Notes why a process manager does not get on; null when it does. */
  setProblem(processManager: string, epoch: number, problem: string | null): Promise<void>
  /** Where process managers stand; those that never ran are left out. */
  checkpoints(
    processManagers: readonly string[],
  ): Promise<ReadonlyMap<string, Checkpoint & { readonly problem: string | null }>>

  /**
   * Leases work that is due, in the order it fell due. Work whose lease ran out, or whose owner is
   * gone, is due again.
   * @param request.only one piece, if it is due.
   * @param request.now service-clock milliseconds.
   * @param request.holds points at which a hold is set: work held there is left alone.
   */
  claim(request: {
    readonly processManagers: readonly string[]
    readonly owner: string
    readonly leaseMs: number
    readonly now: number
    readonly holds: readonly FaultPoint[]
    readonly limit: number
    readonly only?: WorkKey
  }): Promise<readonly ClaimedWork[]>
  /** Prolongs claims. @returns the tokens of those that still stand. */
  renew(tokens: readonly bigint[], leaseMs: number): Promise<ReadonlySet<bigint>>
  /**
   * Ends a claim.
   * @returns `due` when the piece may be taken again at once: it was interrupted, or stored again meanwhile; `lost`
   *   when the claim was lost, cancelled or taken over, and nothing was written.
   */
  end(claim: ClaimedWork, end: WorkEnd): Promise<'ended' | 'due' | 'lost'>
  /** Makes leased work due at once; only where its owners are known to be dead. @returns how much it was. */
  releaseAll(processManagers: readonly string[]): Promise<number>

  /**
   * When the next work is due after a service-clock time, in service-clock milliseconds; null when
   * none is. Work that failed does not count.
   */
  nextDue(after: number): Promise<number | null>
  /** @param request.processManagers whose work; default all that is there. */
  counts(request: {
    readonly now: number
    readonly holds: readonly FaultPoint[]
    readonly processManagers?: readonly string[]
  }): Promise<WorkCounts>
  /** Keys of all work of a kind, failed work included, in order. @param state only such work. */
  keysOf(processManager: string, kind: string, state?: 'failed'): Promise<readonly string[]>
  failed(limit: number): Promise<readonly FailedWork[]>
  /** Tries failed work again. @returns how much of it there is. */
  redrive(request: { readonly key?: WorkKey; readonly dryRun: boolean }): Promise<number>
}

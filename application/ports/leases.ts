/**
 * Ownership of work that only one process may do at a time. A lease is a row with an owner, an
 * epoch and an expiry in database time. The epoch grows with every acquisition, so whoever writes
 * under a lease compares it in the same transaction as the write: an owner that was replaced while
 * it was asleep can no longer change anything.
 */

/** The leases as stored. All times are the store's own clock. */
export interface LeaseStore {
  /**
   * Takes a lease that is free, expired, already this owner's, or of an owner whose process is seen to be gone, under
   * a new epoch.
   * @returns null while somebody else holds it.
   */
  acquire(name: string, owner: string, ttlMs: number): Promise<{ epoch: number } | null>
  /** Prolongs those of the named leases that an owner still holds, in one statement. @returns their epochs by name. */
  renewAll(owner: string, names: readonly string[], ttlMs: number): Promise<ReadonlyMap<string, number>>
  /** Gives a lease back; nothing happens when it is no longer this owner's under that epoch. */
  release(name: string, owner: string, epoch: number): Promise<void>
  /** Names of the leases that somebody holds now, with their owners. */
  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** A lease this process holds. */
export interface Lease {
  readonly name: string
  /** What writes under the lease are fenced by. */
  readonly epoch: number
  /** Aborts when the lease is lost: taken over, or nobody can say after its time to live. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

/** The leases of this process: one owner, one heartbeat for all of them. */
export interface Leases {
  readonly owner: string
  /** Takes a lease and keeps it alive until it is released. @returns null while somebody else holds it. */
  acquire(name: string): Promise<Lease | null>
  /** Names of the leases that some process holds now, with their owners. */
  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

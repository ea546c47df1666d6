/**
 * Ownership of work that only one process may do at a time. A process has one lease of its own, its session, which it
 * renews; it owns what names it while that lasts. Each acquisition has an epoch, greater than those before. Every write of
 * an owner compares the epoch in its own transaction: an owner that was replaced while it slept changes nothing any more.
 */

/** Something that this process owns. */
export interface Lease {
  readonly name: string
  /** What writes under the lease are fenced by. */
  readonly epoch: number
  /** Aborts when the lease is given back or lost: taken over, or nobody can say after the time to live of the process. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

/** The leases of this process: one owner, one heartbeat for all of them. */
export interface Leases {
  readonly owner: string
  /** Takes a lease, which lasts until it is released. @returns null while another process holds it. */
  acquire(name: string): Promise<Lease | null>
  /** Names of the leases that some process holds now, with their owners. */
  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** @param lapsed hears each time that others may take this process for dead: whatever it owns may be theirs. */
  onLapse(lapsed: () => void): void
}

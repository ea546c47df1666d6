import { setTimeout as delay } from 'node:timers/promises'
import type { Lease, Leases } from '../ports/leases.ts'
import { backOff } from './backoff.ts'

/** What {@link whileOwned} runs, and how. All times are real milliseconds. */
export interface OwnedWork {
  readonly leases: Leases
  /** Name of the lease. */
  readonly name: string
  /** Pause before the lease is tried again; after failures it doubles up to `longestPauseMs`. */
  readonly pauseMs: number
  readonly longestPauseMs: number
  /** Ends everything. */
  readonly stopping: AbortSignal
  /** Waits until, or tells whether, this process may own the work at all. */
  readonly mayOwn?: () => Promise<boolean>
  /**
   * The work, done as long as it likes and until `ended` aborts: the lease was lost, or the process stops.
   * @param progressed ends the counting of failures.
   */
  readonly run: (lease: Lease, ended: AbortSignal, progressed: () => void) => Promise<void>
  /** Hears of failures; `lease` is null where it could not even be tried. Must not throw. */
  readonly failed: (error: unknown, lease: Lease | null, failures: number) => void | Promise<void>
  /** Hears after each attempt to get the lease, and when the work ends. */
  readonly tried?: () => void
}

/**
 * Runs work in one process at a time: takes its lease, runs it until the lease is lost or the process stops, gives the
 * lease back, and begins again after a pause. It resolves when `stopping` has aborted and the work has ended.
 */
export async function whileOwned(work: OwnedWork): Promise<void> {
  const { leases, name, stopping, pauseMs, longestPauseMs } = work
  for (let failures = 0; !stopping.aborted; ) {
    let lease: Lease | null = null
    try {
      if (!work.mayOwn || (await work.mayOwn())) {
        if (stopping.aborted) break
        lease = await leases.acquire(name)
      }
      if (lease) {
        await work.run(lease, AbortSignal.any([stopping, lease.lost]), () => {
          failures = 0
        })
      } else failures = 0
    } catch (error) {
      failures += 1
      await work.failed(error, lease, failures)
    } finally {
      // without a connection it ends with the session of this process
      await lease?.release().catch(() => undefined)
    }
    work.tried?.()
    if (failures > 0) await backOff(failures, { firstMs: pauseMs, mostMs: longestPauseMs }, stopping)
    else await delay(pauseMs, null, { signal: stopping }).catch(() => undefined)
  }
  work.tried?.()
}

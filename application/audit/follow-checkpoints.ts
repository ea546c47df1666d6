import { setTimeout as delay } from 'node:timers/promises'
import { whileOwned } from '../followers/while-owned.ts'
import type { Leases } from '../ports/leases.ts'
import type { LogTree } from './log-tree.ts'

const EVERY_MS = 30_000
const PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** Signs checkpoints of the log in one process at a time, until `stopping` aborts; one for each half minute that has events. */
export async function followCheckpoints(
  tree: LogTree,
  parts: {
    readonly leases: Leases
    /** Hears that the log was looked at, and is covered by a checkpoint; false: this process no longer sees to it. */
    readonly covered: (isCovered: boolean) => void
    readonly failed: (error: unknown) => void
  },
  stopping: AbortSignal,
): Promise<void> {
  const { leases, covered, failed } = parts
  await whileOwned({
    leases,
    name: 'audit-checkpoints',
    stopping,
    failed,
    pauseMs: PAUSE_MS,
    longestPauseMs: LONGEST_PAUSE_MS,
    async run(_lease, ended, progressed) {
      try {
        while (!ended.aborted) {
          await tree.checkpoint(ended)
          covered(true)
          progressed()
          await delay(EVERY_MS, null, { signal: ended }).catch(() => undefined)
        }
      } finally {
        if (ended.aborted) covered(false)
      }
    },
  })
}

import { setTimeout as delay } from 'node:timers/promises'
import { whileOwned } from '../followers/while-owned.ts'
import type { EventLog } from '../ports/event-log.ts'
import type { Leases } from '../ports/leases.ts'
import type { Throughput } from '../ports/throughput.ts'

const EVERY_MS = 30_000
const PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** Samples how much is stored and how late its readers are, in one process at a time, until `stopping` aborts. */
export async function followThroughput(
  parts: {
    readonly log: Pick<EventLog, 'head' | 'count'>
    readonly samples: Pick<Throughput, 'add'>
    readonly leases: Leases
    /** How far the last reader is behind the log. */
    readonly lag: () => Promise<{ readonly events: number; readonly seconds: number }>
    readonly failed: (error: unknown) => void
    /** Real milliseconds between samples, default 30,000. */
    readonly everyMs?: number
  },
  stopping: AbortSignal,
): Promise<void> {
  const { log, samples, leases, lag, failed, everyMs = EVERY_MS } = parts
  await whileOwned({
    leases,
    name: 'throughput',
    stopping,
    failed,
    pauseMs: PAUSE_MS,
    longestPauseMs: LONGEST_PAUSE_MS,
    async run(_lease, ended, progressed) {
      for (let last: { head: bigint; at: number } | null = null; !ended.aborted; ) {
        const behind = await lag()
        if (ended.aborted) return
        const now: { head: bigint; at: number } = { head: await log.head(), at: performance.now() }
        await samples.add({
          seconds: last ? (now.at - last.at) / 1_000 : 0,
          events: last ? await log.count(last.head, now.head) : 0,
          eventsBehind: behind.events,
          secondsBehind: behind.seconds,
        })
        last = now
        progressed()
        await delay(everyMs, null, { signal: ended }).catch(() => undefined)
      }
    },
  })
}

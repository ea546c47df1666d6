import { setTimeout as delay } from 'node:timers/promises'
import type { KindOfWork, WorkStore } from '../followers/work-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { EventLog } from '../ports/event-log.ts'
import type { Notices } from '../ports/notices.ts'
import type { ReadModels } from '../ports/read-models.ts'

export interface DrainParts {
  readonly log: EventLog
  readonly clock: Clock
  readonly notices: Notices
  readonly work: Pick<WorkStore, 'counts'>
  readonly processManagers: {
    /** How far each process manager has got in the log, wherever it runs. */
    positions(): Promise<ReadonlyMap<string, bigint>>
    /** Kinds of work that they have, the only ones that are waited for. */
    readonly kinds: readonly KindOfWork[]
  }
  /** Absent where nothing is published to other systems. */
  readonly integrationEvents?: {
    /** Whether all that can be published up to a position is; also true while the channel is away. */
    hasPublished(position: bigint): Promise<boolean>
  }
  readonly projections: { names(): readonly string[] }
  readonly readModels: ReadModels
}

/** Between two looks when nothing wakes the wait: what it waits for may happen in another process. */
const LOOK_AGAIN_MS = 25
/** How long one look waits for the projections, so that the whole is looked at again now and then. */
const PROJECTIONS_WAIT_MS = 1_000

/**
 * Waits until the service has come to rest: no work is due at the present clock, nothing is in
 * flight, all process managers and projections are at the head of the log, and other systems have heard of
 * everything, as far as they can be reached. Work that an injected hold keeps back, work that falls due
 * later and work that failed for good is not waited for.
 * @param timeoutMs real milliseconds.
 * @returns false when the time ran out first.
 */
export async function drain(parts: DrainParts, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const left = deadline - performance.now()
    if (await isAtRest(parts, Math.min(PROJECTIONS_WAIT_MS, Math.max(0, left)))) return true
    const pause = Math.min(LOOK_AGAIN_MS, deadline - performance.now())
    if (pause <= 0) return false
    await pauseUnlessWoken(parts.notices, pause)
  }
}

/**
 * The order makes it certain: everything up to `head` was reacted to, then no work was left, and
 * only an event after `head` could have brought more.
 */
async function isAtRest(parts: DrainParts, projectionsWaitMs: number): Promise<boolean> {
  const { log, clock, work } = parts
  const now = clock.now()
  const head = await log.head()
  const positions = await parts.processManagers.positions()
  for (const position of positions.values()) {
    if (position < head) return false
  }
  // nobody may be there for other work: what is to be published waits while the channel is away
  const { due, leased } = await work.counts({ now, kinds: parts.processManagers.kinds })
  if (due + leased > 0) return false
  if (parts.integrationEvents && !(await parts.integrationEvents.hasPublished(head))) return false
  const names = parts.projections.names()
  if (!(await parts.readModels.reached(names, head, { timeoutMs: projectionsWaitMs }))) return false
  // the system clock never stands still: for it, rest is a moment
  return (await log.head()) === head && (clock.kind === 'system' || clock.now() === now)
}

async function pauseUnlessWoken(notices: Notices, ms: number): Promise<void> {
  const woken = new AbortController()
  const wake = () => woken.abort()
  const stops = (['position', 'progress'] as const).map((topic) => notices.onWake(topic, wake))
  try {
    await delay(ms, null, { signal: woken.signal })
  } catch {
    // woken
  } finally {
    for (const stop of stops) stop()
  }
}

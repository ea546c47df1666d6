import { setTimeout as delay } from 'node:timers/promises'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { VIRTUAL_CLOCK_ID, virtualClock } from '../../domain/operations/virtual-clock.ts'
import type { CommandContext } from '../commands/command-context.ts'
import type { CommandHandler } from '../commands/command-handler.ts'
import { OUTAGE_MS } from '../followers/through-outages.ts'
import type { WorkStore } from '../followers/work-store.ts'
import { type Clock, isMovable, type MovableClock } from '../ports/clock.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import type { Notices } from '../ports/notices.ts'

export interface AdvanceClockParts {
  readonly commands: CommandHandler
  readonly clock: Clock
  readonly work: Pick<WorkStore, 'nextDue'>
  readonly leases: Leases
  readonly notices: Notices
  /** Waits until the service has come to rest at the present clock, see `drain`. */
  readonly settle: (timeoutMs: number) => Promise<boolean>
  /** How long moves before this one are waited for, in real milliseconds; default 60,000. */
  readonly turnMs?: number
}

/** How long one timer and what follows from it may take before the clock moves on, in real milliseconds. */
const SETTLE_MS = 15_000
const IMPATIENT_MS = 500
const LEASE = 'virtual-clock'
/** Longer than the lease of a process that is gone lasts. */
const TURN_MS = 60_000
const LEASE_RETRY_MS = 50

/** Dates have four digits for the year, and what begins now may fall due in thirty years. */
const FIRST_YEAR_BEYOND = 9950
/** Where a virtual clock ends, in epoch milliseconds. */
export const LATEST = Date.UTC(FIRST_YEAR_BEYOND, 0, 1) - 1

/** The last move of each clock in this process that was asked for. */
const lastMoves = new WeakMap<MovableClock, Promise<unknown>>()

/**
 * Moves the virtual clock on. Timers that the move passes run in order, each with the clock standing
 * at its own due time and with everything that follows from it done before the next. Work that does
 * not come to rest in time (a retry that goes on failing) does not stop the clock. Nor does, on the way, what is put off since
 * somebody outside is away: no real time passes in which they could come back, and it is looked at again after the move.
 * @param by `seconds` from now, or the new time `to` in milliseconds since the epoch.
 * @returns the new time; a rejection when the clock is the machine's, would not move forward, or is being moved by
 *   others for too long: then nothing was done.
 */
export async function advanceClock(
  parts: AdvanceClockParts,
  by: { readonly seconds: number } | { readonly to: number },
  context: CommandContext,
): Promise<{ readonly now: number } | Rejection> {
  const { clock, turnMs = TURN_MS } = parts
  if (!isMovable(clock)) {
    return reject(
      'conflict',
      'clock_not_virtual',
      'The clock is the system clock; only a virtual clock can be moved',
    )
  }
  // one after the other: the second counts its seconds from where the first ends
  const before = lastMoves.get(clock) ?? Promise.resolve()
  const move = inTurn(parts, before, performance.now() + turnMs, () => advance(parts, clock, by, context))
  // a request that did not get its turn leaves the earlier move under way
  lastMoves.set(clock, Promise.allSettled([before, move]))
  return move
}

/** Waits for the move before, in this process and then in others: only one process moves the clock at a time. */
async function inTurn<Result>(
  { leases }: AdvanceClockParts,
  before: Promise<unknown>,
  deadline: number,
  run: () => Promise<Result>,
): Promise<Result | Rejection> {
  const patience = delay(deadline - performance.now(), 'late', { ref: false })
  if ((await Promise.race([before, patience])) === 'late') return late('this process')
  let lease: Lease | null = null
  while (!lease) {
    lease = await leases.acquire(LEASE)
    if (lease) break
    if (performance.now() >= deadline)
      return late(`process ${(await leases.holders([LEASE])).get(LEASE) ?? 'unknown'}`)
    await delay(LEASE_RETRY_MS)
  }
  try {
    return await run()
  } finally {
    // without a connection the lease runs out by itself
    await lease.release().catch(() => undefined)
  }
}

function late(who: string): Rejection {
  const why = `The clock was not moved: another request is moving it, in ${who}; ask again when that has ended`
  return reject('conflict', 'clock_is_moving', why)
}

async function advance(
  parts: AdvanceClockParts,
  clock: MovableClock,
  by: { readonly seconds: number } | { readonly to: number },
  context: CommandContext,
): Promise<{ readonly now: number } | Rejection> {
  let now = (await parts.commands.load(virtualClock, VIRTUAL_CLOCK_ID)).state.now ?? clock.now()
  clock.moveTo(now)
  const field = 'seconds' in by ? 'seconds' : 'to'
  const target = 'seconds' in by ? now + Math.round(by.seconds * 1000) : by.to
  if (!Number.isSafeInteger(target) || target > LATEST) {
    return reject(
      'invalid',
      'invalid_time',
      `${field} must be a time before the year ${FIRST_YEAR_BEYOND}`,
      field,
    )
  }
  if (target < now) return reject('conflict', 'clock_moves_forward', 'The clock only moves forward', field)

  if (target === now) return { now }

  // what was put off before the move
  const retriesUntil = now + OUTAGE_MS
  // what is under way may still set timers before the target
  let patience = await settle(parts, SETTLE_MS)
  for (let step = 0; now < target; step += 1) {
    const due = await parts.work.nextDue(now, retriesUntil)
    const isStop = due !== null && due <= target
    const to = isStop ? due : target
    const moved = await parts.commands.execute(
      virtualClock,
      VIRTUAL_CLOCK_ID,
      { type: 'MoveTo', to },
      { ...context, ordinal: step },
    )
    if (isRejection(moved)) return moved
    clock.moveTo(to)
    parts.notices.wake('work')
    now = to
    if (isStop) patience = await settle(parts, patience)
  }
  return { now }
}

/** @returns how long the next wait may take: what did not come to rest once is not waited for long again. */
async function settle(parts: AdvanceClockParts, patienceMs: number): Promise<number> {
  return (await parts.settle(patienceMs)) ? patienceMs : IMPATIENT_MS
}

/** When deliveries are attempted. All durations are milliseconds, all times epoch milliseconds of the service's clock. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Pauses of the immediate ladder before its second attempt and those behind it, each from the end of the attempt before. */
const PAUSES = [SECOND, 5 * SECOND, 25 * SECOND, 125 * SECOND] as const
/** Attempts of the immediate ladder. */
export const IMMEDIATE_ATTEMPTS = PAUSES.length + 1
/** The ages of an event at which it is delivered again in the background. */
const RUNGS = [
  ...[5 * MINUTE, 15 * MINUTE, 45 * MINUTE],
  ...[2, 4, 8, 12, 16, 24, 32, 40, 44].map((hours) => hours * HOUR),
] as const
/** The age at which an event is dropped. */
export const DROP_AGE = 48 * HOUR
/** Events in a row that failed in the immediate ladder after which a subscription is disabled. */
export const FAILURES_TO_DISABLE = 10
/** By how much a redelivery may come late, so that those of one outage do not all come at once. */
const LONGEST_JITTER = 30 * SECOND

/** How far a delivery has got. */
export interface DeliveryProgress {
  /** When its event was raised. */
  readonly createdAt: number
  /** Attempts that have ended. */
  readonly attempts: number
  /** The next rung of the background redelivery, from 0. */
  readonly rung: number
  /** The event is sent again because its partner asked for that: the immediate ladder is all that it has. */
  readonly isResent: boolean
}

/** What follows a failed attempt. */
export interface NextAttempt {
  readonly status: 'retrying' | 'failed'
  /** The rung that is next; it stays when it passes without an attempt. */
  readonly rung: number
  /** Null: none follows. */
  readonly at: number | null
}

/** Whether attempts of a delivery count for the health of the subscription: those of the first immediate ladder do. */
export function isLive({ attempts, isResent }: Pick<DeliveryProgress, 'attempts' | 'isResent'>): boolean {
  return attempts < IMMEDIATE_ATTEMPTS && !isResent
}

/** Whether an event is too old to be delivered; what is sent again never is. */
export function isExpired(
  { createdAt, isResent }: Pick<DeliveryProgress, 'createdAt' | 'isResent'>,
  now: number,
): boolean {
  return now >= createdAt + DROP_AGE && !isResent
}

/**
 * What follows when the next attempt of a delivery fails. Of rungs that passed, one is made up for at once; the next is
 * the first one still ahead. Behind the last rung the time comes at which the event is dropped.
 * @param progress before the attempt.
 * @param endedAt when the attempt ended.
 * @param spread from 0 to 1: which part of the longest jitter a redelivery is given.
 */
export function afterFailure(progress: DeliveryProgress, endedAt: number, spread: number): NextAttempt {
  const { createdAt, attempts, isResent } = progress
  const pause = PAUSES[attempts]
  if (pause !== undefined) return { status: 'retrying', rung: 0, at: endedAt + pause }
  if (isResent) return { status: 'failed', rung: 0, at: null }
  const isFirst = attempts + 1 === IMMEDIATE_ATTEMPTS
  const ahead = RUNGS.findIndex((age, rung) => rung > progress.rung && createdAt + age > endedAt)
  const rung = isFirst ? 0 : ahead < 0 ? RUNGS.length : ahead
  const age = RUNGS[rung]
  if (age === undefined) return { status: 'failed', rung, at: createdAt + DROP_AGE }
  const jitter = Math.floor(spread * LONGEST_JITTER)
  return { status: 'failed', rung, at: Math.max(endedAt, createdAt + age + jitter) }
}

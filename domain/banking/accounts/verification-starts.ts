import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { reject } from '../../kernel/rejection.ts'
import { VERIFICATION_MS } from './ach-account.ts'

/** Verifications of the same numbers that may be started within {@link VERIFICATION_MS}. */
export const MOST_STARTS = 3

/**
 * How often accounts with the same numbers were begun to be verified: one stream for each tenant, environment and
 * fingerprint, since the same numbers may be any number of accounts. Times are ISO 8601.
 */
export const VerificationStartCounted = eventType('VerificationStartCounted', {
  starts_id: id(),
  tenant_id: id(),
  environment: environment(),
  ach_account_id: id(),
  /** The verification of the account before it; null: it is the first. */
  follows: id().nullable(),
  at: time(),
})
type Start = EventOf<typeof VerificationStartCounted>['data']

export interface VerificationStarts {
  /** The last ones, the oldest first. */
  readonly starts: readonly Pick<Start, 'ach_account_id' | 'follows' | 'at'>[]
}

export interface CountVerificationStart {
  readonly type: 'Count'
  readonly data: Omit<Start, 'at'>
  /** Epoch milliseconds. */
  readonly at: number
}

export const verificationStarts: Decider<
  VerificationStarts,
  CountVerificationStart,
  EventOf<typeof VerificationStartCounted>
> = {
  category: 'verificationStarts',
  events: [VerificationStartCounted],
  initialState: { starts: [] },
  evolve({ starts }, { data: { ach_account_id, follows, at } }) {
    return { starts: [...starts, { ach_account_id, follows, at }].slice(-MOST_STARTS) }
  },
  decide({ data, at }, { starts }) {
    const recent = starts.filter((start) => at < Date.parse(start.at) + VERIFICATION_MS)
    // concurrent starts of the same one start it once
    const isCounted = recent.some(
      ({ ach_account_id, follows }) => ach_account_id === data.ach_account_id && follows === data.follows,
    )
    if (isCounted) return []
    if (recent.length < MOST_STARTS) return [VerificationStartCounted.of({ ...data, at: isoTime(at) })]
    const again = isoTime(Date.parse(recent[0]!.at) + VERIFICATION_MS)
    const why = `Accounts with these numbers were begun to be verified ${MOST_STARTS} times in 14 days: try again from ${again}, or have an operator attest the account`
    return reject('conflict', 'too_many_verifications', why)
  },
}

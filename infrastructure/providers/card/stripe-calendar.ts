import type { Stripe } from 'stripe'
import type { NewProcessorSubscription } from '../../../application/ports/card-processor.ts'
import { monthsAfter } from '../../../domain/kernel/calendar.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** How far ahead of Stripe's clock a first charge must be to lie in its future. */
const AHEAD_MS = HOUR_MS
/** How far clocks may be apart. */
const SKEW_MS = 10 * 60_000

/** When Stripe charges a subscription whose first charge is not due at once. */
export interface StripeCalendar {
  /** The same for the same calendar: calls under one key must ask for the same. */
  readonly name: string
  readonly params: Pick<
    Stripe.SubscriptionCreateParams,
    'trial_end' | 'billing_cycle_anchor_config' | 'cancel_at'
  >
}

type Asked = Pick<NewProcessorSubscription, 'chargeDay' | 'charges'> & { readonly firstChargeAt: number }

/**
 * Free until the first charge, and then monthly on its day. A first charge whose time went by is made on the next day,
 * at the same time, and the later ones with it.
 * @param now epoch milliseconds.
 */
export function trialUntilFirst({ firstChargeAt, charges }: Asked, now: number): StripeCalendar {
  const late = Math.max(0, Math.ceil((now + AHEAD_MS - firstChargeAt) / DAY_MS))
  const first = firstChargeAt + late * DAY_MS
  return {
    name: late === 0 ? '' : `-from-${seconds(first)}`,
    params: { trial_end: seconds(first), ...endOf(first, charges) },
  }
}

/**
 * Where the first charge falls on the last day of a month that is too short for the day of the others: the end of a
 * trial would become the day of all. The next such day must be that of the first charge: on the day of the month itself
 * charges keep to an earlier hour than it is.
 * @returns null where the first charge tells the day, or Stripe would charge on another than it.
 */
export function fixedDay({ firstChargeAt, chargeDay, charges }: Asked, now: number): StripeCalendar | null {
  const due = new Date(firstChargeAt)
  if (chargeDay === undefined || chargeDay === due.getUTCDate() || firstChargeAt < now + AHEAD_MS) return null
  const before = Date.UTC(due.getUTCFullYear(), due.getUTCMonth() - 1, chargeDay, due.getUTCHours())
  const from = new Date(Math.min(now - SKEW_MS, before))
  if (from.getUTCDate() !== chargeDay || from.getTime() < before - DAY_MS) return null
  const hour = from.getUTCHours()
  return {
    name: `-on-${chargeDay}-at-${hour}`,
    params: {
      billing_cycle_anchor_config: { day_of_month: chargeDay, hour, minute: 0, second: 0 },
      ...endOf(due.setUTCHours(hour, 0, 0, 0), charges),
    },
  }
}

/** On the end of a month that it counts, never after it, so that no charge too many is made. */
function endOf(first: number, charges: number | null) {
  return charges === null ? {} : { cancel_at: seconds(monthsAfter(first, charges)) }
}

/** As Stripe writes a time. */
export function seconds(epochMs: number): number {
  return Math.floor(epochMs / 1000)
}

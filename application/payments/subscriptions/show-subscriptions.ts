import { isoTime } from '../../../domain/kernel/calendar.ts'
import {
  dueAt,
  nextNumber,
  type Subscription,
  subscription,
} from '../../../domain/payments/subscriptions/subscription.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { runInTimeSlices } from '../../commands/time-slices.ts'
import type { ListPage } from '../../ports/read-database.ts'
import { partnerList } from '../../queries/lists.ts'

/** One of the monthly charges, made or to come. */
export interface ScheduledPayment {
  readonly _id: string
  readonly installment_number: number
  readonly due_at: string
  readonly amount_cents: number
  readonly status: 'scheduled' | 'paid' | 'failed' | 'cancelled'
  /** Tries that failed. */
  readonly failed_attempts: number
  readonly paid_at: string | null
}

/** The id of a charge of a subscription: `payment_id` in webhooks. @param number from 1. */
export function paymentId(subscriptionId: string, number: number): string {
  return derivedId(subscriptionId, `charge/${number}`)
}

/** A subscription as partners see it. */
export type ShownSubscription = ReturnType<typeof showSubscription>

export function showSubscription(state: Subscription) {
  return {
    ...state,
    _id: state.subscription_id,
    payment_link_id: state.link_id,
    currency: 'usd' as const,
    interval: 'month' as const,
    scheduled_payments: scheduledPayments(state),
    created_at: state.started_at,
    canceled_at: state.ended?.at ?? null,
    cancellation_reason: state.ended?.reason ?? null,
  }
}

/** All charges of a plan; of others those that were tried, and the next one. */
function scheduledPayments(state: Subscription): readonly ScheduledPayment[] {
  const { subscription_id, amount_cents, charges, tried, ended } = state
  const last = charges ?? nextNumber({ ...state, ended: null })!
  const byNumber = new Map(tried.map((charge) => [charge.number, charge]))
  return Array.from({ length: last }, (_, index) => index + 1).map((number) => {
    const { paid, failures } = byNumber.get(number) ?? { paid: null, failures: [] }
    const unpaid = failures.length > 0 ? 'failed' : ended ? 'cancelled' : 'scheduled'
    return {
      _id: paymentId(subscription_id, number),
      installment_number: number,
      due_at: isoTime(dueAt(state, number)),
      amount_cents: paid?.amount_cents ?? amount_cents,
      status: paid ? ('paid' as const) : unpaid,
      failed_attempts: failures.length,
      paid_at: paid?.at ?? null,
    }
  })
}

const SUBSCRIPTIONS = partnerList(subscription, {
  projection: 'subscriptions',
  table: 'subscriptions',
  id: 'subscription_id',
  by: ['carrier_id', 'status'],
})

/** The subscriptions within the scope of a key, newest first. */
export async function listSubscriptions(
  ...parameters: Parameters<typeof SUBSCRIPTIONS>
): Promise<ListPage<ShownSubscription>> {
  const { items, total } = await SUBSCRIPTIONS(...parameters)
  return { items: await runInTimeSlices(shownOneByOne(items)), total }
}

/** A plan has hundreds of charges, and a page hundreds of plans. */
function* shownOneByOne(
  states: readonly Subscription[],
): Generator<void, readonly ShownSubscription[], void> {
  const items: ShownSubscription[] = []
  for (const state of states) {
    items.push(showSubscription(state))
    yield
  }
  return items
}

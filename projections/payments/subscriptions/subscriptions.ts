import { subscriptions as table } from '../../../application/payments/subscriptions/subscriptions-table.ts'
import { statusAfter, statusAtStart } from '../../../domain/payments/subscriptions/subscription.ts'
import {
  SubscriptionChargeFailed,
  SubscriptionChargePaid,
  SubscriptionEnded,
  SubscriptionStarted,
  SubscriptionStatusReported,
} from '../../../domain/payments/subscriptions/subscription-events.ts'
import { changing, projection } from '../../runtime/projection.ts'

const TELL_STATUS = [
  SubscriptionChargePaid,
  SubscriptionChargeFailed,
  SubscriptionStatusReported,
  SubscriptionEnded,
] as const

/** Subscriptions as they are listed. */
export const subscriptions = projection({
  name: 'subscriptions',
  version: 3,
  tables: [table],
  handlers: (on) => [
    on(SubscriptionStarted, {
      apply: ({ data, position }, { subscriptions }) =>
        subscriptions.put({ ...data, status: statusAtStart(data), status_at: null, seq: position }),
    }),
    ...TELL_STATUS.map((type) =>
      changing(table)(type, (event, row) => {
        const { status, status_at } = statusAfter(row!, event as Parameters<typeof statusAfter>[1])
        return { status, status_at }
      }),
    ),
  ],
})

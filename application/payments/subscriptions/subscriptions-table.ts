import type { Environment } from '../../../domain/kernel/ids.ts'
import type { SubscriptionStatus } from '../../../domain/payments/subscriptions/subscription-events.ts'
import { bigint, orNull, type RowOf, table, text, timestamptz } from '../../queries/table.ts'

/** Which subscriptions there are; what they are like stands in the log. */
export const subscriptions = table('subscriptions', {
  key: ['subscription_id'],
  columns: {
    subscription_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    policy_id: text(),
    status: text<SubscriptionStatus>(),
    /** As of when the processor told the status. */
    status_at: orNull(timestamptz()),
    /** Order of start. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'seq desc'], ['policy_id'], ['seq desc']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    subscriptions: RowOf<typeof subscriptions>
  }
}

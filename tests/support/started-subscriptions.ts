import { SubscriptionStarted } from '../../domain/payments/subscriptions/subscription-events.ts'

type Started = ReturnType<typeof SubscriptionStarted.of>

/** The start of a subscription of a call, whose first charge is still to come, with one id for all, unless told. */
export function startedSubscription(id: string, at: string, changes: Partial<Started['data']> = {}): Started {
  return SubscriptionStarted.of({
    subscription_id: id,
    tenant_id: id,
    environment: 'live',
    employer_id: id,
    carrier_id: id,
    policy_id: id,
    source: 'api',
    link_id: null,
    processor: 'stripe',
    customer_id: 'cus_1',
    payment_method_id: 'pm_1',
    processor_subscription_id: 'sub_1',
    amount_cents: 5000,
    charges: null,
    anchor_at: at,
    first_charge_paid: false,
    metadata: {},
    started_at: at,
    ...changes,
  })
}

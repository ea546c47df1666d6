import { expect, it } from 'vitest'
import { upcast } from '../../../domain/kernel/event-type.ts'
import { PaymentLinkCreated } from '../../../domain/payments/links/payment-link-events.ts'
import { ProcessorCustomerCreated } from '../../../domain/payments/processor/processor-customer.ts'
import { SubscriptionStarted } from '../../../domain/payments/subscriptions/subscription-events.ts'

it.each([
  [ProcessorCustomerCreated, 'customer_id', 'cus_sim_0123', 'simulated'],
  [ProcessorCustomerCreated, 'customer_id', 'cus_Pq1', 'stripe'],
  [PaymentLinkCreated, 'processor_payment_link_id', 'plink_sim_0123', 'simulated'],
  [PaymentLinkCreated, 'processor_payment_link_id', 'plink_1Pq', 'stripe'],
  [SubscriptionStarted, 'processor_subscription_id', 'sub_sim_0123', 'simulated'],
  [SubscriptionStarted, 'processor_subscription_id', 'sub_1Pq', 'stripe'],
] as const)(
  'an event stored before its processor was kept tells it by its id',
  (type, field, id, processor) => {
    expect(upcast(type, 1, { [field]: id, other: 1 })).toEqual({ [field]: id, other: 1, processor })
  },
)

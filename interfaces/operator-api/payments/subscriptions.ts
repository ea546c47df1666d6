import { z } from 'zod'
import { listAllSubscriptions } from '../../../application/payments/operator-lists.ts'
import { type Subscription, subscription } from '../../../domain/payments/subscriptions/subscription.ts'
import { SUBSCRIPTION_STATUSES } from '../../../domain/payments/subscriptions/subscription-events.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, ofPolicy, scope } from '../host/lists.ts'
import { shownTime, whose } from '../host/values.ts'

const PlanOfCharges = z
  .object({
    subscription_id: id(),
    ...whose,
    policy_id: id(),
    source: z.enum(['api', 'plan']).describe('A partner asked for it, or it is what remains of a plan'),
    payment_link_id: id().nullable().describe('The link whose plan it is'),
    status: z.enum(SUBSCRIPTION_STATUSES),
    amount_cents: z.int().describe('Of each monthly charge'),
    charges: z.int().nullable().describe('Charges in all; null: until it is cancelled'),
    charges_paid: z.int(),
    processor: z.string(),
    processor_subscription_id: z.string(),
    started_at: shownTime(),
    ended_at: shownTime().nullable(),
    ended_reason: z.string().nullable(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorSubscription' })

export const subscriptionEndpoints = [
  endpoint({
    operation: 'listSubscriptions',
    route: 'GET /subscriptions',
    summary: 'List subscriptions, newest first',
    ...listOf(PlanOfCharges, {
      ...scope,
      ...ofPolicy,
      status: narrowing(word(...SUBSCRIPTION_STATUSES)),
    }),
    columns:
      'subscription_id started_at environment status monthly:amount_cents charges paid:charges_paid employer_id',
    handle: handleList(listAllSubscriptions, shown),
  }),
  endpoint({
    operation: 'showSubscription',
    route: 'GET /subscriptions/{subscription_id}',
    summary: 'Show a subscription',
    ...ofOne('subscription_id', 'subscription'),
    answers: { 200: PlanOfCharges },
    handle: async ({ host, params }) =>
      shown(await loaded(host, subscription, params.subscription_id, 'subscription')),
  }),
]

function shown(one: Subscription) {
  return {
    ...one,
    payment_link_id: one.link_id,
    charges_paid: one.tried.filter(({ paid }) => paid !== null).length,
    ended_at: one.ended?.at ?? null,
    ended_reason: one.ended?.reason ?? null,
  }
}

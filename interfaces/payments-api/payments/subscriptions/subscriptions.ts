import { z } from 'zod'
import { carrierIdOf } from '../../../../application/access/named-policy.ts'
import {
  listSubscriptions,
  showSubscription,
} from '../../../../application/payments/subscriptions/show-subscriptions.ts'
import {
  cancelSubscription,
  prepareSubscription,
  startSubscription,
  subscriptionOfClient,
} from '../../../../application/payments/subscriptions/subscriptions.ts'
import { MOST_CHARGE_CENTS } from '../../../../domain/payments/links/direct-billing-plan.ts'
import { subscription } from '../../../../domain/payments/subscriptions/subscription.ts'
import { create, created } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { optional, reference } from '../../../endpoints/fields.ts'
import { listed, listOf, narrowing, page } from '../../../endpoints/lists.ts'
import { contextOf, endpoint, keyed } from '../../host/api.ts'
import { metadata } from '../../host/metadata.ts'
import { POLICY_REFUSALS } from '../../host/policy-refusals.ts'
import { params, REACH, Subscription, status } from './subscription-schemas.ts'

const PROCESSOR_AWAY = 'The card processor could not be reached; nothing was changed'

export const subscriptionEndpoints = [
  endpoint({
    operation: 'createSubscription',
    route: 'POST /subscriptions',
    summary: 'Charge an employer every month until it is cancelled',
    description:
      'The first payment is taken at once: the subscription is `incomplete` until it succeeds, and `canceled` when it has ' +
      'not after 23 hours. In the sandbox it is `active` in the answer already. The webhook `subscription.created` follows.',
    body: z.object({
      employer_id: reference().describe(
        'Has a customer at the card processor, which its first payment link creates',
      ),
      carrier_id: optional(reference()).describe('Required unless the key is for one carrier'),
      policy_id: reference(),
      amount_cents: z.int().min(1).max(MOST_CHARGE_CENTS).describe('Of each month'),
      payment_method_id: z
        .string()
        .regex(/^[\x21-\x7e]{1,255}$/, 'must be an id of the card processor')
        .describe(
          "Becomes the default method of the employer's customer. In the sandbox any id that begins with `pm_card_`; `pm_card_declined` declines",
        ),
      metadata: metadata(),
    }),
    ...created(Subscription),
    errors: {
      400: 'A field is missing or wrong, or `payment_method_id` is no method that the employer can be charged by',
      403: 'What is named lies outside the scope of the key, or the key does not open this API',
      404: 'Employer, policy or carrier does not exist in the account and environment of the key',
      409: 'The employer has no customer at the card processor yet, the processor does not take the amount, or the key was used for another body',
      502: PROCESSOR_AWAY,
    },
    asksOutside: true,
    refuses: {
      400: [...POLICY_REFUSALS[400], 'payment_method_refused'],
      403: POLICY_REFUSALS[403],
      404: POLICY_REFUSALS[404],
      409: ['amount_refused', 'no_processor_customer'],
    },
    handle(call) {
      const { host, caller, body } = call
      const { client } = caller
      const input = { ...body, carrier_id: accepted(carrierIdOf(client, body.carrier_id)) }
      return create(keyed(call), 'POST /subscriptions', {
        prepare: (context) => prepareSubscription(host.app, client, input, context),
        create: (context, named) => startSubscription(host.app, client, input, named, context),
        idOf: ({ subscription_id }) => subscription_id,
        show: showSubscription,
        // as it was answered, whatever became of it
        repeated: async (subscriptionId) =>
          showSubscription((await host.app.commands.loadAt(subscription, subscriptionId, 0)).state!),
      })
    },
  }),
  endpoint({
    operation: 'listSubscriptions',
    route: 'GET /subscriptions',
    summary: 'List subscriptions, newest first',
    description: 'What lies outside the scope of the key is left out.',
    ...listOf(Subscription),
    query: z.object({ carrier_id: narrowing(reference()), status: narrowing(status), ...page }),
    handle: ({ host: { app }, caller, query }) =>
      listed(query, (wanted) => listSubscriptions(app, caller.client, query, wanted)),
  }),
  endpoint({
    operation: 'showSubscription',
    route: 'GET /subscriptions/{subscription_id}',
    summary: 'Show a subscription',
    params,
    answers: { 200: Subscription },
    errors: REACH,
    refuses: { 403: ['subscription_out_of_scope'] },
    async handle({ host, caller, params }) {
      return showSubscription(
        accepted(await subscriptionOfClient(host.app, caller.client, params.subscription_id)),
      )
    },
  }),
  endpoint({
    operation: 'cancelSubscription',
    route: 'DELETE /subscriptions/{subscription_id}',
    summary: 'Cancel a subscription',
    description:
      'The subscription is cancelled at the card processor, and payments that were to come are `cancelled`. The webhook ' +
      '`subscription.cancelled` follows. One that is `canceled` already stays as it is. When the answer of the processor ' +
      'is lost (502), the service finds out by itself, from 15 minutes later on, and cancels it then.',
    params,
    answers: { 200: Subscription },
    errors: { ...REACH, 502: 'The card processor refused, could not be reached, or did not answer in time' },
    asksOutside: true,
    refuses: { 403: ['subscription_out_of_scope'] },
    async handle(call) {
      const { host, caller, params } = call
      const state = accepted(await subscriptionOfClient(host.app, caller.client, params.subscription_id))
      return showSubscription(accepted(await cancelSubscription(host.app, state, contextOf(call))))
    },
  }),
]

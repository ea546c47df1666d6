import { z } from 'zod'
import { simulateSubscriptionPayment } from '../../../../application/payments/simulated-processor.ts'
import { showSubscription } from '../../../../application/payments/subscriptions/show-subscriptions.ts'
import { subscriptionOfClient } from '../../../../application/payments/subscriptions/subscriptions.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { contextOf, endpoint, partnerIn } from '../../host/api.ts'
import { params, REACH, Subscription } from './subscription-schemas.ts'

const sandbox = partnerIn('sandbox', 'Charges can be simulated with sandbox keys only')

/** A simulated outcome of the next scheduled payment. @param failureCode null: it succeeds. */
function simulation(verb: 'charge' | 'fail', operation: string, summary: string, failureCode: string | null) {
  return endpoint({
    operation,
    route: `POST /sandbox/subscriptions/{subscription_id}/${verb}`,
    summary,
    description:
      'Plays the payment that failed before, else the next one, though it may not be due yet. With a sandbox key only.',
    access: sandbox,
    params,
    body: z.object({}),
    answers: { 200: Subscription },
    errors: {
      ...REACH,
      403: 'The key is not of the sandbox, or does not reach the subscription',
      409: 'The subscription is cancelled',
    },
    refuses: {
      403: ['subscription_out_of_scope'],
      404: ['subscription_not_found'],
      409: ['subscription_canceled'],
    },
    async handle(call) {
      const { app } = call.host
      const state = accepted(await subscriptionOfClient(app, call.caller.client, call.params.subscription_id))
      return showSubscription(
        accepted(await simulateSubscriptionPayment(app, state, failureCode, contextOf(call))),
      )
    },
  })
}

/** What in the sandbox happens to subscriptions as it otherwise would at the card processor. */
export const subscriptionSandboxEndpoints = [
  simulation('charge', 'simulateCharge', 'Let the next scheduled payment of a subscription succeed', null),
  simulation(
    'fail',
    'simulateFailedCharge',
    'Let the next scheduled payment of a subscription fail',
    'card_declined',
  ),
]

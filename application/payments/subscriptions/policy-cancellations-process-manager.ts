import { z } from 'zod'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { subscription } from '../../../domain/payments/subscriptions/subscription.ts'
import { SubscriptionStarted } from '../../../domain/payments/subscriptions/subscription-events.ts'
import { PolicyCancelled, policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import { within } from '../../commands/verbs.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ReadModelsLate } from '../../ports/read-models.ts'
import { plansOfPolicy } from './plan-subscriptions.ts'

/** Wants the plans of cancelled policies to end, of those as well that were cancelled before there was this. */
export function policyCancellations(app: Application) {
  return processManager({
    name: 'policy-cancellations',
    startAt: 'beginning',
    on: [
      // whichever comes later of a plan and the cancellation of its policy
      on(PolicyCancelled, ({ data, position }) => [endPlansOf(data.policy_id, position)]),
      on(SubscriptionStarted, ({ data: { policy_id, source }, position }) =>
        source === 'plan' ? [endPlansOf(policy_id, position)] : [],
      ),
    ],
    work: {
      'end-plans': work({ payload: z.object({ position: z.string() }) }, async (item) => {
        const { state } = await app.commands.load(policy, item.key)
        if (state?.status !== 'cancelled') return
        const isKnown = await app.readModels.reached(['subscriptions'], BigInt(item.payload.position))
        if (!isKnown) throw new ReadModelsLate()
        for (const plan of await plansOfPolicy(app, item.key)) {
          orThrow(
            await app.commands.execute(
              subscription,
              plan.subscription_id,
              { type: 'RequestCancellation', reason: 'policy_cancelled', at: app.clock.now() },
              within(contextOf(item), plan),
            ),
          )
        }
      }),
    },
  })
}

function endPlansOf(policyId: string, position: bigint) {
  return perform('end-plans', policyId, { position: String(position) })
}

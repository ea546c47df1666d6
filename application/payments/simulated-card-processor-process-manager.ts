import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import {
  SubscriptionChargeFailed,
  SubscriptionChargePaid,
  SubscriptionEnded,
  SubscriptionStarted,
} from '../../domain/payments/subscriptions/subscription-events.ts'
import type { Application } from '../commands/application.ts'
import type { RecordedEvent } from '../commands/event-registry.ts'
import {
  cancel,
  contextOf,
  on,
  perform,
  processManager,
  type WorkItem,
  type WorkOutcome,
  work,
} from '../followers/process-manager.ts'
import { nextStep, takeStep } from './simulated-processor.ts'

const NAME = 'simulated-card-processor'

/** Charges the subscriptions of the simulated card processor as they fall due, and again where that failed. */
export function simulatedCardProcessor(app: Application) {
  return processManager({
    name: NAME,
    startAt: 'beginning',
    on: [
      on(SubscriptionStarted, look),
      on(SubscriptionChargePaid, look),
      on(SubscriptionChargeFailed, look),
      on(SubscriptionEnded, ({ data }) => [cancel('charge', data.subscription_id)]),
    ],
    work: {
      charge: work({}, (item) => chargeWhatIsDue(app, item)),
    },
  })
}

/** What was simulated changes what comes next; what it did itself, it knows. */
function look({ data, metadata }: RecordedEvent<{ type: string; data: { subscription_id: string } }>) {
  return metadata.actor.id === NAME ? [] : [perform('charge', data.subscription_id, {})]
}

async function chargeWhatIsDue(app: Application, item: WorkItem): Promise<WorkOutcome> {
  for (;;) {
    item.signal.throwIfAborted()
    const { state } = await app.commands.load(subscription, item.key)
    const step = state && nextStep(state)
    if (!step || state.processor !== 'simulated') return { outcome: 'done' }
    if (step.at > app.clock.now()) return { outcome: 'again', at: step.at }
    await takeStep(app, state, step, {
      ...contextOf(item),
      commandId: `${item.commandId}/${step.number}/${step.failures}`,
    })
  }
}

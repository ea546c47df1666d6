import { z } from 'zod'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { type Subscription, subscription } from '../../../domain/payments/subscriptions/subscription.ts'
import {
  SubscriptionCancellationRequested,
  SubscriptionCancellationWithdrawn,
  SubscriptionChargeFailed,
  SubscriptionChargePaid,
  SubscriptionEnded,
  SubscriptionStarted,
  type SubscriptionStatus,
} from '../../../domain/payments/subscriptions/subscription-events.ts'
import type { Application } from '../../commands/application.ts'
import type { RecordedEvent } from '../../commands/event-registry.ts'
import { existing, readable, within } from '../../commands/verbs.ts'
import {
  cancel,
  contextOf,
  on,
  perform,
  processManager,
  type WorkItem,
  work,
} from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { asked } from '../processor/notice-source.ts'
import { processorOf, tellHeldUp } from '../processor/processor-of.ts'
import { paymentId } from './show-subscriptions.ts'
import { finishCancellation } from './subscriptions.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a subscription waits for its first payment, in service-clock milliseconds; processors wait a little longer. */
export const FIRST_PAYMENT_MS = 23 * HOUR_MS
/** How long the request for a cancellation has to finish it itself, in service-clock milliseconds. */
const CANCELLING_MS = 15 * MINUTE_MS

const charge = z.object({
  subscription_id: z.string(),
  number: z.int(),
  amount_cents: z.int(),
  at: z.string(),
  is_paid: z.boolean(),
})

/** Takes the first payments of subscriptions, ends those that nobody pays, and tells partners what became of them. */
export function subscriptions(app: Application) {
  /** What the processor of a subscription is to do. */
  const atProcessor = (
    run: (item: WorkItem, state: Subscription, raise: () => Promise<void>) => Promise<unknown>,
  ) =>
    work(ofProvider, (item) => {
      const raise = tellHeldUp(app, 'subscription', item)
      const done = async () => run(item, await existing(app, subscription, item.key), raise)
      return throughOutages(app, item, done, raise)
    })
  return processManager({
    name: 'subscriptions',
    startAt: 'beginning',
    on: [
      on(SubscriptionStarted, ({ data }) => {
        const { subscription_id, source, first_charge_paid, started_at } = data
        const at = Date.parse(started_at) + FIRST_PAYMENT_MS
        return [
          perform('tell-created', subscription_id, {}),
          ...(source === 'api' && !first_charge_paid
            ? [perform('charge-first', subscription_id, {}), perform('expire', subscription_id, {}, { at })]
            : []),
        ]
      }),
      on(SubscriptionChargePaid, (event) => [
        ...(event.data.number === 1 ? [cancel('expire', event.data.subscription_id)] : []),
        raiseCharge(event, true),
      ]),
      on(SubscriptionChargeFailed, (event) => [raiseCharge(event, false)]),
      on(SubscriptionCancellationRequested, ({ data: { subscription_id, reason, at } }) => [
        reason === 'policy_cancelled'
          ? perform('finish-cancellation', subscription_id, {})
          : perform('finish-cancellation', subscription_id, {}, { at: Date.parse(at) + CANCELLING_MS }),
      ]),
      on(SubscriptionCancellationWithdrawn, ({ data: { subscription_id } }) => [
        cancel('finish-cancellation', subscription_id),
      ]),
      on(SubscriptionEnded, ({ data: { subscription_id, reason } }) => [
        cancel('charge-first', subscription_id),
        cancel('expire', subscription_id),
        cancel('finish-cancellation', subscription_id),
        ...(reason === 'requested' || reason === 'policy_cancelled'
          ? [perform('tell-cancelled', subscription_id, {})]
          : []),
        // the others were ended by the processor, or with it
        ...(reason === 'never_paid' || reason === 'completed'
          ? [perform('end-at-processor', subscription_id, {})]
          : []),
      ]),
    ],
    work: {
      'charge-first': atProcessor(async (item, state) => {
        const { processor_subscription_id: id, status } = state
        if (status !== 'incomplete') return
        await unlessRefused(processorOf(app, state).chargeFirst(id, `first-${item.key}`))
      }),
      'end-at-processor': atProcessor(async (item, state, raise) => {
        const { processor_subscription_id: id, ended } = state
        // paid at the last moment: a person sees to it
        if (ended?.reason === 'never_paid' && !isUnpaid(await currentStatus(app, state))) return raise()
        await unlessRefused(processorOf(app, state).cancelSubscription(id, `end-${item.key}`))
      }),
      'finish-cancellation': atProcessor(async (item, state, raise) => {
        const { ended, cancellation } = state
        if (ended || cancellation === null) return
        try {
          await finishCancellation(app, state, { isFirstCall: false }, within(contextOf(item), state))
        } catch (error) {
          // its policy is cancelled, and it is charged on until somebody sees to it
          const isToEnd = error instanceof ProviderRefused && cancellation === 'policy_cancelled'
          if (isToEnd) await raise()
          throw error
        }
      }),
      // the payment may have had no notice: one that goes on there goes on here
      expire: atProcessor(async (item, state) => {
        if (state.status !== 'incomplete') return
        const status = await currentStatus(app, state)
        const at = item.dueAt
        const command = isUnpaid(status)
          ? { type: 'Expire' as const, at }
          : { type: 'Report' as const, status, at }
        const context = within(contextOf(item), state)
        const outcome = await app.commands.execute(subscription, item.key, command, context)
        orThrow(await readable(app, subscription, outcome))
      }),
      'tell-created': work({}, async (item) => {
        const { state } = await app.commands.loadAt(subscription, item.key, 0)
        await raise(app, item, state!, 'subscription.created')
      }),
      'tell-cancelled': work({}, async (item) => {
        await raise(app, item, await existing(app, subscription, item.key), 'subscription.cancelled')
      }),
      'tell-charge': work({ payload: charge }, async (item) => {
        const { subscription_id, number, amount_cents, at, is_paid } = item.payload
        const state = await existing(app, subscription, subscription_id)
        const common = {
          subscription_id,
          payment_id: paymentId(subscription_id, number),
          installment_number: number,
          amount_cents,
          currency: 'usd' as const,
        }
        const told = is_paid
          ? { type: 'installment.paid' as const, of: state, payload: { ...common, paid_at: at } }
          : { type: 'installment.failed' as const, of: state, payload: { ...common, failed_at: at } }
        await raiseWebhookEvent(app, told, contextOf(item))
      }),
    },
  })
}

/** Raises a webhook for every charge that the event of its creation does not tell, and for each failed try. */
function raiseCharge(
  { data, stream, revision }: RecordedEvent<{ type: string; data: Omit<z.output<typeof charge>, 'is_paid'> }>,
  is_paid: boolean,
) {
  const { subscription_id, number, amount_cents, at } = data
  const told = { subscription_id, number, amount_cents, at, is_paid }
  return perform('tell-charge', `${stream}@${revision}`, told)
}

/** How a subscription stands at its processor; as it is recorded where that has none, or tells by notices alone. */
async function currentStatus(app: Application, state: Subscription): Promise<SubscriptionStatus> {
  const now = await asked(app, state, state.processor_subscription_id)
  if (now === null) return state.status
  if (now.status === null) throw new Error('The card processor has a status that is not known here')
  return now.status
}

function isUnpaid(status: SubscriptionStatus): boolean {
  return status === 'incomplete' || status === 'canceled'
}

/** A payment that is declined, or what has ended there already: notices tell, and asking again does not help. */
async function unlessRefused(calling: Promise<void>): Promise<void> {
  try {
    await calling
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
  }
}

async function raise(
  app: Application,
  item: WorkItem,
  state: Subscription,
  type: 'subscription.created' | 'subscription.cancelled',
): Promise<void> {
  const { subscription_id, employer_id, policy_id, carrier_id, amount_cents, status, metadata } = state
  const whose = { employer_id, policy_id, carrier_id }
  const payload = { subscription_id, ...whose, amount_cents, currency: 'usd' as const, status, metadata }
  await raiseWebhookEvent(app, { type, of: state, payload }, contextOf(item))
}

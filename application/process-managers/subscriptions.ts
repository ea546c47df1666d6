import { z } from 'zod'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { type Subscription, subscription } from '../../domain/payments/subscription.ts'
import {
  SubscriptionCancellationRequested,
  SubscriptionCancellationWithdrawn,
  SubscriptionChargeFailed,
  SubscriptionChargePaid,
  SubscriptionEnded,
  SubscriptionStarted,
} from '../../domain/payments/subscription-events.ts'
import { PolicyCancelled, policy } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import { readable, within } from '../command-handling/verbs.ts'
import type { RecordedEvent } from '../event-registry.ts'
import { dayOf, recordSubscriptionHeldUp, type SubscriptionWork } from '../payments/held-up.ts'
import { plansOfPolicy } from '../payments/plan-subscriptions.ts'
import { processorOf } from '../payments/processor-of.ts'
import { paymentId } from '../payments/show-subscriptions.ts'
import { cancelSubscription, finishCancellation } from '../payments/subscriptions.ts'
import { ProviderRefused } from '../ports/provider.ts'
import { raiseWebhookEvent } from '../webhooks/raise.ts'
import {
  backoff,
  cancel,
  contextOf,
  on,
  perform,
  processManager,
  type WorkItem,
  type WorkOutcome,
  work,
} from './runtime/process-manager.ts'
import { ofProvider, throughOutages, waiting } from './through-outages.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a subscription waits for its first payment, in service-clock milliseconds; processors wait a little longer. */
export const FIRST_PAYMENT_MS = 23 * HOUR_MS
/** How long the request for a cancellation has to finish it itself, in service-clock milliseconds. */
const CANCELLING_MS = 15 * MINUTE_MS
/** Real milliseconds until it is asked again whether a plan can be read. */
const LOOK_AGAIN_MS = 1_000

const nothing = z.object({})
const told = z.object({ number: z.int(), amount_cents: z.int(), at: z.string(), is_paid: z.boolean() })
const ofPolicy = waiting.extend({ position: z.string() })
const telling = { retry: backoff(), timeLimitMs: 60_000 }

/** Takes the first payments of subscriptions, ends those that nobody pays, and tells partners what became of them. */
export function subscriptions(app: Application) {
  /** What the processor of a subscription is to do. */
  const atProcessor = (
    name: SubscriptionWork,
    run: (item: WorkItem, state: Subscription) => Promise<unknown>,
  ) =>
    work({ ...ofProvider, payload: waiting }, (item) =>
      throughOutages(
        app,
        item,
        async () => run(item, await load(app, item)),
        async (since) =>
          recordSubscriptionHeldUp(app, await load(app, item), { work: name, since }, contextOf(item)),
      ),
    )
  return processManager({
    name: 'subscriptions',
    startAt: 'beginning',
    on: [
      // whichever comes later of a plan and the cancellation of its policy
      on(PolicyCancelled, ({ data, position }) => [endPlansOf(data.policy_id, position)]),
      on(SubscriptionStarted, ({ data, position }) => {
        const { subscription_id, policy_id, source, first_charge_paid, started_at } = data
        const at = Date.parse(started_at) + FIRST_PAYMENT_MS
        return [
          perform('tell-created', subscription_id, {}),
          ...(source === 'plan' ? [endPlansOf(policy_id, position)] : []),
          ...(source === 'api' && !first_charge_paid
            ? [perform('charge-first', subscription_id, {}), perform('expire', subscription_id, {}, { at })]
            : []),
        ]
      }),
      on(SubscriptionChargePaid, (event) => [
        ...(event.data.number === 1 ? [cancel('expire', event.data.subscription_id)] : []),
        tellCharge(event, true),
      ]),
      on(SubscriptionChargeFailed, (event) => [tellCharge(event, false)]),
      on(SubscriptionCancellationRequested, ({ data: { subscription_id, at } }) => [
        perform('finish-cancellation', subscription_id, {}, { at: Date.parse(at) + CANCELLING_MS }),
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
      'charge-first': atProcessor('charge-first', async (item, state) => {
        const { processor_subscription_id: id, status } = state
        if (status !== 'incomplete') return
        await unlessRefused(processorOf(app, state).chargeFirst(id, `first-${item.key}`))
      }),
      'end-at-processor': atProcessor('end-at-processor', async (item, state) => {
        const { processor_subscription_id: id } = state
        await unlessRefused(processorOf(app, state).cancelSubscription(id, `end-${item.key}`))
      }),
      'finish-cancellation': atProcessor('finish-cancellation', async (item, state) => {
        const { ended, cancellation: reason } = state
        if (ended || reason === null) return
        await finishCancellation(app, state, { reason, isFirstCall: false }, within(contextOf(item), state))
      }),
      'end-plans': work({ ...ofProvider, payload: ofPolicy }, (item) => endPlans(app, item)),
      expire: work({ payload: nothing, ...telling }, async (item) => {
        const command = { type: 'Expire', at: item.dueAt } as const
        const context = within(contextOf(item), await load(app, item))
        const outcome = await app.commands.execute(subscription, item.key, command, context)
        const state = await readable(app, subscription, outcome)
        return isRejection(state) ? { outcome: 'stop', why: state.message } : { outcome: 'done' }
      }),
      'tell-created': work({ payload: nothing, ...telling }, async (item) => {
        const { state } = await app.commands.loadAt(subscription, item.key, 0)
        await tell(app, item, state!, 'subscription.created')
        return { outcome: 'done' }
      }),
      'tell-cancelled': work({ payload: nothing, ...telling }, async (item) => {
        await tell(app, item, await load(app, item), 'subscription.cancelled')
        return { outcome: 'done' }
      }),
      'tell-charge': work(
        { payload: told.extend({ subscription_id: z.string() }), ...telling },
        async (item) => {
          const { subscription_id, number, amount_cents, at, is_paid } = item.payload
          const { state } = await app.commands.load(subscription, subscription_id)
          const common = {
            ...{
              subscription_id,
              payment_id: paymentId(subscription_id, number),
              installment_number: number,
            },
            ...{ amount_cents, currency: 'usd' as const },
          }
          const whose = ownerOf(state!)
          await (is_paid
            ? raiseWebhookEvent(
                app,
                { type: 'installment.paid', ...whose, payload: { ...common, paid_at: at } },
                contextOf(item),
              )
            : raiseWebhookEvent(
                app,
                { type: 'installment.failed', ...whose, payload: { ...common, failed_at: at } },
                contextOf(item),
              ))
          return { outcome: 'done' }
        },
      ),
    },
  })
}

function endPlansOf(policyId: string, position: bigint) {
  return perform('end-plans', policyId, { position: String(position) })
}

/** Ends the plans of a policy if it is cancelled, each whatever becomes of the others. */
async function endPlans(
  app: Application,
  item: WorkItem<z.output<typeof ofPolicy>>,
): Promise<WorkOutcome<z.output<typeof ofPolicy>>> {
  if ((await app.commands.load(policy, item.key)).state?.status !== 'cancelled') return { outcome: 'done' }
  const isKnown = await app.readModels.reached(['subscriptions'], BigInt(item.payload.position))
  if (!isKnown) return { outcome: 'again', afterMs: LOOK_AGAIN_MS }
  const plans = await plansOfPolicy(app, item.key)
  const heldUp = (state: Subscription, since: number) =>
    recordSubscriptionHeldUp(app, state, { work: 'cancel', since }, contextOf(item))
  const cancelAll = async () => {
    const failures: unknown[] = []
    for (const state of plans) {
      try {
        await cancelSubscription(app, state, 'policy_cancelled', contextOf(item))
      } catch (error) {
        failures.push(error)
        // it is charged on until somebody sees to it
        if (error instanceof ProviderRefused) await heldUp(state, dayOf(app.clock.now()))
      }
    }
    // what helps to ask again comes first
    failures.sort(
      (one, other) => Number(one instanceof ProviderRefused) - Number(other instanceof ProviderRefused),
    )
    if (failures.length > 0) throw failures[0]
  }
  return throughOutages(app, item, cancelAll, async (since) => {
    for (const state of await plansOfPolicy(app, item.key)) await heldUp(state, since)
  })
}

/** Every charge that the event of its creation does not tell is told of, each failed try as well. */
function tellCharge(
  {
    data,
    stream,
    revision,
  }: RecordedEvent<{
    type: string
    data: { subscription_id: string; number: number; amount_cents: number; at: string }
  }>,
  is_paid: boolean,
) {
  const { subscription_id, number, amount_cents, at } = data
  return perform('tell-charge', `${stream}@${revision}`, {
    subscription_id,
    number,
    amount_cents,
    at,
    is_paid,
  })
}

async function load(app: Pick<Application, 'commands'>, item: WorkItem): Promise<Subscription> {
  return (await app.commands.load(subscription, item.key)).state!
}

/** A payment that is declined, or what has ended there already: notices tell, and asking again does not help. */
async function unlessRefused(calling: Promise<void>): Promise<void> {
  try {
    await calling
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
  }
}

async function tell(
  app: Application,
  item: WorkItem,
  state: Subscription,
  type: 'subscription.created' | 'subscription.cancelled',
): Promise<void> {
  const { subscription_id, employer_id, policy_id, carrier_id, amount_cents, status, metadata } = state
  const payload = {
    ...{ subscription_id, employer_id, policy_id, carrier_id, amount_cents },
    ...{ currency: 'usd' as const, status, metadata },
  }
  await raiseWebhookEvent(app, { type, ...ownerOf(state), payload }, contextOf(item))
}

function ownerOf({ tenant_id, environment, carrier_id, employer_id }: Subscription) {
  return { tenantId: tenant_id, environment, carrierId: carrier_id, employerId: employer_id }
}

import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { type Subscription, subscription } from '../../../domain/payments/subscriptions/subscription.ts'
import { namedPolicy } from '../../access/named-policy.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { readable, within } from '../../commands/verbs.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'
import { withOwnPairs } from '../pages/metadata.ts'
import { customerOf } from '../processor/processor-customers.ts'
import { heldUp, processorOf, processorToAsk } from '../processor/processor-of.ts'
import { unlessRefused } from '../processor/refused-fields.ts'

export interface NewSubscription
  extends Pick<Subscription, 'employer_id' | 'policy_id' | 'amount_cents' | 'metadata'> {
  /** Null: the only one of the key. */
  readonly carrier_id: string | null
  readonly payment_method_id: string
}

/** The employer and policy of a new subscription; or the subscription that an earlier attempt has started. */
type Prepared =
  | { readonly started: Subscription }
  | { readonly started: null; readonly carrierId: string; readonly customerId: string }

/**
 * Starts a monthly charge of an employer. The processor is asked first: it takes no money for a subscription before
 * that is recorded here.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function startSubscription(
  app: Application,
  client: KeyScope,
  input: NewSubscription,
  prepared: Prepared,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  if (prepared.started) return prepared.started
  const { carrierId, customerId } = prepared
  const { tenant_id, environment } = client
  const { employer_id, policy_id, amount_cents, payment_method_id, metadata } = input
  const subscriptionId = createdId(context, subscription)
  const asked = {
    subscriptionId,
    customerId,
    amountCents: amount_cents,
    paymentMethodId: payment_method_id,
    isPayersMethod: false,
    firstChargeAt: null,
    charges: null,
  }
  const processor = app.processors[environment]
  const made = await unlessRefused(
    () => processor.createSubscription(asked, `subscription-${subscriptionId}`),
    { payment_method: 'payment_method_id', amount: 'amount_cents' },
  )
  if (isRejection(made)) return made
  const now = isoTime(app.clock.now())
  const data = {
    subscription_id: subscriptionId,
    tenant_id,
    environment,
    employer_id,
    carrier_id: carrierId,
    policy_id,
    source: 'api' as const,
    link_id: null,
    processor: processor.kind,
    customer_id: customerId,
    payment_method_id,
    processor_subscription_id: made.processorSubscriptionId,
    amount_cents,
    charges: null,
    anchor_at: now,
    first_charge_paid: made.status === 'active',
    started_at: now,
    metadata: withOwnPairs(metadata, tenant_id),
  }
  const scoped = within(context, { tenant_id, environment })
  return readable(
    app,
    subscription,
    await app.commands.execute(subscription, subscriptionId, { type: 'Start', data }, scoped),
  )
}

/**
 * Refuses a subscription, or finds its employer and policy; nothing is stored. Nothing that changed since refuses what an earlier
 * attempt of the request has started.
 */
export async function prepareSubscription(
  app: Application,
  client: KeyScope,
  input: NewSubscription,
  context: CommandContext,
): Promise<Prepared | Rejection> {
  const { state } = await app.commands.load(subscription, createdId(context, subscription))
  if (state) {
    const started = await ownedBy(client, state, 'subscription', (one) => mayReach(client, one))
    return isRejection(started) ? started : { started }
  }
  const named = await namedPolicy(app, client, input)
  if (isRejection(named)) return named
  const processor = app.processors[client.environment].kind
  const customerId = await customerOf(app, input.employer_id, processor)
  if (customerId === null) {
    return reject(
      'conflict',
      'no_processor_customer',
      'The employer has no customer at the card processor yet: create its first payment link before a subscription',
      'employer_id',
    )
  }
  return { started: null, carrierId: named.carrier.carrier_id, customerId }
}

/** A subscription that a partner names. */
export async function subscriptionOfClient(
  app: Reads,
  client: KeyScope,
  subscriptionId: string,
): Promise<Subscription | Rejection> {
  const found = await stateOf(app, subscription, subscriptionId)
  return ownedBy(client, found, 'subscription', (one) => mayReach(client, one))
}

/**
 * Ends a subscription at the processor and here, as a partner wishes. That it was asked for is kept first: should the processor's notice of
 * the end come before its answer, or the answer never, it is known why. Again it changes nothing.
 * @throws ProviderUnavailable, ProviderRefused: then it goes on as before, unless what became of it is not known; that is
 * found out by itself after a while.
 */
export async function cancelSubscription(
  app: Application,
  state: Subscription,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const { subscription_id, ended } = state
  if (ended) return state
  const scoped = within(context, state)
  await processorToAsk(app, state, heldUp('subscription', subscription_id, 'cancel'), scoped)
  const requested = await app.commands.execute(
    subscription,
    subscription_id,
    { type: 'RequestCancellation', reason: 'requested', at: app.clock.now() },
    scoped,
  )
  if (isRejection(requested)) return requested
  return finishCancellation(app, state, { isFirstCall: requested.events.length > 0 }, scoped)
}

/**
 * Has a cancellation that was asked for done at the processor. A partner's is withdrawn where it certainly was not done
 * there: a processor refuses none that an earlier call has done, but may not be there when it is asked again.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function finishCancellation(
  app: Application,
  state: Subscription,
  { isFirstCall }: { readonly isFirstCall: boolean },
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const { subscription_id, processor_subscription_id } = state
  const record = (type: 'Cancel' | 'WithdrawCancellation') =>
    app.commands.execute(subscription, subscription_id, { type, at: app.clock.now() }, context)
  try {
    const key = `cancel-${subscription_id}`
    await processorOf(app, state).cancelSubscription(processor_subscription_id, key)
  } catch (error) {
    const neverGotThere = error instanceof ProviderUnavailable && error.nothingHappened && isFirstCall
    if (error instanceof ProviderRefused || neverGotThere) await record('WithdrawCancellation')
    throw error
  }
  return readable(app, subscription, await record('Cancel'))
}

export function unknown(): Rejection {
  return reject('not_found', 'subscription_not_found', 'There is no such subscription')
}

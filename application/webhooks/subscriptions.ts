import type { ApiClient } from '../../domain/access/api-client.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import { samplePayload } from '../../domain/webhooks/samples.ts'
import {
  isWithin,
  refuseMore,
  refuseUrl,
  subscriptionOf,
  subscriptionsId,
  type WebhookSubscription,
  type WebhookSubscriptionCommand,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { secretGone } from '../commands/secret-gone.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import type { DeliveryRecord, WebhookAnswer } from '../ports/webhooks.ts'

/**
 * Webhook subscriptions of a tenant and environment. One receives what lay in the scope of the key that registered it,
 * for ever; so it is managed by keys whose own scope holds all of that. For others it is out of reach: a key that moved it
 * to another address, or got its secret or its deliveries, would learn what their key must not see.
 */

/** The key on whose behalf. */
export type WebhookCaller = Pick<
  ApiClient,
  'client_id' | 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'
>

/** A subscription with the number of consecutive events that failed fully. */
export interface ShownSubscription extends WebhookSubscription {
  readonly failure_count: number
}

/** A subscription with its secret, which is shown this once and kept in the vault. */
export interface SubscriptionWithSecret {
  readonly subscription: WebhookSubscription
  readonly secret: string
}

/** The one attempt of a test delivery, and how it ended. */
export interface TestDelivery {
  readonly eventId: string
  readonly eventType: WebhookEventType
  readonly url: string
  readonly answer: WebhookAnswer
}

type Reads = Pick<Application, 'commands'>

/** The category that ids of subscriptions derive from. */
const SUBSCRIPTION = { category: 'webhookSubscription' } as const

/** The subscriptions that the key manages, newest first. */
export async function list(
  app: Pick<Application, 'commands' | 'webhooks'>,
  caller: WebhookCaller,
): Promise<readonly ShownSubscription[]> {
  const { subscriptions } = await load(app, caller)
  return withFailures(app, subscriptions.filter(({ scope }) => isWithin(scope, caller)).reverse())
}

/** A subscription that the key manages, as it is shown. */
export async function show(
  app: Pick<Application, 'commands' | 'webhooks'>,
  caller: WebhookCaller,
  id: string,
): Promise<ShownSubscription | Rejection> {
  const found = await find(app, caller, id)
  return isRejection(found) ? found : (await withFailures(app, [found]))[0]!
}

async function withFailures(
  { webhooks }: Pick<Application, 'webhooks'>,
  subscriptions: readonly WebhookSubscription[],
): Promise<readonly ShownSubscription[]> {
  const counts = await webhooks.deliveries.failureCounts(subscriptions.map(({ _id }) => _id))
  return subscriptions.map((one) => ({ ...one, failure_count: counts.get(one._id) ?? 0 }))
}

/** Why an address is not registered, null when it may be. */
export async function refuseRegistration(
  app: Pick<Application, 'commands' | 'webhooks'>,
  caller: WebhookCaller,
  { url }: { readonly url: string },
  context: CommandContext,
): Promise<Rejection | null> {
  const state = await load(app, caller)
  const ownId = createdId(context, SUBSCRIPTION)
  if (subscriptionOf(state, ownId)) return null
  return refuseUrl(state, url) ?? (await app.webhooks.sender.refuse(url)) ?? refuseMore(state)
}

/** Registers an address that nothing refuses, in the scope of the key. The secret is in the vault before the event names it. */
export async function register(
  app: Pick<Application, 'commands' | 'vault' | 'randomness' | 'clock'>,
  caller: WebhookCaller,
  input: { readonly url: string; readonly events: readonly WebhookEventType[] },
  context: CommandContext,
): Promise<SubscriptionWithSecret | Rejection> {
  const { client_id, tenant_id, environment, carrier_ids, employer_ids } = caller
  const subscription_id = createdId(context, SUBSCRIPTION)
  const { secret, secret_ref } = await keepNewSecret(app, subscription_id)
  const outcome = await execute(app, caller, context, {
    type: 'Register',
    data: {
      subscription_id,
      tenant_id,
      environment,
      client_id,
      url: input.url,
      events: [...input.events],
      secret_ref,
      carrier_ids,
      employer_ids,
      at: app.clock.now(),
    },
  })
  const subscription = outcomeOf(outcome, subscription_id)
  if (isRejection(subscription) || subscription.secret_ref !== secret_ref) await app.vault.remove(secret_ref)
  if (isRejection(subscription)) return subscription
  if (subscription.secret_ref !== secret_ref) return gone(subscription_id)
  return { subscription, secret }
}

/** Why a subscription is not moved to an address, null when it may be. */
export async function refuseMove(
  app: Pick<Application, 'commands' | 'webhooks'>,
  caller: WebhookCaller,
  id: string,
  url: string,
): Promise<Rejection | null> {
  return refuseUrl(await load(app, caller), url, id) ?? (await app.webhooks.sender.refuse(url))
}

/** Changes address, types, status, all or nothing; nothing refuses the address. */
export async function change(
  app: Pick<Application, 'commands' | 'webhooks' | 'clock'>,
  caller: WebhookCaller,
  id: string,
  to: {
    readonly url: string | null
    readonly events: readonly WebhookEventType[] | null
    readonly status: WebhookSubscription['status'] | null
  },
  context: CommandContext,
): Promise<ShownSubscription | Rejection> {
  const found = await find(app, caller, id)
  if (isRejection(found)) return found
  const at = app.clock.now()
  const verb = { subscriptionId: id, at }
  const outcome = await execute(
    app,
    caller,
    context,
    {
      type: 'Change',
      ...verb,
      ...(to.url !== null && { url: to.url }),
      ...(to.events !== null && { events: to.events }),
    },
    ...switched(to.status, verb),
  )
  const changed = outcomeOf(outcome, id)
  if (isRejection(changed)) return changed
  if (!isRejection(outcome) && outcome.events.some(({ type }) => type === 'WebhookSubscriptionEnabled')) {
    await app.webhooks.deliveries.resetFailures(id, outcome.revision)
  }
  return (await withFailures(app, [changed]))[0]!
}

function switched(
  status: WebhookSubscription['status'] | null,
  verb: { readonly subscriptionId: string; readonly at: number },
): readonly WebhookSubscriptionCommand[] {
  if (status === null) return []
  return [status === 'active' ? { type: 'Enable', ...verb } : { type: 'Disable', by: 'partner', ...verb }]
}

/**
 * Gives a subscription a new secret; nothing is signed with the old one from then on.
 * @returns a conflict when an earlier attempt under the same command did: its secret is gone.
 */
export async function rotate(
  app: Pick<Application, 'commands' | 'vault' | 'randomness' | 'clock'>,
  caller: WebhookCaller,
  id: string,
  context: CommandContext,
): Promise<SubscriptionWithSecret | Rejection> {
  const found = await find(app, caller, id)
  if (isRejection(found)) return found
  const { secret, secret_ref } = await keepNewSecret(app, id)
  const rotation = { type: 'Rotate', subscriptionId: id, secretRef: secret_ref, at: app.clock.now() } as const
  const subscription = outcomeOf(await execute(app, caller, context, rotation), id)
  if (isRejection(subscription) || subscription.secret_ref !== secret_ref) await app.vault.remove(secret_ref)
  if (isRejection(subscription)) return subscription
  return subscription.secret_ref === secret_ref ? { subscription, secret } : gone(id, 'rotated')
}

/** Removes a subscription: nothing is sent there any more. */
export async function remove(
  app: Pick<Application, 'commands' | 'clock'>,
  caller: WebhookCaller,
  id: string,
  context: CommandContext,
): Promise<{ readonly _id: string; readonly deleted: true } | Rejection> {
  const found = await find(app, caller, id)
  if (isRejection(found)) return found
  const deletion = { type: 'Delete', subscriptionId: id, at: app.clock.now() } as const
  const outcome = await execute(app, caller, context, deletion)
  return isRejection(outcome) ? outcome : { _id: id, deleted: true }
}

/**
 * Delivers a sample of an event, in one attempt that is over when this returns: at once and never again, and without
 * any meaning for the health of the subscription. Its record stands among the deliveries.
 * @param type default the first one of the subscription.
 */
export async function test(
  app: Pick<Application, 'commands' | 'webhooks' | 'vault' | 'randomness' | 'clock'>,
  caller: WebhookCaller,
  id: string,
  type: WebhookEventType | null,
): Promise<TestDelivery | Rejection> {
  const found = await find(app, caller, id)
  if (isRejection(found)) return found
  const refusal = refuseDisabled(found)
  if (refusal) return refusal
  const secret = await app.vault.get(found.secret_ref)
  if (secret === null) {
    const again = await find(app, caller, id)
    // it was rotated or deleted after it was read
    if (isRejection(again) || again.secret_ref !== found.secret_ref) return test(app, caller, id, type)
    throw new Error(`The vault has no secret of the webhook subscription ${id}`)
  }
  const { url } = found
  const { tenant_id: tenantId, environment } = caller
  const at = app.clock.now()
  const eventId = app.randomness.id()
  const eventType = type ?? found.events[0]!
  const body = JSON.stringify(samplePayload(eventType, at))
  // a caller that leaves before the answer has still made the attempt
  const { signal } = new AbortController()
  const request = { url, secret, eventId, eventType, body, timestamp: at }
  const answer = await app.webhooks.sender.post(request, signal)
  await app.webhooks.deliveries.recordTest({
    deliveryId: app.randomness.id(),
    subscriptionId: id,
    tenantId,
    environment,
    eventId,
    eventType,
    body,
    at,
    answer,
  })
  return { eventId, eventType, url, answer }
}

/** Why nothing is sent to a subscription, null when it is. */
export function refuseDisabled({ status }: WebhookSubscription): Rejection | null {
  if (status === 'active') return null
  const why = 'The webhook subscription is disabled, and disabled subscriptions receive nothing'
  return reject('conflict', 'subscription_disabled', why)
}

/** What became of deliveries, newest first. */
export async function deliveries(
  app: Pick<Application, 'commands' | 'webhooks'>,
  caller: WebhookCaller,
  id: string,
  page: PageRequest,
): Promise<ListPage<DeliveryRecord> | Rejection> {
  const found = await find(app, caller, id)
  return isRejection(found) ? found : deliveriesTo(app, id, page)
}

/** What became of deliveries to a subscription, newest first, whosever it is. */
export async function deliveriesTo(
  { webhooks: { deliveries } }: Pick<Application, 'webhooks'>,
  id: string,
  { page, limit }: PageRequest,
): Promise<ListPage<DeliveryRecord>> {
  const [items, total] = await Promise.all([
    deliveries.list(id, limit, (page - 1) * limit),
    deliveries.count(id),
  ])
  return { items, total }
}

/** A subscription that the key manages, or why it does not. */
export async function find(
  app: Reads,
  caller: WebhookCaller,
  id: string,
): Promise<WebhookSubscription | Rejection> {
  const subscription = subscriptionOf(await load(app, caller), id)
  if (!subscription) return missing()
  if (isWithin(subscription.scope, caller)) return subscription
  const why = 'The webhook subscription receives more than what lies in the scope of the key'
  return reject('forbidden', 'subscription_out_of_scope', why)
}

async function load(app: Reads, caller: WebhookCaller) {
  return (await app.commands.load(webhookSubscriptions, idOf(caller))).state
}

function idOf({ tenant_id, environment }: Pick<WebhookCaller, 'tenant_id' | 'environment'>): string {
  return subscriptionsId(tenant_id, environment)
}

/** Runs commands on the subscriptions, all or nothing; those of one tenant and environment in turn: all are in one stream. */
export function execute(
  app: Pick<Application, 'commands'>,
  caller: Pick<WebhookCaller, 'tenant_id' | 'environment'>,
  context: CommandContext,
  ...commands: readonly WebhookSubscriptionCommand[]
) {
  const id = idOf(caller)
  return app.commands.turns.run(id, () => app.commands.execute(webhookSubscriptions, id, commands, context))
}

/** What a subscription has become; a command that comes again may find it deleted meanwhile. */
function outcomeOf(
  outcome: Awaited<ReturnType<typeof execute>>,
  id: string,
): WebhookSubscription | Rejection {
  return isRejection(outcome) ? outcome : (subscriptionOf(outcome.state, id) ?? missing())
}

/** Makes a secret, 32 random bytes in base64, and puts it into the vault under a reference of its own. */
async function keepNewSecret(
  { randomness, vault }: Pick<Application, 'randomness' | 'vault'>,
  id: string,
): Promise<{ readonly secret: string; readonly secret_ref: string }> {
  const secret = `whsec_${Buffer.from(randomness.hex(32), 'hex').toString('base64')}`
  const secret_ref = `webhook-subscription/${id}/${randomness.hex(8)}`
  await vault.put(secret_ref, secret)
  return { secret, secret_ref }
}

function gone(id: string, done?: string): Rejection {
  return { ...secretGone('webhook subscription', id, done), ids: { id } }
}

export function missing(): Rejection {
  return reject('not_found', 'subscription_not_found', 'No such webhook subscription')
}

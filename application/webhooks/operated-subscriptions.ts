import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import {
  subscriptionOf,
  subscriptionsId,
  type WebhookSubscriptionCommand,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { DIRECTORY, DIRECTORY_ENTRY } from '../access/list-directory.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { within } from '../commands/verbs.ts'
import type { ListPage, PageRequest, ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { type ListScope, readPage } from '../queries/pages.ts'
import { execute, missing, type ShownSubscription } from './subscriptions.ts'

/**
 * What operators do to the webhook subscriptions of a tenant, whatever the scope of the key that registered them: when a
 * key leaked, the addresses that it registered go on receiving until somebody disables or deletes them.
 */

export interface OperatedSubscription extends ShownSubscription {
  readonly tenant_id: string
  readonly environment: Environment
}

type Parts = Pick<Application, 'commands' | 'webhooks' | 'clock'>

/** All subscriptions of a tenant, newest first. */
export async function listOf(
  app: Omit<Parts, 'clock'>,
  tenant_id: string,
): Promise<readonly OperatedSubscription[]> {
  const found = await Promise.all(
    (['live', 'sandbox'] as const).map(async (environment) => {
      const id = subscriptionsId(tenant_id, environment)
      const { state } = await app.commands.load(webhookSubscriptions, id)
      return state.subscriptions.map((one) => ({ ...one, tenant_id, environment }))
    }),
  )
  const all = found.flat()
  const counts = await app.webhooks.deliveries.failureCounts(all.map(({ _id }) => _id))
  return all
    .map((one) => ({ ...one, failure_count: counts.get(one._id) ?? 0 }))
    .sort((a, b) => b.created_at - a.created_at)
}

/** Of an entry of the directory. */
const kind = 'webhook_subscription'

/** The subscriptions of all tenants, newest first. */
export async function listAll(
  app: ListParts,
  scope: ListScope & { readonly status: string | null },
  page: PageRequest,
): Promise<ListPage<OperatedSubscription>> {
  const { items, total } = await readPage(app, DIRECTORY, { kind, ...scope }, page)
  return { items: await at(app, items), total }
}

/** The subscription with that id, whose ever; null: there is none. */
export async function subscriptionById(app: ListParts, id: string): Promise<OperatedSubscription | null> {
  const find = async () => (await app.read.query(DIRECTORY_ENTRY, { kind, id }))[0] ?? null
  const place = await findCurrent(app, 'directory', find)
  return place && ((await at(app, [place]))[0] ?? null)
}

type ListParts = Pick<Application, 'commands' | 'webhooks' | 'read' | 'readModels' | 'log'>

/** What stands at some places, as of now; one that was deleted meanwhile is left out. */
async function at(
  app: Omit<Parts, 'clock'>,
  found: readonly ResultOf<typeof DIRECTORY.rows>[],
): Promise<readonly OperatedSubscription[]> {
  const places = found as readonly (Pick<OperatedSubscription, 'tenant_id' | 'environment'> & {
    readonly id: string
  })[]
  const ids = places.map(({ tenant_id, environment }) => subscriptionsId(tenant_id, environment))
  const loaded = await app.commands.loadAll(webhookSubscriptions, ids)
  const counts = await app.webhooks.deliveries.failureCounts(places.map(({ id }) => id))
  return places.flatMap(({ id, tenant_id, environment }, index) => {
    const one = subscriptionOf(loaded[index]!.state, id)
    return one ? [{ ...one, tenant_id, environment, failure_count: counts.get(id) ?? 0 }] : []
  })
}

/** Stops deliveries to a subscription, until its partner enables it. Doing it again changes nothing. */
export async function disable(
  app: Parts,
  tenantId: string,
  subscriptionId: string,
  context: CommandContext,
): Promise<OperatedSubscription | Rejection> {
  const command = { type: 'Disable', by: 'operator', subscriptionId, at: app.clock.now() } as const
  const found = await operate(app, tenantId, command, context)
  if (isRejection(found)) return found
  return (await listOf(app, tenantId)).find(({ _id }) => _id === subscriptionId) ?? missing()
}

/** Removes a subscription for good. */
export async function remove(
  app: Parts,
  tenantId: string,
  subscriptionId: string,
  context: CommandContext,
): Promise<OperatedSubscription | Rejection> {
  return operate(app, tenantId, { type: 'Delete', subscriptionId, at: app.clock.now() }, context)
}

/** @returns the subscription as it was before. */
async function operate(
  app: Parts,
  tenantId: string,
  command: WebhookSubscriptionCommand & { readonly subscriptionId: string },
  context: CommandContext,
): Promise<OperatedSubscription | Rejection> {
  const found = (await listOf(app, tenantId)).find(({ _id }) => _id === command.subscriptionId)
  if (!found) return missing()
  const outcome = await execute(app, found, within(context, found), command)
  return isRejection(outcome) ? outcome : found
}

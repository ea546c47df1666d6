import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import type { DeliveryRecord } from '../ports/webhooks.ts'
import { listOf, type OperatedSubscription, subscriptionById } from './operated-subscriptions.ts'
import { type Resending, resend } from './partner-events.ts'
import { deliveriesTo, missing } from './subscriptions.ts'

/** What operators see of deliveries, and send again when a receiver is well once more. */

type Parts = Pick<Application, 'commands' | 'webhooks'>

/** Subscriptions of all tenants whose last events failed fully, the worst first. */
export async function listFailing(
  app: Parts & Pick<Application, 'read' | 'readModels' | 'log'>,
  page: PageRequest,
): Promise<ListPage<OperatedSubscription>> {
  const { items, total } = await app.webhooks.deliveries.failing(page)
  const found = await Promise.all(items.map((id) => subscriptionById(app, id)))
  return { items: found.filter((one) => one !== null), total }
}

/** A subscription of a tenant. */
export async function find(
  app: Parts,
  tenantId: string,
  id: string,
): Promise<OperatedSubscription | Rejection> {
  return (await listOf(app, tenantId)).find(({ _id }) => _id === id) ?? missing()
}

/** What became of deliveries of a subscription, newest first. */
export async function deliveriesOf(
  app: Parts,
  tenantId: string,
  id: string,
  page: PageRequest,
): Promise<ListPage<DeliveryRecord> | Rejection> {
  const found = await find(app, tenantId, id)
  return isRejection(found) ? found : deliveriesTo(app, id, page)
}

/** Sends events to a subscription again, as its partner could. @returns how many. */
export async function resendTo(
  app: Parameters<typeof resend>[0],
  tenantId: string,
  id: string,
  what: Resending,
  context: CommandContext,
): ReturnType<typeof resend> {
  const found = await find(app, tenantId, id)
  if (isRejection(found)) return found
  return resend(app, everythingOf(found), id, what, context, () => undefined)
}

function everythingOf({
  tenant_id,
  environment,
}: {
  readonly tenant_id: string
  readonly environment: Environment
}) {
  const reach = { carrier_ids: 'all', employer_ids: 'all' } as const
  return { tenant_id, environment, client_id: 'operator', ...reach }
}

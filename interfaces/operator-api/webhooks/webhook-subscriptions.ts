import { z } from 'zod'
import * as subscriptions from '../../../application/webhooks/operated-subscriptions.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import { id, idOf, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { noSuch } from '../../endpoints/not-found.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

export const Subscription = z
  .object({
    subscription_id: id(),
    ...owner,
    client_id: z
      .string()
      .describe('The key pair that registered it; it receives on when that is switched off'),
    url: z.string(),
    events: z.array(z.enum(WEBHOOK_EVENT_TYPES)).readonly(),
    status: z.enum(['active', 'disabled']),
    failure_count: z.int().describe('Consecutive events that failed in all 5 immediate attempts'),
    created_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'TenantWebhookSubscription' })

const ofTenant = ofOne('tenant_id', 'tenant')
export const params = ofTenant.params.extend({ subscription_id: idOf('webhook subscription') })
export const NONE = { 404: 'There is no such tenant, or it has no such webhook subscription' } as const

export const webhookSubscriptionEndpoints = [
  endpoint({
    operation: 'listWebhookSubscriptions',
    route: 'GET /webhook-subscriptions',
    summary: 'List the webhook subscriptions of all tenants, newest first, without secrets',
    ...listOf(Subscription, { ...scope, status: narrowing(word('active', 'disabled')) }),
    command: { name: 'webhook-subscriptions all' },
    columns: 'subscription_id environment status url tenant_id',
    handle: handleList(subscriptions.listAll, shown),
  }),
  endpoint({
    operation: 'showWebhookSubscription',
    route: 'GET /webhook-subscriptions/{subscription_id}',
    summary: 'Show a webhook subscription without its secret',
    ...ofOne('subscription_id', 'webhook subscription'),
    answers: { 200: Subscription },
    async handle({ host, params }) {
      const found = await subscriptions.subscriptionById(host.app, params.subscription_id)
      if (!found) throw noSuch('webhook subscription')
      return shown(found)
    },
  }),
  endpoint({
    operation: 'listTenantWebhooks',
    route: 'GET /tenants/{tenant_id}/webhooks',
    summary: 'List the webhook subscriptions of a tenant, newest first, without secrets',
    ...ofTenant,
    answers: { 200: z.array(Subscription).readonly() },
    command: { name: 'webhook-subscriptions list' },
    columns: 'subscription_id environment status client_id url',
    async handle({ host, params }) {
      const { tenant_id } = await loaded(host, tenant, params.tenant_id, 'tenant')
      return (await subscriptions.listOf(host.app, tenant_id)).map(shown)
    },
  }),
  endpoint({
    operation: 'disableTenantWebhook',
    route: 'POST /tenants/{tenant_id}/webhooks/{subscription_id}/disable',
    summary: 'Stop deliveries to an address, until the partner enables its subscription again',
    params,
    answers: { 200: Subscription },
    errors: NONE,
    command: { name: 'webhook-subscriptions disable' },
    async handle(call) {
      const { tenant_id, subscription_id } = call.params
      await loaded(call.host, tenant, tenant_id, 'tenant')
      const found = await subscriptions.disable(call.host.app, tenant_id, subscription_id, contextOf(call))
      return isRejection(found) ? found : shown(found)
    },
  }),
  endpoint({
    operation: 'deleteTenantWebhook',
    route: 'DELETE /tenants/{tenant_id}/webhooks/{subscription_id}',
    summary: 'Remove a webhook subscription: nothing is sent there any more',
    description: 'The answer shows it as it was.',
    params,
    answers: { 200: Subscription },
    errors: NONE,
    command: { name: 'webhook-subscriptions delete' },
    async handle(call) {
      const { tenant_id, subscription_id } = call.params
      await loaded(call.host, tenant, tenant_id, 'tenant')
      const found = await subscriptions.remove(call.host.app, tenant_id, subscription_id, contextOf(call))
      return isRejection(found) ? found : shown(found)
    },
  }),
]

/** A subscription as answers have it. */
export function shown(one: subscriptions.OperatedSubscription) {
  const { created_at, updated_at } = one
  return {
    ...one,
    subscription_id: one._id,
    created_at: isoTime(created_at),
    updated_at: isoTime(updated_at),
  }
}

import { z } from 'zod'
import {
  deliveriesOf,
  find,
  listFailing,
  resendTo,
} from '../../../application/webhooks/operated-deliveries.ts'
import { MAX_RESENT } from '../../../application/webhooks/partner-events.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import { inOrder } from '../../endpoints/bounds.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { id, isoMoment, optional, text, time } from '../../endpoints/fields.ts'
import { listAnswer, listed, listOf } from '../../endpoints/lists.ts'
import { badRequest, contextOf, endpoint, record } from '../host/api.ts'
import { shownTime } from '../host/values.ts'
import { NONE, params, Subscription, shown } from './webhook-subscriptions.ts'

const Delivery = z
  .object({
    delivery_id: id(),
    event_id: id().describe('`X-Webhook-ID`'),
    event_type: z.enum(WEBHOOK_EVENT_TYPES),
    status: z.enum(['pending', 'delivered', 'retrying', 'failed']),
    attempts: z.int(),
    last_response_code: z.int().nullable(),
    last_error: z.string().nullable(),
    last_attempt_at: shownTime().nullable(),
    delivered_at: shownTime().nullable(),
    created_at: shownTime(),
    test: z.boolean(),
    resent: z.boolean().describe('Sent again because somebody asked for it'),
  })
  .meta({ id: 'OperatorWebhookDelivery' })

export const webhookDeliveryEndpoints = [
  endpoint({
    operation: 'listFailingWebhooks',
    route: 'GET /webhooks/failing',
    summary: 'List webhook subscriptions of all tenants whose last events failed, the worst first',
    ...listOf(Subscription),
    command: { name: 'webhook-subscriptions failing' },
    columns: 'subscription_id tenant_id environment status failures:failure_count url',
    handle: ({ host: { app }, query }) => listed(query, (wanted) => listFailing(app, wanted), shown),
  }),
  endpoint({
    operation: 'showTenantWebhook',
    route: 'GET /tenants/{tenant_id}/webhooks/{subscription_id}',
    summary: 'Show a webhook subscription of a tenant, without its secret',
    command: null,
    params,
    answers: { 200: Subscription },
    errors: NONE,
    handle: async ({ host, params: { tenant_id, subscription_id } }) =>
      shown(accepted(await find(host.app, tenant_id, subscription_id))),
  }),
  endpoint({
    operation: 'listTenantWebhookDeliveries',
    route: 'GET /tenants/{tenant_id}/webhooks/{subscription_id}/deliveries',
    summary: 'List what became of deliveries of a webhook subscription, newest first, without their bodies',
    params,
    ...listOf(Delivery),
    errors: NONE,
    command: { name: 'webhook-subscriptions deliveries' },
    columns:
      'created_at type:event_type status attempts last_code:last_response_code last_error event_id:event_id',
    async handle({ host, params: { tenant_id, subscription_id }, query }) {
      const found = await deliveriesOf(host.app, tenant_id, subscription_id, query)
      if (isRejection(found)) return found
      const items = found.items.map(({ _id, payload: _, ...one }) => ({ ...one, delivery_id: _id }))
      return listAnswer(query, { items, total: found.total })
    },
  }),
  endpoint({
    operation: 'resendTenantWebhookEvents',
    route: 'POST /tenants/{tenant_id}/webhooks/{subscription_id}/resend',
    summary: 'Send events of the last 30 days to a webhook subscription again',
    description:
      `Either the one that \`event_id\` names, or those from \`from\` to \`to\` that it receives; ${MAX_RESENT} at the most. ` +
      'Each is a new delivery with the id and the body of the event, which the receiver may have had already.',
    params,
    body: inOrder(
      z.object({
        event_id: optional(id()).describe('This event'),
        from: optional(time()).describe('Raised then or later'),
        to: optional(time()).describe('Raised then or before'),
        reason: optional(text()).describe('Names nobody: it is kept as it is'),
      }),
      'from',
      'to',
    ),
    example: { event_id: '66838f2a5b1c4d7e9f012345', reason: 'The receiver was away' },
    answers: {
      200: z
        .object({
          resent: z.int(),
          from: isoMoment()
            .optional()
            .describe('Of a span: from when on events are sent again, `from`, but no more than 30 days ago'),
        })
        .meta({ id: 'ResentByOperator' }),
    },
    errors: {
      404: 'The tenant has no such webhook subscription, or there is no such event of the last 30 days',
      409: 'The subscription is disabled, or does not receive the event',
    },
    command: { name: 'webhook-subscriptions resend' },
    refuses: {
      400: ['too_many_webhook_events'],
      404: ['webhook_event_not_found'],
      409: ['subscription_disabled', 'webhook_event_not_subscribed'],
    },
    async handle(call) {
      const { tenant_id, subscription_id } = call.params
      const { event_id, from, to, reason } = call.body
      accepted(await find(call.host.app, tenant_id, subscription_id))
      const isSpan = from !== null && to !== null
      if ((event_id === null) !== isSpan) {
        throw badRequest('event_id', 'event_id is required, or from and to', 'field_missing')
      }
      const what = isSpan ? { from: isoTime(from), to: isoTime(to) } : { eventIds: [event_id!] }
      await record(call, 'resend-webhooks', subscription_id, { event_id, reason })
      const outcome = await resendTo(call.host.app, tenant_id, subscription_id, what, contextOf(call))
      // one event is named here
      const isOfEvent = isRejection(outcome) && outcome.field?.startsWith('event_ids')
      const { resent, from: sentFrom } = accepted(isOfEvent ? { ...outcome, field: 'event_id' } : outcome)
      return sentFrom === undefined ? { resent } : { resent, from: sentFrom }
    },
  }),
]

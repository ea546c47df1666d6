import { z } from 'zod'
import { listAllEvents } from '../../../application/webhooks/operated-events.ts'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import { webhookEvent } from '../../../domain/webhooks/webhook-event.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner } from '../host/values.ts'

const Listed = z
  .object({
    event_id: id().describe('`X-Webhook-ID`, the same in every delivery'),
    ...owner,
    event_type: z.enum(WEBHOOK_EVENT_TYPES),
    carrier_id: id().nullable(),
    employer_id: id().nullable(),
    dropped: z.array(z.string()).readonly().describe('Ids of deliveries that were given up after 48 hours'),
  })
  .meta({ id: 'OperatorWebhookEvent' })
const Shown = Listed.extend({
  payload: z.record(z.string(), z.unknown()).describe('The body of its deliveries'),
}).meta({ id: 'OperatorWebhookEventWithBody' })

export const webhookEventEndpoints = [
  endpoint({
    operation: 'listWebhookEvents',
    route: 'GET /webhook-events',
    summary: 'List events that were raised for partners, newest first',
    ...listOf(Listed, {
      ...scope,
      employer_id: narrowing(id()),
      carrier_id: narrowing(id()),
      event_type: narrowing(word(...WEBHOOK_EVENT_TYPES)),
    }),
    columns: 'event_id environment type:event_type employer_id carrier_id',
    handle: handleList(listAllEvents),
  }),
  endpoint({
    operation: 'showWebhookEvent',
    route: 'GET /webhook-events/{event_id}',
    summary: 'Show an event that was raised for partners, with the body of its deliveries',
    ...ofOne('event_id', 'webhook event'),
    answers: { 200: Shown },
    handle: ({ host, params }) => loaded(host, webhookEvent, params.event_id, 'webhook event'),
  }),
]

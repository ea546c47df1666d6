import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'

/** Events for partners. */
export const listAllEvents = operatorList(webhookEvent, {
  projection: 'webhook-events',
  table: 'webhook_events',
  id: 'event_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'event_type'],
})

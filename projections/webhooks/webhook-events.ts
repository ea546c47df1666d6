import { webhookEvents as table } from '../../application/webhooks/webhook-events-table.ts'
import { WebhookEventRaised } from '../../domain/webhooks/webhook-event.ts'
import { projection } from '../runtime/projection.ts'

/** Events for partners as they are listed, whether or not anybody had subscribed to them. */
export const webhookEvents = projection({
  name: 'webhook-events',
  version: 2,
  tables: [table],
  handlers: (on) => [
    on(WebhookEventRaised, {
      apply: ({ data, metadata, position }, { webhook_events }) =>
        webhook_events.put({ ...data, created_at: metadata.recorded_at, seq: position }),
    }),
  ],
})

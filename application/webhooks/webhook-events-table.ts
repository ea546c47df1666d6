import type { Environment } from '../../domain/kernel/ids.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import { bigint, orNull, type RowOf, table, text } from '../queries/table.ts'

/** What events for partners are found by; their bodies stand in the log, as they were raised. */
export const webhookEvents = table('webhook_events', {
  key: ['event_id'],
  columns: {
    event_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    event_type: text<WebhookEventType>(),
    carrier_id: orNull(text()),
    employer_id: orNull(text()),
    /** ISO 8601 UTC with milliseconds. */
    created_at: text(),
    /** Order of the log. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'created_at', 'seq'], ['employer_id', 'seq desc'], ['seq desc']],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    webhook_events: RowOf<typeof webhookEvents>
  }
}

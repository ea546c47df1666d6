import type { DeliveryChannel } from '../../domain/payments/links/payment-link-events.ts'
import type { OutgoingMessage } from './messages.ts'
import type { ListPage, PageRequest } from './read-database.ts'

/** What was recorded where no provider delivers. */
export interface Outbox {
  /** Newest first. @param filter null: all. */
  list(
    filter: { readonly channel: DeliveryChannel | null; readonly to: string | null },
    page: PageRequest,
  ): Promise<ListPage<RecordedMessage>>
}

export interface RecordedMessage extends Omit<OutgoingMessage, 'key' | 'dataSubject'> {
  /** ISO 8601. */
  readonly at: string
}

import type { Application } from '../commands/application.ts'
import type { Notices } from '../ports/notices.ts'
import type { DeliveryRecords, WebhookSender } from '../ports/webhooks.ts'

/** Hears what becomes of deliveries. */
export interface DeliveriesHeard {
  /** An attempt has ended. @param sinceRaisedMs how old its event was when it began, by the service's clock. */
  attempted(attempt: {
    readonly isFirst: boolean
    readonly isAccepted: boolean
    readonly sinceRaisedMs: number
  }): void
  /** The immediate ladder of a delivery has failed. */
  failed(): void
  /** A delivery was given up after 48 hours. */
  dropped(): void
  /** Deliveries that were not made because their event was older than 48 hours, and than all records, when it was read. */
  missed(deliveries: number): void
  /** A subscription was disabled because its receiver kept failing. */
  disabled(): void
}

/** What deliveries are made with. */
export interface DeliveryParts
  extends Pick<Application, 'log' | 'registry' | 'commands' | 'clock' | 'vault'> {
  readonly records: DeliveryRecords
  readonly sender: WebhookSender
  readonly heard: DeliveriesHeard
  readonly notices: Notices
}

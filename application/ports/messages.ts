import type { DeliveryChannel } from '../../domain/payments/links/payment-link-events.ts'

/** Emails and texts to customers. */
export interface Messages {
  /**
   * Hands a message to its delivering provider.
   * @throws ProviderUnavailable or ProviderRefused when it was not taken over.
   */
  send(message: OutgoingMessage): Promise<void>
}

export interface OutgoingMessage {
  /** What is sent again under the same key is the same message, for providers that can tell. Visible ASCII. */
  readonly key: string
  readonly channel: DeliveryChannel
  /** Address or number. */
  readonly to: string
  /** The sender's name and address, or number; null: the service's own. */
  readonly from: string | null
  /** Of an email. */
  readonly subject: string | null
  readonly text: string
  /** The data subject that it is about: what is kept of it is sealed under its key. */
  readonly dataSubject: string
}

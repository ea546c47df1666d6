/** E-mails and texts to customers. */
export interface Messages {
  /** @throws ProviderUnavailable or ProviderRefused when it was not taken over. */
  send(message: OutgoingMessage): Promise<void>
}

export interface OutgoingMessage {
  readonly channel: 'email' | 'sms'
  /** Address or number. */
  readonly to: string
  /** The sender's name and address, or number; null: the service's own. */
  readonly from: string | null
  /** Of an e-mail. */
  readonly subject: string | null
  readonly text: string
}

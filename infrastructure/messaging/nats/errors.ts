/** NATS cannot be used; the message is one clear line without credentials. */
export class NatsUnavailable extends Error {
  override readonly name = 'NatsUnavailable'
  /** Whether nobody answered; else the server refuses what was asked. */
  readonly isAway: boolean
  constructor(message: string, options: { readonly isAway: boolean }) {
    super(message)
    this.isAway = options.isAway
  }
}

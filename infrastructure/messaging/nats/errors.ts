/** NATS cannot be used; the message is one clear line without credentials. */
export class NatsUnavailable extends Error {
  override readonly name = 'NatsUnavailable'
  /** Whether no answer came; else the server refuses the request. */
  readonly isAway: boolean
  constructor(message: string, options: { readonly isAway: boolean }) {
    super(message)
    this.isAway = options.isAway
  }
}

const RETRY_AFTER_S = 2

/**
 * Something that the service needs does not answer in time, or is away. Nothing is wrong with what was asked: the same
 * may be asked again later. The outcome of a write may be unknown.
 */
export class ServiceUnavailable extends Error {
  /** Whole seconds after which a caller may try again; what `Retry-After` says. */
  readonly retryAfterSeconds: number
  /** Whether trying again may help; false where a person has to mend something first. */
  readonly passes: boolean
  constructor(
    message: string,
    options: { retryAfterSeconds?: number; passes?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ServiceUnavailable'
    this.retryAfterSeconds = options.retryAfterSeconds ?? RETRY_AFTER_S
    this.passes = options.passes ?? true
  }
}

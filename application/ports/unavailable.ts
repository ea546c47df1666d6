const RETRY_AFTER_S = 2
/** Seconds for what a person has to mend first: clients that obey do not hammer. */
export const UNTIL_MENDED_S = 60

/**
 * Something that the service needs does not answer in time, or is away. Nothing is wrong with what was asked: the same
 * may be asked again later. The outcome of a write may be unknown.
 */
export class ServiceUnavailable extends Error {
  /** Whole seconds after which a caller may try again; what `Retry-After` says. */
  readonly retryAfterSeconds: number
  /** Whether it passes by itself; false where the same may fail again until a person mends something. */
  readonly passes: boolean
  constructor(
    message: string,
    options: { retryAfterSeconds?: number; passes?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ServiceUnavailable'
    this.passes = options.passes ?? true
    this.retryAfterSeconds = options.retryAfterSeconds ?? (this.passes ? RETRY_AFTER_S : UNTIL_MENDED_S)
  }
}

/** Whether an error says only that something is away and comes back: nothing can be said against what was tried. */
export function isAway(error: unknown): boolean {
  return error instanceof ServiceUnavailable && error.passes
}

import type { Logger } from '../../infrastructure/telemetry/logger.ts'
import type { FailedRequest } from '../http/server.ts'
import { unavailability } from '../http/unavailable.ts'

/** How long a reason for 503 is not logged again, in real milliseconds. */
const QUIET_MS = 60_000

/**
 * Logs why requests fail: each 500, and the first 503 of each reason in a minute, as one server that is away fails every
 * request. How many there were tells the metric of requests.
 */
export class FailureLog {
  readonly #logger: Pick<Logger, 'warn' | 'error'>
  readonly #now: () => number
  /** When each reason was logged last, by the class of the error. */
  readonly #logged = new Map<string, number>()

  /** @param now real milliseconds of a clock that never goes back. */
  constructor(logger: Pick<Logger, 'warn' | 'error'>, now: () => number = () => performance.now()) {
    this.#logger = logger
    this.#now = now
  }

  /** @param host the name of the interface that was asked. */
  report(host: string, { id, method }: FailedRequest, error: unknown): void {
    const fields = { interface: host, request_id: id, method }
    const passing = unavailability(error)
    if (!passing) {
      this.#logger.error('request failed', fields, error)
      return
    }
    const reason = passing.because.name
    const now = this.#now()
    if (now - (this.#logged.get(reason) ?? -QUIET_MS) < QUIET_MS) return
    this.#logged.set(reason, now)
    this.#logger.warn('request not served', fields, error)
  }
}

import { WrongExpectedRevision } from '../../application/ports/event-log.ts'
import { ReadModelsLate } from '../../application/ports/read-models.ts'
import { ServiceUnavailable, UNTIL_MENDED_S } from '../../application/ports/unavailable.ts'

/** Seconds after which a caller should ask again for what is late. */
const LATE_READ_MODELS = 5
/** Seconds after which a caller should ask again for what others are changing all the time. */
const CONTENDED = 1
const MAX_CAUSES = 3

/** A failure that is not about the request: a server that the service depends on is away, or what it needs is late. */
export interface Unavailability {
  /** Whole seconds. */
  readonly retryAfter: number
  /** For the caller; tells nothing of servers and addresses. */
  readonly message: string
  /** What is away or late, for the log alone. */
  readonly because: Error
}

/** What a failure means when it is not about the request, null for all others; adapters tell them apart. */
export function unavailability(error: unknown): Unavailability | null {
  if (error instanceof ReadModelsLate)
    return { retryAfter: LATE_READ_MODELS, message: error.message, because: error }
  // the command handler tried again as often as it does: nothing was stored
  if (error instanceof WrongExpectedRevision) {
    const message = `Others change the same thing; try again in ${CONTENDED} s`
    return { retryAfter: CONTENDED, message, because: error }
  }
  const away = awayIn(error)
  if (!away) return null
  const silent = 'A part of the service does not answer'
  const retryAfter = away.retryAfterSeconds
  // nobody is told to try again what a person has to mend first
  const advice =
    retryAfter < UNTIL_MENDED_S ? `try again in ${retryAfter} s` : 'an operator has to mend it first'
  return { retryAfter, message: `${silent}; ${advice}`, because: away }
}

/** @param depth of errors that name another one as their cause. */
function awayIn(error: unknown, depth = 0): ServiceUnavailable | null {
  if (error instanceof ServiceUnavailable) return error
  return error instanceof Error && depth < MAX_CAUSES ? awayIn(error.cause, depth + 1) : null
}

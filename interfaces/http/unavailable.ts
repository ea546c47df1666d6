import { ReadModelsLate } from '../../application/ports/read-models.ts'
import { ServiceUnavailable } from '../../application/ports/unavailable.ts'

/** Seconds after which a caller should ask again. */
const LATE_READ_MODELS = 5
const SERVER_AWAY = 2
const MAX_CAUSES = 3

/** PostgreSQL's codes of lost and refused connections, of shutdowns and ended sessions, and of no connection left. */
const DATABASE_AWAY = /^(?:08...|28...|3D000|57P0[1-5]|25P0[34]|53300)$/
/** Errors of the connection itself. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
])
/** The same where the client gives no code. */
const CONNECTION_LOST =
  /^(?:Connection terminated|Client (?:has encountered a connection error|was closed)|timeout exceeded|Query read timeout|the connection was closed)/

/** A failure that passes by itself: a server that the service depends on is away, or what it needs is not there yet. */
export interface Unavailability {
  /** Whole seconds. */
  readonly retryAfter: number
  /** For the caller; tells nothing of servers and addresses. */
  readonly message: string
}

/** What a failure means when it passes by itself, null for all others. */
export function unavailability(error: unknown): Unavailability | null {
  if (error instanceof ReadModelsLate) return { retryAfter: LATE_READ_MODELS, message: error.message }
  if (!isServerAway(error)) return null
  return {
    retryAfter: SERVER_AWAY,
    message: `A part of the service does not answer; try again in ${SERVER_AWAY} s`,
  }
}

/** @param depth of errors that name another one as their cause. */
function isServerAway(error: unknown, depth = 0): boolean {
  if (error instanceof ServiceUnavailable) return true
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  const isAway =
    typeof code === 'string'
      ? DATABASE_AWAY.test(code) || UNREACHABLE.has(code)
      : CONNECTION_LOST.test(error.message)
  return isAway || (depth < MAX_CAUSES && isServerAway(error.cause, depth + 1))
}

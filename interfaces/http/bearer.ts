import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { requestIdOf } from './answers.ts'
import { HttpError } from './errors.ts'
import { limitAddress, type RateLimiter } from './rate-limit.ts'

const BEARER = /^bearer +(\S+) *$/i

/** The token of `Authorization: Bearer <token>`, null when there is none. */
export function bearerToken(request: IncomingMessage): string | null {
  return BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null
}

/** Compares secrets in a time that tells nothing about either. */
function sameSecret(presented: string, known: string): boolean {
  return timingSafeEqual(digest(presented), digest(known))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** A refused operator; never with the presented token. */
export interface RefusedOperator {
  readonly requestId: string
  /** Address of the caller, or of the proxy before it. */
  readonly address: string
  readonly why:
    | 'no token'
    | 'wrong token'
    | 'agent key'
    // of the console
    | 'session that has ended'
    | 'request of another site'
    | 'form token'
}

/** Who is let in. */
export interface Operator {
  readonly name: string
}

export interface OperatorGateSettings {
  /** Tells the key of an active agent credential; asked only within the limits. */
  readonly isAgentKey: (token: string) => Promise<boolean>
  /** Called for every refused token, also within the limits. */
  readonly onRefused: (refused: RefusedOperator) => void
}

/** Lets the operator through, by the bearer token. */
export class OperatorGate {
  readonly #token: string
  readonly #addresses: RateLimiter
  readonly #settings: OperatorGateSettings

  /** @param addresses limits callers without a valid token. */
  constructor(token: string, addresses: RateLimiter, settings: OperatorGateSettings) {
    this.#token = token
    this.#addresses = addresses
    this.#settings = settings
  }

  /** Whether a request carries the operator token. */
  isOperator(request: IncomingMessage): boolean {
    const presented = bearerToken(request)
    return presented !== null && this.operatorOf(presented) !== null
  }

  /** Who a token stands for, now: API and console ask here alone. Null: nobody. */
  operatorOf(token: string): Operator | null {
    return sameSecret(token, this.#token) ? { name: 'operator' } : null
  }

  /** Tells of a refusal. */
  report(request: IncomingMessage, response: ServerResponse, why: RefusedOperator['why']): void {
    const { remoteAddress } = request.socket
    this.#settings.onRefused({
      requestId: requestIdOf(response),
      address: remoteAddress ?? 'unknown',
      why,
    })
  }

  /** @throws HttpError 401 without the operator token, 403 for an active agent's key, 429. */
  async require(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isOperator(request)) return
    const presented = bearerToken(request)
    limitAddress(this.#addresses, request)
    const isAgent = presented !== null && (await this.#settings.isAgentKey(presented))
    this.report(request, response, presented === null ? 'no token' : isAgent ? 'agent key' : 'wrong token')
    if (isAgent) {
      throw new HttpError(403, 'Forbidden', 'An agent key does not open this route; send the operator token')
    }
    throw new HttpError(401, 'Unauthorized', 'Send the operator token as Authorization: Bearer <token>', {
      headers: { 'WWW-Authenticate': 'Bearer realm="operator"' },
    })
  }
}

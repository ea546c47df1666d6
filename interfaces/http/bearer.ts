import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { HttpError, tooManyRequests } from './errors.ts'
import { addressKey, type RateLimiter } from './rate-limit.ts'

const BEARER = /^bearer +(\S+) *$/i

/** The token of `Authorization: Bearer <token>`, null when there is none. */
export function bearerToken(request: IncomingMessage): string | null {
  return BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null
}

/** Compares secrets in a time that tells nothing about either. */
export function sameSecret(presented: string, known: string): boolean {
  return timingSafeEqual(digest(presented), digest(known))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Lets the operator through, by the bearer token, and nobody else. */
export class OperatorGate {
  readonly #token: string
  readonly #addresses: RateLimiter
  readonly #isAgentKey: (token: string) => Promise<boolean>

  /**
   * @param addresses limits those who present no valid token.
   * @param isAgentKey tells the key of an active agent credential; asked only within those limits.
   */
  constructor(token: string, addresses: RateLimiter, isAgentKey: (token: string) => Promise<boolean>) {
    this.#token = token
    this.#addresses = addresses
    this.#isAgentKey = isAgentKey
  }

  /** @throws HttpError 401 without the operator token, 403 for an active agent's key, 429. */
  async require(request: IncomingMessage): Promise<void> {
    const presented = bearerToken(request)
    if (presented !== null && sameSecret(presented, this.#token)) return
    const wait = this.#addresses.take(addressKey(request.socket.remoteAddress))
    if (wait > 0) throw tooManyRequests(wait)
    if (presented !== null && (await this.#isAgentKey(presented))) {
      throw new HttpError(403, 'Forbidden', 'An agent key does not open this route; send the operator token')
    }
    throw new HttpError(401, 'Unauthorized', 'Send the operator token as Authorization: Bearer <token>', {
      'WWW-Authenticate': 'Bearer realm="operator"',
    })
  }
}

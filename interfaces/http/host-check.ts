import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.ts'
import type { Guard } from './server.ts'

/**
 * Defence against DNS rebinding: a page that a browser loaded from elsewhere must not reach a host
 * under a name that resolves to this machine.
 *
 * - `Host`: on a loopback address only loopback names and the public address's own host pass.
 * - `Origin`: absent passes (no browser); present it must be the host that was asked, the public
 *   address's host, an origin that the settings allow, or on a loopback address any loopback name.
 *   `null` and what is no URL is refused.
 */
export class OriginCheck {
  readonly #loopback: boolean
  readonly #publicHost: string | null
  readonly #allowed: ReadonlySet<string>

  /**
   * @param boundHost the address that the listener binds.
   * @param publicUrl base address under which callers reach the host; null when there is none but its own.
   * @param allowed further origins, as browsers send them.
   */
  constructor(boundHost: string, publicUrl: string | null, allowed: readonly string[]) {
    this.#loopback = isLoopback(boundHost)
    this.#publicHost = publicUrl === null ? null : hostnameOf(publicUrl)
    this.#allowed = new Set(allowed)
  }

  /** @returns null when the request passes, else why it does not. */
  refusal(request: IncomingMessage): string | null {
    const host = hostnameOf(`http://${request.headers.host ?? ''}`)
    if (this.#loopback && (host === null || !this.#isOwn(host))) return 'The Host header is not this server'
    const { origin } = request.headers
    if (origin === undefined || this.#allowed.has(origin)) return null
    const from = hostnameOf(origin)
    if (from !== null && (from === host || this.#isOwn(from))) return null
    return 'The Origin header is not this server'
  }

  #isOwn(hostname: string): boolean {
    return hostname === this.#publicHost || (this.#loopback && isLoopback(hostname))
  }
}

/** Refuses with 403 whatever an {@link OriginCheck} refuses. */
export function ownNamesOnly(check: OriginCheck): Guard {
  return (request) => {
    const why = check.refusal(request)
    if (why !== null) throw new HttpError(403, null, why)
    return 'pass'
  }
}

function hostnameOf(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, hostname } = new URL(url)
  return (protocol === 'http:' || protocol === 'https:') && hostname !== '' ? hostname : null
}

const LOOPBACK = /^(?:(?:[^.]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1)$/i

function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname)
}

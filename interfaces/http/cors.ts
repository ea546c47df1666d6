import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendEmpty } from './answers.ts'
import { HttpError } from './errors.ts'
import type { OriginCheck } from './host-check.ts'
import type { Guard } from './server.ts'

/** Methods that a page may try; those that a path does not have are answered 405, which the page can then read. */
const METHODS = 'GET, POST, DELETE'

/** Request headers that a page may set beside those that need no permission. */
const REQUEST_HEADERS = [
  ...['Authorization', 'Content-Type', 'Accept', 'Idempotency-Key', 'X-Request-Id'],
  ...['Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'Mcp-Session-Id', 'Last-Event-ID'],
].join(', ')

/** Answer headers that a page may read beside those that need no permission. */
const EXPOSED_HEADERS =
  'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotent-Replayed, WWW-Authenticate'

/** How long a browser may keep the answer to a preflight, in seconds; browsers cap it themselves. */
const MAX_AGE_SECONDS = 86_400

/**
 * Cross-origin resource sharing for pages of the origins that `check` lets pass: answers their preflights, and lets
 * them read every answer, refusals included. Credentials of the browser (cookies) are never asked for: callers
 * authenticate by a header. A foreign origin gets no permission, not even to read its refusal.
 */
export function crossOrigin(check: OriginCheck): Guard {
  return (request, response) => {
    // caches must not hand the answer for one origin to a page of another
    response.setHeader('Vary', 'Origin')
    const why = check.refusal(request)
    if (why !== null) throw new HttpError(403, null, why)
    const { origin } = request.headers
    if (origin === undefined) return 'pass'
    response.setHeader('Access-Control-Allow-Origin', origin)
    if (isPreflight(request)) {
      permit(request, response)
      return 'answered'
    }
    response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS)
    return 'pass'
  }
}

function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

function permit(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Methods', METHODS)
  response.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS)
  response.setHeader('Access-Control-Max-Age', MAX_AGE_SECONDS)
  // asked by browsers for a page of a public address when this server's is private
  if (request.headers['access-control-request-private-network'] === 'true') {
    response.setHeader('Access-Control-Allow-Private-Network', 'true')
  }
  sendEmpty(response, 204)
}

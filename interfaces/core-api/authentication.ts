import type { IncomingMessage } from 'node:http'
import { authenticateClient } from '../../application/access/client-authentication.ts'
import type { Application } from '../../application/application.ts'
import type { ApiClient } from '../../domain/access/api-client.ts'
import type { Call } from '../http/calls.ts'
import { HttpError, tooManyRequests } from '../http/errors.ts'
import { addressKey, type RateLimits, unauthenticatedCost } from '../http/rate-limit.ts'
import { headerOf } from './requests.ts'
import { isSignedBy, isTimely } from './signatures.ts'

/** A client of the core API and the secret it presented, which keys its signatures. */
export interface AuthenticatedClient {
  readonly client: ApiClient
  readonly secret: string
}

const REFUSALS = {
  invalid_client_id: {
    error: 'Invalid client_id',
    message: 'X-Client-ID names no active client',
  },
  invalid_client_secret: {
    error: 'Invalid client_secret',
    message: 'X-Client-Secret is not the secret of this client',
  },
} as const

/**
 * Who sends a request, by its client headers; before a byte of its body is read.
 * @throws HttpError 401 in the documented words, 429.
 */
export async function authenticate(
  app: Application,
  limits: RateLimits,
  call: Call,
  request: IncomingMessage,
): Promise<AuthenticatedClient> {
  const clientId = headerOf(request.headers, 'x-client-id')
  const secret = headerOf(request.headers, 'x-client-secret')
  if (clientId === null || secret === null) {
    throw refused(
      limits,
      request,
      new HttpError(
        401,
        'Missing authentication headers',
        'Send the headers X-Client-ID and X-Client-Secret with every request',
      ),
    )
  }
  const client = await authenticateClient(app, clientId, secret)
  if (typeof client === 'string') {
    const { error, message } = REFUSALS[client]
    throw refused(limits, request, new HttpError(401, error, message))
  }
  await call.admit(client.client_id)
  return { client, secret }
}

/**
 * Checks the signature of a request whose client must sign: lower-case or upper-case hex
 * HMAC-SHA256 over `${X-Timestamp}.${raw body}` under the client secret. Other clients' signature
 * headers are ignored.
 * @throws HttpError 401 `Invalid signature`.
 */
export function requireSignature(
  app: Application,
  limits: RateLimits,
  { client, secret }: AuthenticatedClient,
  request: IncomingMessage,
  body: Buffer,
): void {
  if (client.request_signing !== 'required') return
  const signature = headerOf(request.headers, 'x-signature')
  const timestamp = headerOf(request.headers, 'x-timestamp')
  let message: string
  if (signature === null || timestamp === null) {
    message = 'This client must send the headers X-Signature and X-Timestamp'
  } else if (!isSignedBy(secret, timestamp, body, signature.toLowerCase())) {
    message = 'X-Signature is not the HMAC-SHA256 of the timestamp and the raw body under the client secret'
  } else if (!isTimely(timestamp, app.clock.now())) {
    message = 'X-Timestamp is not within 5 minutes of the server time (Unix milliseconds)'
  } else {
    return
  }
  throw refused(limits, request, new HttpError(401, 'Invalid signature', message), body.length)
}

/** Counts a refused request against its address: the refusal, or 429 when there were too many. */
export function refused(
  limits: RateLimits,
  request: IncomingMessage,
  refusal: HttpError,
  bodyBytes = 0,
): HttpError {
  const wait = limits.addresses.take(addressKey(request.socket.remoteAddress), unauthenticatedCost(bodyBytes))
  return wait > 0 ? tooManyRequests(wait) : refusal
}

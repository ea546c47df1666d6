import { authenticateClient } from '../../application/access/client-authentication.ts'
import type { Application } from '../../application/commands/application.ts'
import type { ApiClient } from '../../domain/access/api-client.ts'
import { nameCaller } from '../http/answers.ts'
import { type HttpCode, HttpError } from '../http/errors.ts'
import { headerOf } from '../http/headers.ts'
import { limitAddress, type RateLimits } from '../http/rate-limit.ts'
import { isSignedBy, isTimely } from '../http/signatures.ts'
import type { Access, Received } from './endpoint.ts'

/** What a host that partners call works with. */
export interface PartnerHost {
  readonly app: Application
  readonly limits: RateLimits
}

/** A partner's client and the secret it presented, which keys its signatures. */
export interface AuthenticatedClient {
  readonly client: ApiClient
  readonly secret: string
}

/** OpenAPI security schemes of a partner's client. */
export const PARTNER_SCHEMES = {
  clientId: { type: 'apiKey', in: 'header', name: 'X-Client-ID', description: 'The id of the client' },
  clientSecret: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Client-Secret',
    description: 'The secret that was shown once when the client was issued',
  },
  timestamp: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Timestamp',
    description: 'Unix time in milliseconds, of clients that must sign',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Signature',
    description: 'Hex HMAC-SHA256 of timestamp, a full stop and the raw body, under the client secret',
  },
} as const

const REFUSALS = {
  invalid_client_id: { error: 'Invalid client_id', message: 'X-Client-ID names no active client' },
  invalid_client_secret: {
    error: 'Invalid client_secret',
    message: 'X-Client-Secret is not the secret of this client',
  },
} as const

/**
 * A partner's client, by its headers. Clients that must sign send lower-case or upper-case hex HMAC-SHA256 over
 * `${X-Timestamp}.${raw body}` under their secret; signatures of others are ignored.
 * @param options.ownWords whether errors have words of their own, or the general one for 401.
 * @param options.refuse what else refuses an authenticated client.
 */
export function partnerAccess(options: {
  readonly ownWords: boolean
  readonly errors?: Access<PartnerHost, AuthenticatedClient>['errors']
  readonly refuse?: (client: ApiClient) => HttpError | null
}): Access<PartnerHost, AuthenticatedClient> {
  const { ownWords, errors, refuse } = options
  const unauthorized = (error: string, message: string, code?: HttpCode) =>
    new HttpError(401, ownWords ? error : null, message, { code })
  return {
    security: [
      { clientId: [], clientSecret: [] },
      { clientId: [], clientSecret: [], timestamp: [], signature: [] },
    ],
    errors: {
      401: 'Credentials or signature are missing or wrong',
      429: 'Too many requests, or too much at once',
      ...errors,
    },
    async identify(host, received) {
      const { headers } = received.request
      const clientId = headerOf(headers, 'x-client-id')
      const secret = headerOf(headers, 'x-client-secret')
      if (clientId === null || secret === null) {
        const message = 'Send the headers X-Client-ID and X-Client-Secret with every request'
        throw refused(
          host,
          received,
          unauthorized('Missing authentication headers', message, 'credentials_missing'),
        )
      }
      const found = await authenticateClient(host.app, clientId, secret)
      if (typeof found === 'string') {
        const { error, message } = REFUSALS[found]
        throw refused(host, received, unauthorized(error, message))
      }
      nameCaller(received.response, found.client_id)
      await received.costs.admit(found.client_id)
      const refusal = refuse?.(found)
      if (refusal) throw refusal
      return { client: found, secret }
    },
    signsBytes: mustSign,
    verify(host, caller, bytes, received) {
      if (!mustSign(caller)) return
      const message = signatureFault(host, caller.secret, bytes, received)
      if (message !== null)
        throw refused(
          host,
          received,
          unauthorized('Invalid signature', message, 'invalid_signature'),
          bytes.length,
        )
    },
  }
}

function mustSign({ client }: AuthenticatedClient): boolean {
  return client.request_signing === 'required'
}

function signatureFault(
  { app }: PartnerHost,
  secret: string,
  bytes: Buffer,
  { request: { headers } }: Received,
): string | null {
  const signature = headerOf(headers, 'x-signature')
  const timestamp = headerOf(headers, 'x-timestamp')
  if (signature === null || timestamp === null) {
    return 'This client must send the headers X-Signature and X-Timestamp'
  }
  if (!isSignedBy(secret, timestamp, bytes, signature.toLowerCase())) {
    return 'X-Signature is not the HMAC-SHA256 of the timestamp and the raw body under the client secret'
  }
  return isTimely(timestamp, app.clock.now())
    ? null
    : 'X-Timestamp is not within 5 minutes of the server time (Unix milliseconds)'
}

/** Counts a refused request against its address. @returns the refusal. @throws HttpError 429. */
export function refused(
  { limits }: Pick<PartnerHost, 'limits'>,
  { request }: Received,
  refusal: HttpError,
  bodyBytes = 0,
): HttpError {
  limitAddress(limits.addresses, request, bodyBytes)
  return refusal
}

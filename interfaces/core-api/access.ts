import { authenticateClient } from '../../application/access/client-authentication.ts'
import type { ApiClient } from '../../domain/access/api-client.ts'
import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Access, Received } from '../endpoints/endpoint.ts'
import { HttpError } from '../http/errors.ts'
import { addressKey, limitAddress } from '../http/rate-limit.ts'
import type { CoreHost } from './api.ts'
import { headerOf } from './headers.ts'
import { isSignedBy, isTimely } from './signatures.ts'

/** A client of the core API and the secret it presented, which keys its signatures. */
export interface AuthenticatedClient {
  readonly client: ApiClient
  readonly secret: string
}

/** An inbound connection and what its request was signed with. */
export interface SigningConnection {
  readonly connection: InboundConnection
  readonly signature: string
  readonly timestamp: string
}

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
 */
export const client: Access<CoreHost, AuthenticatedClient> = {
  security: [
    { clientId: [], clientSecret: [] },
    { clientId: [], clientSecret: [], timestamp: [], signature: [] },
  ],
  errors: {
    401: 'Credentials or signature are missing or wrong',
    429: 'Too many requests, or too much at once',
  },
  async identify(host, received) {
    const { headers } = received.request
    const clientId = headerOf(headers, 'x-client-id')
    const secret = headerOf(headers, 'x-client-secret')
    if (clientId === null || secret === null) {
      const message = 'Send the headers X-Client-ID and X-Client-Secret with every request'
      throw refused(host, received, unauthorized('Missing authentication headers', message))
    }
    const found = await authenticateClient(host.app, clientId, secret)
    if (typeof found === 'string') {
      const { error, message } = REFUSALS[found]
      throw refused(host, received, unauthorized(error, message))
    }
    await received.costs.admit(found.client_id)
    return { client: found, secret }
  },
  signsBytes: mustSign,
  verify(host, caller, bytes, received) {
    if (!mustSign(caller)) return
    const message = signatureFault(host, caller.secret, bytes, received)
    if (message !== null)
      throw refused(host, received, unauthorized('Invalid signature', message), bytes.length)
  },
}

function mustSign({ client }: AuthenticatedClient): boolean {
  return client.request_signing === 'required'
}

function signatureFault(
  { app }: CoreHost,
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

/**
 * An inbound connection, by its id in the path and the signature of timestamp and raw body. Who cannot sign learns
 * nothing about the time.
 */
export const connection: Access<CoreHost, SigningConnection> = {
  security: [{ webhookSignature: [], webhookTimestamp: [] }],
  errors: {
    401: 'The signature is missing or wrong, or its time is too far from now',
    404: 'There is no active connection with this id',
    429: 'Too many requests, or too much at once',
  },
  async identify(host, received) {
    const { params, request, costs } = received
    const id = params.connection_id
    const found = isId(id) ? (await host.app.commands.load(inboundConnection, id)).state : null
    if (found?.status !== 'active') {
      const refusal = new HttpError(404, 'Connection not found', 'There is no active connection with this id')
      throw refused(host, received, refusal)
    }
    // who only knows the id takes no slots from who can sign
    costs.identify(`${found.connection_id} ${addressKey(request.socket.remoteAddress)}`)
    const signature = headerOf(request.headers, 'x-webhook-signature')
    const timestamp = headerOf(request.headers, 'x-webhook-timestamp')
    if (signature === null || timestamp === null) {
      const message = 'Send the headers X-Webhook-Signature and X-Webhook-Timestamp with every request'
      throw refused(host, received, unauthorized('Missing authentication headers', message))
    }
    return { connection: found, signature, timestamp }
  },
  async verify(host, { connection, signature, timestamp }, bytes, received) {
    const secret = await host.app.vault.get(connection.secret_ref)
    if (secret === null) throw new Error(`The vault has no secret of connection ${connection.connection_id}`)
    if (!isSignedBy(secret, timestamp, bytes, signature)) {
      const message =
        'X-Webhook-Signature is not the lower-case hex HMAC-SHA256 of the timestamp and the raw body'
      throw refused(host, received, unauthorized('Invalid signature', message), bytes.length)
    }
    if (!isTimely(timestamp, host.app.clock.now())) {
      const message = 'X-Webhook-Timestamp is not within 5 minutes of the server time (Unix milliseconds)'
      throw refused(host, received, unauthorized('Timestamp outside tolerance', message), bytes.length)
    }
    await received.costs.admit(connection.connection_id)
  },
}

function unauthorized(error: string, message: string): HttpError {
  return new HttpError(401, error, message)
}

/** Counts a refused request against its address. @returns the refusal. @throws HttpError 429. */
function refused({ limits }: CoreHost, { request }: Received, refusal: HttpError, bodyBytes = 0): HttpError {
  limitAddress(limits.addresses, request, bodyBytes)
  return refusal
}

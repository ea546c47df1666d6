import { stateOf } from '../../../application/access/owned-by.ts'
import { type InboundConnection, inboundConnection } from '../../../domain/access/inbound-connection.ts'
import type { Access } from '../../endpoints/endpoint.ts'
import { type PartnerHost, partnerAccess, refused } from '../../endpoints/partner-access.ts'
import { nameCaller } from '../../http/answers.ts'
import { type HttpCode, HttpError } from '../../http/errors.ts'
import { headerOf } from '../../http/headers.ts'
import { addressKey } from '../../http/rate-limit.ts'
import { isSignedBy, isTimely } from '../../http/signatures.ts'

/** An inbound connection and what its request was signed with. */
export interface SigningConnection {
  readonly connection: InboundConnection
  readonly signature: string
  readonly timestamp: string
}

/** A partner's client, by its headers, in the words of this host. */
export const client = partnerAccess({ ownWords: true })

/**
 * An inbound connection, by its id in the path and the signature of timestamp and raw body. A caller that cannot sign learns
 * nothing about the time.
 */
export const connection: Access<PartnerHost, SigningConnection> = {
  security: [{ webhookSignature: [], webhookTimestamp: [] }],
  errors: {
    401: 'The signature is missing or wrong, or its time is too far from now',
    404: 'There is no active connection with this id',
    429: 'Too many requests, or too much at once',
  },
  async identify(host, received) {
    const { params, request, costs } = received
    const id = params.connection_id
    const found = await stateOf(host.app, inboundConnection, id)
    if (found?.status !== 'active') {
      const why = 'There is no active connection with this id'
      const refusal = new HttpError(404, 'Connection not found', why, { code: 'connection_not_found' })
      throw refused(host, received, refusal)
    }
    // a caller that only knows the id takes no slots from one that can sign
    costs.identify(`${found.connection_id} ${addressKey(request.socket.remoteAddress)}`)
    const signature = headerOf(request.headers, 'x-webhook-signature')
    const timestamp = headerOf(request.headers, 'x-webhook-timestamp')
    if (signature === null || timestamp === null) {
      const message = 'Send the headers X-Webhook-Signature and X-Webhook-Timestamp with every request'
      throw refused(
        host,
        received,
        unauthorized('Missing authentication headers', message, 'credentials_missing'),
      )
    }
    return { connection: found, signature, timestamp }
  },
  isKey: true,
  async verify(host, { connection, signature, timestamp }, bytes, received) {
    const secret = await host.app.vault.get(connection.secret_ref)
    if (secret === null) throw new Error(`The vault has no secret of connection ${connection.connection_id}`)
    if (!isSignedBy(secret, timestamp, bytes, signature)) {
      const message =
        'X-Webhook-Signature is not the lower-case hex HMAC-SHA256 of the timestamp and the raw body'
      throw refused(
        host,
        received,
        unauthorized('Invalid signature', message, 'invalid_signature'),
        bytes.length,
      )
    }
    if (!isTimely(timestamp, host.app.clock.now())) {
      const message = 'X-Webhook-Timestamp is not within 5 minutes of the server time (Unix milliseconds)'
      throw refused(
        host,
        received,
        unauthorized('Timestamp outside tolerance', message, 'timestamp_outside_tolerance'),
        bytes.length,
      )
    }
    nameCaller(received.response, connection.connection_id)
    await received.costs.admit(connection.connection_id)
  },
}

function unauthorized(error: string, message: string, code: HttpCode): HttpError {
  return new HttpError(401, error, message, { code })
}

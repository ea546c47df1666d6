import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Application } from '../../application/application.ts'
import type { ReportSender } from '../../application/payroll/report-payroll.ts'
import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Call } from '../http/calls.ts'
import { HttpError } from '../http/errors.ts'
import { addressKey, type RateLimits } from '../http/rate-limit.ts'
import { idempotencyKeyOf } from '../http/rejections.ts'
import { refused } from './authentication.ts'
import { answerReport, parseReport } from './payroll-reports.ts'
import { headerOf, parseBody, readJsonBytes } from './requests.ts'
import { isSignedBy, isTimely } from './signatures.ts'

/**
 * Payroll pushed with a signature instead of client credentials. The signature covers timestamp and
 * raw body, so the same signature is the same request again and gets the first answer.
 */
export class InboundWebhook {
  readonly #app: Application
  readonly #limits: RateLimits

  constructor(app: Application, limits: RateLimits) {
    this.#app = app
    this.#limits = limits
  }

  /** @throws HttpError 400, 401, 404, 409, 413, 415, 429, 502 in the documented words. */
  async handle(
    call: Call,
    connectionId: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const connection = isId(connectionId)
      ? (await this.#app.commands.load(inboundConnection, connectionId)).state
      : null
    if (connection?.status !== 'active') {
      throw this.#refused(request, 404, 'Connection not found', 'There is no active connection with this id')
    }
    // who only knows the id takes no slots from who can sign
    call.identify(`${connection.connection_id} ${addressKey(request.socket.remoteAddress)}`)
    const { body, signature } = await this.#authenticated(call, connection, request)
    await call.admit(connection.connection_id)
    const header = idempotencyKeyOf(request.headers)
    const parsed = await parseBody(body, call)
    const sender: ReportSender = {
      source: 'inbound_webhook',
      id: connection.connection_id,
      tenantId: connection.tenant_id,
      environment: connection.environment,
      scope: { employer_ids: 'all', carrier_ids: 'all' },
    }
    const report = await parseReport(parsed)
    await answerReport(this.#app, sender, report, parsed, { header, signature }, response)
  }

  /** The body, once signature and time are right; who cannot sign learns nothing about the time. */
  async #authenticated(
    call: Call,
    connection: InboundConnection,
    request: IncomingMessage,
  ): Promise<{ body: Buffer; signature: string }> {
    const signature = headerOf(request.headers, 'x-webhook-signature')
    const timestamp = headerOf(request.headers, 'x-webhook-timestamp')
    if (signature === null || timestamp === null) {
      throw this.#refused(
        request,
        401,
        'Missing authentication headers',
        'Send the headers X-Webhook-Signature and X-Webhook-Timestamp with every request',
      )
    }
    const body = await readJsonBytes(request, call)
    const secret = await this.#app.vault.get(connection.secret_ref)
    if (secret === null) throw new Error(`The vault has no secret of connection ${connection.connection_id}`)
    if (!isSignedBy(secret, timestamp, body, signature)) {
      throw this.#refused(
        request,
        401,
        'Invalid signature',
        'X-Webhook-Signature is not the lower-case hex HMAC-SHA256 of the timestamp and the raw body',
        body.length,
      )
    }
    if (!isTimely(timestamp, this.#app.clock.now())) {
      throw this.#refused(
        request,
        401,
        'Timestamp outside tolerance',
        'X-Webhook-Timestamp is not within 5 minutes of the server time (Unix milliseconds)',
        body.length,
      )
    }
    return { body, signature }
  }

  #refused(
    request: IncomingMessage,
    status: number,
    error: string,
    message: string,
    bodyBytes?: number,
  ): HttpError {
    return refused(this.#limits, request, new HttpError(status, error, message), bodyBytes)
  }
}

import type { Agent } from 'node:http'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { traced, traceHeaders } from '../../application/ports/tracing.ts'
import type { WebhookAnswer, WebhookRequest, WebhookSender } from '../../application/ports/webhooks.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { AddressRange } from '../config/config.ts'
import { CheckedAgent } from './checked-agent.ts'
import { exchange } from './exchange.ts'
import { HostResolver, nameServersOf } from './resolver.ts'
import { signedHeaders } from './signed-headers.ts'
import { formFault } from './target-addresses.ts'
import { TargetGuard, TargetRefused } from './target-guard.ts'

/**
 * One attempt, from the look-up of the host to the end of the answer, in real milliseconds. An answer that goes on then
 * counts by its status.
 */
const ATTEMPT_MS = 10_000
/** Of an answer's body; what is longer is not waited for. */
const ANSWER_BYTES = 20 * 1024
/** Of all that comes back in all, with what wraps a body. */
const RECEIVED_BYTES = 64 * 1024
const USER_AGENT = 'compstream-webhooks/1'

interface Options {
  /** Ranges that targets may lie in although they are not public. */
  readonly allowedRanges: readonly AddressRange[]
  /** PEM text of further authorities; null: none. */
  readonly extraCa: string | null
  /** Name servers, `address:port`; null: the machine's. */
  readonly nameServers?: readonly string[] | null
  readonly guard?: TargetGuard
  /** In place of checked connections with TLS, for measurements. */
  readonly plainAgent?: Agent
  /** How long an attempt may take, in real milliseconds; default {@link ATTEMPT_MS}. */
  readonly attemptMs?: number
}

/** Sends webhooks over HTTPS to addresses that were checked. */
export class HttpsWebhookSender implements WebhookSender {
  readonly #guard: TargetGuard
  readonly #agent: Agent
  readonly #request: typeof overHttps
  readonly #attemptMs: number

  constructor({ allowedRanges, extraCa, nameServers = null, plainAgent, ...options }: Options) {
    const guard =
      options.guard ?? new TargetGuard(allowedRanges, HostResolver.asking(nameServersOf(nameServers)))
    this.#guard = guard
    this.#attemptMs = options.attemptMs ?? ATTEMPT_MS
    this.#agent = plainAgent ?? new CheckedAgent(guard, extraCa)
    this.#request = plainAgent ? overHttp : overHttps
  }

  async refuse(url: string): Promise<Rejection | null> {
    const fault = formFault(url)
    if (fault !== null) return reject('invalid', 'invalid_url', `url ${fault}`, 'url')
    try {
      await this.#guard.addressesOf(new URL(url).hostname)
      return null
    } catch (error) {
      if (!(error instanceof TargetRefused)) throw error
      return reject('invalid', 'invalid_url', `url cannot be a target: ${error.message}`, 'url')
    }
  }

  /** @throws the reason of the signal when that aborts. */
  post(request: WebhookRequest, signal: AbortSignal): Promise<WebhookAnswer> {
    const { eventId, eventType } = request
    const attributes = { 'http.request.method': 'POST', event_id: eventId, event_type: eventType }
    return traced({ name: 'POST webhook', kind: 'client', attributes }, async (tell) => {
      const answer = await this.#post(request, signal)
      tell({
        'http.response.status_code': answer.statusCode,
        'error.type': answer.error === null ? null : String(answer.statusCode ?? 'no answer'),
      })
      return answer
    })
  }

  async #post(request: WebhookRequest, signal: AbortSignal): Promise<WebhookAnswer> {
    signal.throwIfAborted()
    // an address that was registered under other rules
    const refused = this.#request === overHttps ? formFault(request.url) : null
    if (refused !== null) return { statusCode: null, error: `The url ${refused}` }
    const body = Buffer.from(request.body)
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      'User-Agent': USER_AGENT,
      ...signedHeaders(request),
      ...traceHeaders(),
    }
    const limits = {
      withinMs: this.#attemptMs,
      tooLate: `No answer came within ${this.#attemptMs / 1000} seconds`,
      bodyBytes: ANSWER_BYTES,
      receivedBytes: RECEIVED_BYTES,
    }
    const outgoing = { method: 'POST', agent: this.#agent, headers, body, ...limits } as const
    const { statusCode, fault, isCut } = await exchange(request.url, outgoing, signal, this.#request)
    if (statusCode === null || (fault !== null && !isCut)) return { statusCode, error: fault }
    const isAccepted = statusCode >= 200 && statusCode <= 299
    return { statusCode, error: isAccepted ? null : `The address answered ${statusCode}` }
  }
}

import type { Agent } from 'node:http'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { WebhookAnswer, WebhookRequest, WebhookSender } from '../../application/ports/webhooks.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { AddressRange } from '../config/config.ts'
import { CheckedAgent } from './checked-agent.ts'
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
/** Of all that comes back before an answer begins, as interim answers: each of a few bytes costs a parsed head. */
const INTERIM_BYTES = 16 * 1024
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
  async post(request: WebhookRequest, signal: AbortSignal): Promise<WebhookAnswer> {
    signal.throwIfAborted()
    // an address that was registered under other rules
    const fault = this.#request === overHttps ? formFault(request.url) : null
    if (fault !== null) return { statusCode: null, error: `The url ${fault}` }
    return this.#attempt(request, signal)
  }

  #attempt(wanted: WebhookRequest, signal: AbortSignal): Promise<WebhookAnswer> {
    return new Promise((resolve, reject) => {
      let statusCode: number | null = null
      let received = 0
      const count = (chunk: Buffer) => {
        received += chunk.length
        if (received < (statusCode === null ? INTERIM_BYTES : RECEIVED_BYTES)) return
        if (statusCode === null) failed('The answer is too long')
        else answered()
        outgoing.destroy()
      }
      const answered = () =>
        end({ statusCode, error: isAccepted(statusCode!) ? null : `It answered ${statusCode}` })
      const end = (answer: WebhookAnswer | null) => {
        clearTimeout(limit)
        outgoing.socket?.off('data', count)
        signal.removeEventListener('abort', abort)
        if (answer) resolve(answer)
        else reject(signal.reason)
      }
      const failed = (error: string) => {
        end({ statusCode, error })
        outgoing.destroy()
      }
      const abort = () => {
        end(null)
        outgoing.destroy()
      }
      const body = Buffer.from(wanted.body)
      const outgoing = this.#request(wanted.url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          'User-Agent': USER_AGENT,
          ...signedHeaders(wanted),
        },
      })
      const limit = setTimeout(() => {
        if (statusCode === null) failed(`No answer came within ${this.#attemptMs / 1000} seconds`)
        else answered()
        outgoing.destroy()
      }, this.#attemptMs)
      signal.addEventListener('abort', abort)
      outgoing.on('error', (error) => failed(reasonOf(error, outgoing.socket)))
      outgoing.on('socket', (socket) => socket.on('data', count))
      // an answer that changes the protocol is none
      outgoing.on('upgrade', (response) => {
        statusCode = response.statusCode!
        failed(`It answered ${statusCode}`)
      })
      outgoing.on('response', (response) => {
        statusCode = response.statusCode!
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes <= ANSWER_BYTES) return
          answered()
          outgoing.destroy()
        })
        response.on('end', answered)
        response.on('error', (error) => failed(reasonOf(error)))
      })
      outgoing.end(body)
    })
  }
}

function isAccepted(statusCode: number): boolean {
  return statusCode >= 200 && statusCode <= 299
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused',
  ECONNRESET: 'The connection was closed before an answer came',
  EPIPE: 'The connection was closed before an answer came',
  ETIMEDOUT: 'The connection was not accepted in time',
  EHOSTUNREACH: 'The host cannot be reached',
  ENETUNREACH: 'The host cannot be reached',
  HPE_HEADER_OVERFLOW: 'The headers of the answer are too long',
}

/** Why no answer came, without addresses. @param socket that it failed on. */
export function reasonOf(error: Error, socket: Socket | null = null): string {
  if (error instanceof TargetRefused) return error.message
  const { code } = (error instanceof AggregateError ? error.errors[0] : error) as NodeJS.ErrnoException
  if (code === undefined) return 'The connection failed'
  if (code.startsWith('HPE_')) return REASONS[code] ?? 'The answer is no HTTP'
  // rare faults have words alone, which name no host: that its key is too weak, for example
  if (socket instanceof TLSSocket && socket.authorizationError)
    return `The certificate is not accepted (${code === 'UNSPECIFIED' ? error.message : code})`
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return 'TLS could not be agreed on'
  return REASONS[code] ?? `The connection failed (${code})`
}

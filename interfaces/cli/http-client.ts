import { randomUUID } from 'node:crypto'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Method } from '../http/server.ts'
import { CliError } from './io.ts'

/** An answer as it came: any status. */
export interface HttpAnswer {
  readonly status: number
  readonly body: unknown
}

export interface HttpRequest {
  readonly method: Method
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** JSON that is text already, instead of `body`. */
  readonly text?: string
  /** A body that is sent as it is read, instead of `body`; its type is a header. Such a request is sent once. */
  readonly stream?: Readable
  /** Where an answer of bytes is written as it comes, instead of being read as JSON. */
  readonly into?: Writable
  /** Real milliseconds until the answer is there; null: as long as the connection holds. Default 120,000. */
  readonly timeoutMs?: number | null
}

const TIMEOUT_MS = 120_000
/** Pauses before further tries when no connection comes about, in milliseconds. */
const RETRY_MS = [200, 600] as const
/** How long a request that exceeds a rate limit is sent again, in milliseconds. */
const RATE_LIMIT_MS = 120_000
/** What an answer is that is written as it comes. */
const BYTES = /^application\/octet-stream\b/
/** A connection that is silent for so long is asked whether the other side still lives, in milliseconds. */
const KEEP_ALIVE_MS = 30_000

/** What was answered could not be written where it was to be. */
export class NotWritten extends Error {
  override readonly name = 'NotWritten'
}

/**
 * Sends a request and reads the JSON answer. Requests that may be repeated (GET, or with an
 * idempotency key) are tried again when the connection fails; every request is when a rate limit refused
 * it, after the seconds that `Retry-After` names.
 * @throws CliError when the service cannot be reached, is silent for too long or does not answer what is expected;
 *   NotWritten.
 */
export async function send(request: HttpRequest): Promise<HttpAnswer> {
  const { method, url, headers = {}, stream } = request
  const repeatable = stream === undefined && (method === 'GET' || 'Idempotency-Key' in headers)
  const begun = performance.now()
  for (let failures = 0; ; ) {
    try {
      const { status, retryAfter, text } = await exchange(request)
      const pause = status === 429 && stream === undefined ? waitOf(retryAfter) : null
      if (pause === null || performance.now() - begun + pause > RATE_LIMIT_MS) {
        return { status, body: parse(text, url, status) }
      }
      await pauseOf(pause, request.into)
    } catch (error) {
      if (error instanceof CliError || error instanceof NotWritten) throw error
      const pause = RETRY_MS[failures]
      if (!repeatable || pause === undefined) {
        throw new CliError(`${origin(url)} cannot be reached: ${reason(error)}`, { error: 'Unreachable' })
      }
      failures += 1
      await delay(pause)
    }
  }
}

/** A new idempotency key, so that a repeated request is done once. */
export function newIdempotencyKey(): string {
  return `cli-${randomUUID()}`
}

/** An address without a trailing slash. @throws CliError when it is none. */
export function baseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new CliError(`${text} is not an http or https address`)
  }
  return text.replace(/\/+$/, '')
}

interface Exchange {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

/** One request on a connection of its own. Unlike `fetch`, it has no time limits but the given one. */
function exchange({
  method,
  url,
  headers,
  body,
  text,
  stream,
  into,
  timeoutMs = TIMEOUT_MS,
}: HttpRequest): Promise<Exchange> {
  const payload = text ?? (body === undefined ? undefined : JSON.stringify(body))
  return new Promise((resolve, reject) => {
    const request = (url.startsWith('https:') ? https : http).request(url, {
      method,
      agent: false,
      headers: {
        ...(payload === undefined
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) }),
        ...headers,
      },
    })
    const timer =
      timeoutMs === null
        ? undefined
        : setTimeout(() => {
            const message = `${origin(url)} did not answer within ${timeoutMs / 1000} s`
            end(new CliError(message, { error: 'Timeout' }))
          }, timeoutMs)
    const settle = () => {
      clearTimeout(timer)
      into?.off('error', unwritten)
    }
    const end = (error: Error) => {
      settle()
      reject(error)
      request.destroy()
    }
    let answer: IncomingMessage | undefined
    const unwritten = (error: Error) => {
      // an answer that breaks off ends what it is written to as well
      const isCause = error instanceof CliError || answer?.errored
      end(isCause ? error : new NotWritten(error.message, { cause: error }))
    }
    into?.on('error', unwritten)
    request.on('error', end)
    request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
    request.on('response', (response) => {
      // an answer before the end is a refusal: what is left of the body would only be thrown away
      stream?.unpipe(request)
      const { statusCode, headers } = response
      answer = response
      if (into && statusCode! < 400) {
        if (statusCode !== 200 || !BYTES.test(headers['content-type'] ?? '')) {
          const what = `${origin(url)} answered ${statusCode} with something that is no file`
          end(new CliError(`${what}; is the address right?`))
          return
        }
        pipeline(response, into).then(() => {
          settle()
          resolve({ status: statusCode!, retryAfter: undefined, text: '' })
        }, end)
        return
      }
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', end)
      response.on('end', () => {
        settle()
        if (!request.writableEnded) request.destroy()
        resolve({
          status: response.statusCode!,
          retryAfter: response.headers['retry-after'],
          text: Buffer.concat(parts).toString(),
        })
      })
    })
    if (stream === undefined) request.end(payload)
    else stream.on('error', end).pipe(request)
  })
}

/** Waits before another try. @throws what ended the place for the answer meanwhile: a stop does not wait. */
async function pauseOf(ms: number, into: Writable | undefined): Promise<void> {
  const ended = new AbortController()
  const { signal } = ended
  const end = () => ended.abort()
  into?.once('close', end)
  if (!into?.errored) await delay(ms, undefined, { signal }).catch(() => undefined)
  into?.off('close', end)
  if (into?.errored) throw into.errored
}

/** Milliseconds that `Retry-After` names; a second where it names none. */
function waitOf(retryAfter: string | undefined): number {
  return /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1000 : 1000
}

function parse(text: string, url: string, status: number): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    throw new CliError(
      `${origin(url)} answered ${status} with something that is not JSON; is the address right?`,
    )
  }
}

function origin(url: string): string {
  return new URL(url).origin
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as NodeJS.ErrnoException
  return code === 'ECONNREFUSED'
    ? 'connection refused; is the service running, and is the address right?'
    : error.message || (code ?? error.name)
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { CliError } from './io.ts'

/** An answer as it came: any status. */
export interface HttpAnswer {
  readonly status: number
  readonly body: unknown
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** JSON that is text already, instead of `body`. */
  readonly text?: string
}

/** Pauses before further tries when no connection comes about, in milliseconds. */
const RETRY_MS = [200, 600] as const

/**
 * Sends a request and reads the JSON answer. Requests that may be repeated (GET, or with an
 * idempotency key) are tried again when the connection fails.
 * @throws CliError when the service cannot be reached or does not answer JSON.
 */
export async function send(request: HttpRequest): Promise<HttpAnswer> {
  const { method, url, headers = {}, body } = request
  const text = request.text ?? (body === undefined ? undefined : JSON.stringify(body))
  const repeatable = method === 'GET' || 'Idempotency-Key' in headers
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await fetch(url, {
        method,
        headers: { ...(text === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
        ...(text === undefined ? {} : { body: text }),
      })
      return { status: response.status, body: parse(await response.text(), url, response.status) }
    } catch (error) {
      if (error instanceof CliError) throw error
      const pause = RETRY_MS[attempt]
      if (!repeatable || pause === undefined)
        throw new CliError(`${origin(url)} cannot be reached: ${reason(error)}`)
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
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  const { code } = cause as NodeJS.ErrnoException
  return code === 'ECONNREFUSED'
    ? 'connection refused; is the service running?'
    : cause.message || (code ?? cause.name)
}

import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, NoAnswerError, retryAfterOf } from './errors.ts'

/** An operation of an API, as its description says. */
export interface Operation {
  readonly method: string
  /** With parameters in braces. */
  readonly path: string
  readonly credentials: 'client' | 'connection' | 'none'
  /** Takes an `Idempotency-Key`. */
  readonly takesKey: boolean
  /** Answers `{ ok, data }`. */
  readonly wrapped: boolean
  /** The query parameter that chooses the part of a list; null where an answer is whole. */
  readonly pagedBy: 'page' | 'from' | null
  /** The media type of its answers, where they are bytes instead of JSON. */
  readonly produces?: string
}

/** How to reach the service, and as whom. */
export interface ClientOptions {
  /** Address of the service, for example `https://api.example.com`. */
  readonly baseUrl: string
  readonly clientId?: string
  readonly clientSecret?: string
  /** Signs every request with the client secret: for clients that were issued with `request_signing: "required"`. */
  readonly signRequests?: boolean
  /** Secret of an inbound connection, for calls that are signed with it. */
  readonly connectionSecret?: string
  /** Milliseconds that one try may take; default 30,000. */
  readonly timeoutMs?: number
  /** Milliseconds that a call may take with all its tries; default 120,000. */
  readonly totalMs?: number
  /** Tries after the first; default 5. */
  readonly retries?: number
  /** Milliseconds since the epoch, for signatures; default the system's clock. */
  readonly now?: () => number
  /** Told of every try that ended, for logs and metrics. */
  readonly onTry?: (tried: Try) => void
}

/** One try of a call. */
export interface Try {
  readonly operation: string
  /** 1 for the first. */
  readonly number: number
  /** Null when no answer came. */
  readonly status: number | null
  readonly requestId: string | null
  /** Whether this was the answer to an earlier try, or to an earlier call with the same key. */
  readonly replayed: boolean
  readonly milliseconds: number
}

/** What can be said of a single call. */
export interface CallOptions {
  /** For example the id of the payroll run: the same key and body have their effect once. Default: a new one. */
  readonly idempotencyKey?: string
  /** Gives the call up. */
  readonly signal?: AbortSignal
  /** Instead of the client's, in milliseconds. */
  readonly timeoutMs?: number
  /** Instead of the client's, in milliseconds. */
  readonly totalMs?: number
}

/** The options that there are. */
export const CLIENT_OPTIONS: Readonly<Record<keyof ClientOptions, true>> = {
  baseUrl: true,
  clientId: true,
  clientSecret: true,
  signRequests: true,
  connectionSecret: true,
  timeoutMs: true,
  totalMs: true,
  retries: true,
  now: true,
  onTry: true,
}
const CALL_OPTIONS: Readonly<Record<keyof CallOptions, true>> = {
  idempotencyKey: true,
  signal: true,
  timeoutMs: true,
  totalMs: true,
}

/** @throws TypeError for an option that nobody would read: a key under another name keeps nothing from happening twice. */
export function requireKnown(options: object, known: Readonly<Record<string, true>>): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) {
    throw new TypeError(`${unknown} is an unknown option; known here: ${Object.keys(known).join(', ')}`)
  }
}

/** Parameters of path and query by name, and the body. */
export type Request = Readonly<Record<string, unknown>> & { readonly body?: unknown }

const TIMEOUT_MS = 30_000
const TOTAL_MS = 120_000
const RETRIES = 5
const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 10_000

/** Statuses of what may go better the next time; 429 and 503 had no effect or say when to ask again. */
const PASSING = new Set([429, 500, 502, 503, 504])

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/**
 * Calls an operation until it is answered: failures that pass are tried again, later every time, under one
 * `Idempotency-Key`. What is neither read nor taken under a key is sent again only after 429, which has no effect.
 * @returns the answer's body.
 * @throws ApiError, NoAnswerError; what `signal` was aborted with; TypeError for what can never be sent.
 */
export async function call(
  name: string,
  operation: Operation,
  request: Request,
  client: ClientOptions,
  options: CallOptions = {},
): Promise<unknown> {
  requireKnown(options, CALL_OPTIONS)
  const idempotencyKey = operation.takesKey ? keyOf(options) : null
  if (!operation.takesKey && options.idempotencyKey !== undefined) {
    throw new TypeError(`${name} takes no idempotencyKey`)
  }
  const mayRepeat = operation.method === 'GET' || idempotencyKey !== null
  const { retries = RETRIES } = client
  const address = addressOf(operation, request, client.baseUrl)
  const body = request.body === undefined ? null : JSON.stringify(request.body, finite)
  const timeoutMs = options.timeoutMs ?? client.timeoutMs ?? TIMEOUT_MS
  const deadline = performance.now() + (options.totalMs ?? client.totalMs ?? TOTAL_MS)
  for (let tries = 1; ; tries += 1) {
    const failed = { operation: name, tries, idempotencyKey }
    const left = Math.max(1, deadline - performance.now())
    const limit = AbortSignal.timeout(Math.ceil(Math.min(timeoutMs, left)))
    const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit
    const started = performance.now()
    const headers = {
      Accept: ['application/json', operation.produces].filter(Boolean).join(', '),
      ...credentialsOf(operation, client, body ?? ''),
      ...(body === null ? {} : { 'Content-Type': 'application/json' }),
      ...(idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey }),
    }
    for (const [header, value] of Object.entries(headers)) requireVisible(header, value)
    let answer: Answer | null = null
    let problem: ApiError | NoAnswerError
    try {
      answer = await exchange(
        address,
        { method: operation.method, headers, body, signal },
        operation.produces !== undefined,
      )
      if (answer.status < 400 && answer.body !== null) return answer.body
      problem = new ApiError(answer, failed)
    } catch (cause) {
      options.signal?.throwIfAborted()
      problem = new NoAnswerError(cause, failed)
    } finally {
      client.onTry?.({
        operation: name,
        number: tries,
        status: answer?.status ?? null,
        requestId: answer?.headers.get('x-request-id') ?? null,
        replayed: answer?.headers.get('idempotent-replayed') === 'true',
        milliseconds: performance.now() - started,
      })
    }
    const passes = answer === null || PASSING.has(answer.status)
    if (!passes || tries > retries || !(mayRepeat || answer?.status === 429)) throw problem
    const wait = waitBefore(tries, answer)
    if (performance.now() + wait >= deadline) throw problem
    await delay(wait, undefined, { signal: options.signal }).catch((error) => {
      options.signal?.throwIfAborted()
      throw error
    })
  }
}

/** Milliseconds before the next try: what the service asks for, else longer every time; neither the same for all callers. */
function waitBefore(tries: number, answer: Answer | null): number {
  const asked = answer === null ? null : retryAfterOf(answer.headers)
  if (asked !== null) return asked * 1000 + Math.random() * FIRST_DELAY_MS
  const most = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** tries)
  return most / 2 + (Math.random() * most) / 2
}

/** @param hasBytes its successes are bytes, as they are. */
async function exchange(address: string, init: RequestInit, hasBytes: boolean): Promise<Answer> {
  // secrets go nowhere else
  const response = await fetch(address, { ...init, redirect: 'error' })
  const { status, headers } = response
  if (hasBytes && response.ok) return { status, headers, body: new Uint8Array(await response.arrayBuffer()) }
  return { status, headers, body: parsed(await response.text()) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** @throws TypeError when a parameter of the path is missing. */
function addressOf({ path }: Operation, request: Request, baseUrl: string): string {
  const { body: _body, ...parameters } = request
  const query = new URLSearchParams()
  const inPath = new Set<string>()
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name]
    if (value === undefined || value === null || value === '') throw new TypeError(`${name} is required`)
    inPath.add(name)
    return encodeURIComponent(String(value))
  })
  for (const [name, value] of Object.entries(parameters)) {
    if (!inPath.has(name) && value !== undefined && value !== null) query.set(name, String(value))
  }
  return `${baseUrl.replace(/\/+$/, '')}${filled}${query.size > 0 ? `?${query}` : ''}`
}

/** Headers that prove who calls; signatures are made anew for every try, for they are good for 5 minutes. */
function credentialsOf(
  { credentials }: Operation,
  client: ClientOptions,
  body: string,
): Record<string, string> {
  if (credentials === 'none') return {}
  const now = String((client.now ?? Date.now)())
  if (credentials === 'connection') {
    const signature = signed(required(client, 'connectionSecret'), now, body)
    return { 'X-Webhook-Timestamp': now, 'X-Webhook-Signature': signature }
  }
  const secret = required(client, 'clientSecret')
  return {
    'X-Client-ID': required(client, 'clientId'),
    'X-Client-Secret': secret,
    ...(client.signRequests ? { 'X-Timestamp': now, 'X-Signature': signed(secret, now, body) } : {}),
  }
}

function signed(secret: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
}

/** A value of a body. @throws TypeError for what JSON would make null of. */
function finite(name: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  throw new TypeError(`${name} is ${value}, which JSON cannot say`)
}

/** The key of a call, a new one where it has none. @throws TypeError for one that the service would not take. */
function keyOf({ idempotencyKey: key }: CallOptions): string {
  if (key === undefined) return randomUUID()
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new TypeError('idempotencyKey takes a string of 1 to 255 visible ASCII characters')
}

/** @throws TypeError without the value, which may be a secret: no try would ever go out with it. */
function requireVisible(header: string, value: string): void {
  if (!/^[\x20-\x7e]*$/.test(value)) {
    throw new TypeError(
      `The value for ${header} has characters that no header can have, such as a line break`,
    )
  }
}

function required(client: ClientOptions, name: 'clientId' | 'clientSecret' | 'connectionSecret'): string {
  const value = client[name]
  if (value === undefined) throw new TypeError(`This call needs the client option ${name}`)
  return value
}

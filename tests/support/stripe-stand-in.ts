import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { STRIPE_API_VERSION } from '../../infrastructure/providers/card/stripe.ts'
import { serviceTime } from './core.ts'
import { type RunningService, startService } from './service.ts'
import { type Answer, type Params, Refusal, type StripeAct } from './stripe-answers.ts'
import {
  STRIPE_KEYS,
  type StripeEventType,
  type StripeObject,
  stripeEvent,
  stripeSignature,
} from './stripe-events.ts'
import { StripeObjects } from './stripe-objects.ts'

/**
 * What a request runs into: nobody there, an answer that is lost, never comes, breaks off, comes byte by byte or is none,
 * or an error; `broken` is a 500 of what was carried out all the same.
 */
export type StripeFault =
  | ('unreachable' | 'lost' | 'silent' | 'cut' | 'slow' | 500 | 'broken' | 429 | 'declined')
  | { readonly body: string; readonly status?: number }

/** In all, a slow answer takes two seconds. */
const BLANKS = 40
const BETWEEN_BLANKS_MS = 50

interface SentRequest {
  readonly method: string
  readonly path: string
  readonly params: Params
  readonly key: string | null
}

/** Stands in for Stripe: its API over HTTP, with its keys, its idempotency, its errors, and what can go wrong on the way. */
export class StripeStandIn extends StripeObjects {
  readonly requests: SentRequest[] = []
  /** How often events were listed. */
  listings = 0
  /** What happens while a request is under way, before it is carried out. */
  meanwhile: ((method: string, path: string) => Promise<void>) | null = null
  readonly #answered = new Map<string, { readonly asked: string; readonly answer: Answer }>()
  readonly #server: Server
  #service: RunningService | null = null
  #events = 0
  #fault: {
    readonly fault: StripeFault
    readonly path: RegExp
    readonly method: string | null
    times: number
  } | null = null
  private constructor() {
    super()
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  static async start(): Promise<StripeStandIn> {
    const standIn = new StripeStandIn()
    await new Promise<void>((resolve) => standIn.#server.listen(0, '127.0.0.1', resolve))
    return standIn
  }

  override get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** A service that takes the stand-in for Stripe, which tells it what happens. */
  async startService(env: Readonly<Record<string, string>> = {}): Promise<RunningService> {
    this.#service = await startService({ env: { ...stripeSettings(this), ...env } })
    return this.#service
  }

  /** An event that was not sent before. @param at epoch milliseconds. */
  newEvent<Type extends StripeEventType>(type: Type, object: StripeObject<Type>, at: number): string {
    this.#events += 1
    return stripeEvent(type, object, { id: `evt_${this.#events}`, at })
  }

  /** Sends a body to where the service takes notices. @param signature default: Stripe's, over the body. */
  async deliver(
    body: string,
    signature?: string | null,
  ): Promise<{ readonly status: number; readonly body: ReturnType<typeof JSON.parse> }> {
    const header =
      signature === undefined ? stripeSignature(body, await serviceTime(this.#service!)) : signature
    const answer = await fetch(`${this.#service!.paymentsUrl}/processor/notices`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(header === null ? {} : { 'Stripe-Signature': header }),
      },
      body,
    })
    return { status: answer.status, body: await answer.json() }
  }

  /** Tells the service of an event, which it accepts. @param at default: now. @returns the body. */
  async notify<Type extends StripeEventType>(
    type: Type,
    object: StripeObject<Type>,
    at?: number,
  ): Promise<string> {
    const body = this.newEvent(type, object, at ?? (await serviceTime(this.#service!)))
    expect((await this.deliver(body)).status).toBe(200)
    return body
  }

  /** Tells the service of what happened, in its order. @param at default: now. @returns the bodies. */
  async tell(acts: readonly StripeAct[], at?: number): Promise<readonly string[]> {
    const bodies: string[] = []
    for (const { type, object } of acts) bodies.push(await this.notify(type, object as never, at))
    return bodies
  }

  /** Keeps what happened to be listed, and tells nobody. @param at epoch milliseconds. */
  keep(acts: readonly StripeAct[], at: number): void {
    for (const { type, object } of acts) this.happened(this.newEvent(type, object as never, at))
  }

  async stop(): Promise<void> {
    await this.#service?.stop()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Lets the next requests for some paths fail. */
  fail(
    fault: StripeFault,
    { times = 1, path = /./, method = null }: { times?: number; path?: RegExp; method?: string | null } = {},
  ): void {
    this.#fault = times === 0 ? null : { fault, path, method, times }
  }

  /** A day goes by: Stripe forgets the keys of calls, and takes one that comes again for a new call. */
  forgetKeys(): void {
    this.#answered.clear()
  }

  /** Requests of a method and path, without those that only read. */
  sent(path: RegExp): readonly SentRequest[] {
    return this.requests.filter((request) => request.method !== 'GET' && path.test(request.path))
  }

  // ---- requests

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { pathname: path, searchParams } = new URL(request.url!, this.url)
    const text = request.method === 'GET' ? String(searchParams) : Buffer.concat(chunks).toString()
    await this.meanwhile?.(request.method ?? '', path)
    const fault = this.#takeFault(request, path)
    if (fault === 'unreachable') {
      request.socket.destroy()
      return
    }
    const { status, body, headers } = this.#answer(request, path, text, fault)
    if (fault === 'lost') request.socket.destroy()
    if (fault === 'lost' || fault === 'silent') return
    const own = { 'Content-Type': 'application/json', 'Request-Id': `req_${this.requests.length}` }
    if (typeof fault === 'object') {
      response.writeHead(fault?.status ?? status, {
        ...own,
        ...headers,
        ...(fault && { Location: this.url }),
      })
      response.end(fault?.body ?? JSON.stringify(body))
      return
    }
    response.writeHead(status, { ...own, ...headers })
    for (let blank = 0; fault === 'slow' && blank < BLANKS && !response.destroyed; blank += 1) {
      response.write(' ')
      await setTimeout(BETWEEN_BLANKS_MS)
    }
    if (fault === 'cut') response.write('{ "id": "', () => request.socket.destroy())
    else response.end(JSON.stringify(body))
  }

  #takeFault(request: IncomingMessage, path: string): StripeFault | null {
    const set = this.#fault
    if (!set?.path.test(path) || (set.method !== null && set.method !== request.method)) return null
    const isOfNetwork =
      typeof set.fault === 'object' ||
      ['unreachable', 'lost', 'silent', 'cut', 'slow'].includes(String(set.fault))
    // what was answered before is answered again, and not carried out
    if (!isOfNetwork && this.#answered.has(String(request.headers['idempotency-key']))) return null
    set.times -= 1
    if (set.times === 0) this.#fault = null
    return set.fault
  }

  #answer(request: IncomingMessage, path: string, text: string, fault: StripeFault | null): Answer {
    const { method = '', headers } = request
    const header = (name: string) => (headers[name] as string | undefined) ?? null
    try {
      if (header('authorization') !== `Bearer ${STRIPE_KEYS.apiKey}`) {
        throw new Refusal(401, { type: 'invalid_request_error' })
      }
      if (header('stripe-version') !== STRIPE_API_VERSION) {
        throw new Refusal(400, { type: 'invalid_request_error', code: 'api_version' })
      }
      const params = nested(text)
      const key = header('idempotency-key')
      // that is asked in the background
      if (path === '/v1/events') this.listings += 1
      else this.requests.push({ method, path, params, key })
      if (fault === 429) throw new Refusal(429, { type: 'invalid_request_error', code: 'rate_limit' })
      if (method === 'POST' && key === null) throw new Error('A POST without an idempotency key')
      const asked = `${method} ${path} ${text}`
      const known = key === null ? undefined : this.#answered.get(key)
      if (known) {
        if (known.asked !== asked) throw new Refusal(400, { type: 'idempotency_error' })
        return { ...known.answer, headers: { ...known.answer.headers, 'Idempotent-Replayed': 'true' } }
      }
      const answer = this.#outcome(method, path, params, fault)
      if (key !== null) this.#answered.set(key, { asked, answer })
      return answer
    } catch (error) {
      if (error instanceof Refusal) return error.answer
      throw error
    }
  }

  /** What is kept under the key of a call: errors, too, except about parameters. */
  #outcome(method: string, path: string, params: Params, fault: StripeFault | null): Answer {
    const failure = new Refusal(500, { type: 'api_error' }).answer
    const failed: Answer = { ...failure, headers: { 'Stripe-Should-Retry': 'false' } }
    if (fault === 500) return failed
    try {
      // as the real one, at a moment when somebody is paying
      if (fault === 'declined' && path.endsWith('/expire')) {
        return new Refusal(400, { type: 'invalid_request_error', code: 'session_not_expireable' }).answer
      }
      const answer = this.carryOut(method, path, params, fault === 'declined')
      return fault === 'broken' ? failed : answer
    } catch (error) {
      if (error instanceof Refusal && error.message !== 'parameter_unknown') return error.answer
      throw error
    }
  }
}

/** `a[b][0][c]=x` as `{ a: { b: [{ c: 'x' }] } }`. */
function nested(text: string): Params {
  const root: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.split(/[[\]]+/).filter(Boolean)
    let holder: Record<string, unknown> = root
    for (const [index, part] of path.entries()) {
      if (index === path.length - 1) holder[part] = value
      else {
        holder[part] ??= /^\d+$/.test(path[index + 1]!) ? [] : {}
        holder = holder[part] as Record<string, unknown>
      }
    }
  }
  return root
}

/** The settings of a service that takes the stand-in for Stripe. */
export function stripeSettings(standIn: StripeStandIn): Record<string, string> {
  return {
    PROCESSOR: 'stripe',
    STRIPE_API_KEY: STRIPE_KEYS.apiKey,
    STRIPE_API_BASE: standIn.url,
    STRIPE_WEBHOOK_SECRET: STRIPE_KEYS.webhookSecret,
    STRIPE_PUBLISHABLE_KEY: STRIPE_KEYS.publishableKey,
  }
}

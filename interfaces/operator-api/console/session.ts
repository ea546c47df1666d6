import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ConsoleSessions } from '../../../application/ports/console-sessions.ts'
import type { Operator } from '../../../domain/access/operators.ts'
import type { OperatorGate } from '../../http/bearer.ts'
import { HttpError } from '../../http/errors.ts'
import { limitAddress, type RateLimiter, requireWithinLimit } from '../../http/rate-limit.ts'

const COOKIE = 'compstream_console'
const OTHER_SITE = 'The form was sent from another site. Open the console and do it there.'
const FORM =
  'This form is not of your session, or it was sent already. Look whether it was done before you go on.'

/** A person at the console. */
export interface Session {
  readonly operator: Operator
  /** What every call of an endpoint shows. */
  readonly token: string
  /** Stands in a form as proof that the session's own page sent it; it counts once. @param of what the form is for. */
  form(of: string): string
}

/** Who a token stands for, now, and who hears of refusals. */
interface Gate extends Pick<OperatorGate, 'report'> {
  operatorOf(token: string): Promise<Operator | null>
}

/** Signs people in by their token, and knows them again by a cookie. */
export class ConsoleAccess {
  readonly #sessions: ConsoleSessions
  readonly #gate: Gate
  readonly #addresses: Pick<RateLimiter, 'take' | 'waitOf'>

  /** @param addresses limits callers without a valid token. */
  constructor(sessions: ConsoleSessions, gate: Gate, addresses: Pick<RateLimiter, 'take' | 'waitOf'>) {
    this.#sessions = sessions
    this.#gate = gate
    this.#addresses = addresses
  }

  /** The session of a request; null: none, or it has ended. A token that counts no longer ends it. */
  async sessionOf(request: IncomingMessage, response: ServerResponse): Promise<Session | null> {
    const secret = secretOf(request)
    if (secret === null) return null
    requireWithinLimit(this.#addresses, request)
    const token = await this.#sessions.tokenOf(secret)
    const operator = token === null ? null : await this.#gate.operatorOf(token)
    if (token !== null && operator !== null) return { operator, token, form: (of) => formToken(secret, of) }
    limitAddress(this.#addresses, request)
    this.#gate.report(request, response, 'session that has ended')
    await this.#sessions.end(secret)
    response.setHeader('Set-Cookie', cookie(request, '', '; Max-Age=0'))
    return null
  }

  /** @throws HttpError 401 for a token that is none, 429. */
  async signIn(request: IncomingMessage, response: ServerResponse, token: string): Promise<void> {
    limitAddress(this.#addresses, request)
    if ((await this.#gate.operatorOf(token)) === null) {
      this.#gate.report(request, response, token === '' ? 'no token' : 'wrong token')
      throw new HttpError(401, null, 'The token is not that of an operator.')
    }
    const former = secretOf(request)
    if (former !== null) await this.#sessions.end(former)
    response.setHeader('Set-Cookie', cookie(request, await this.#sessions.begin(token)))
  }

  async signOut(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#sessions.end(secretOf(request)!)
    response.setHeader('Set-Cookie', cookie(request, '', '; Max-Age=0'))
  }

  /** A guard of the console's paths. @throws HttpError 403 for what another site makes a browser send. */
  requireOwnSite(request: IncomingMessage, response: ServerResponse): 'pass' {
    const { origin, host, 'sec-fetch-site': site = 'same-origin' } = request.headers
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    // links from elsewhere may lead here; a program says neither
    const isOwn =
      (isRead || site === 'same-origin') &&
      (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()))
    if (isOwn) return 'pass'
    limitAddress(this.#addresses, request)
    this.#gate.report(request, response, 'request of another site')
    throw new HttpError(403, null, OTHER_SITE)
  }

  /** @param isOnce it changes something: it counts once. @throws HttpError 403 for a form of another page or session, or one again. */
  async requireForm(
    request: IncomingMessage,
    response: ServerResponse,
    of: string,
    token: string | undefined,
    isOnce = true,
  ): Promise<void> {
    const secret = secretOf(request)!
    const [nonce = '', proof = ''] = (token ?? '').split('.')
    const isOwn = isSame(proof, proofOf(secret, of, nonce))
    if (isOwn && (!isOnce || (await this.#sessions.takeForm(secret, nonce)))) return
    this.#gate.report(request, response, 'form token')
    throw new HttpError(403, null, FORM)
  }
}

function secretOf({ headers }: IncomingMessage): string | null {
  return new RegExp(`(?:^|;\\s*)${COOKIE}=([\\w-]{43})(?:;|$)`).exec(headers.cookie ?? '')?.[1] ?? null
}

/** @param more attributes. */
function cookie({ headers }: IncomingMessage, value: string, more = ''): string {
  // the listener speaks HTTP: a browser says by its origin, and a proxy by its header, that HTTPS lies before it
  const isHttps = headers.origin?.startsWith('https:') || headers['x-forwarded-proto'] === 'https'
  return `${COOKIE}=${value}; Path=/console; HttpOnly; SameSite=Strict${isHttps ? '; Secure' : ''}${more}`
}

function formToken(secret: string, of: string): string {
  const nonce = randomBytes(12).toString('base64url')
  return `${nonce}.${proofOf(secret, of, nonce)}`
}

function proofOf(secret: string, of: string, nonce: string): string {
  return createHmac('sha256', secret).update(`form ${nonce} ${of}`).digest('base64url')
}

function isSame(presented: string, known: string): boolean {
  const [one, other] = [Buffer.from(presented), Buffer.from(known)]
  return one.length === other.length && timingSafeEqual(one, other)
}

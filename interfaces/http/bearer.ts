import type { IncomingMessage, ServerResponse } from 'node:http'
import { isActiveApiKey } from '../../application/access/agent-scope.ts'
import { allOperators, isOperatorToken, operatorWith } from '../../application/access/operators.ts'
import type { Application } from '../../application/commands/application.ts'
import { isAway } from '../../application/ports/unavailable.ts'
import { type Operator, type OperatorRole, type Operators, operators } from '../../domain/access/operators.ts'
import { requestIdOf } from './answers.ts'
import { HttpError } from './errors.ts'
import { limitAddress, type RateLimiter } from './rate-limit.ts'

const BEARER = /^bearer +(\S+) *$/i

/** The token of `Authorization: Bearer <token>`, null when there is none. */
export function bearerToken(request: IncomingMessage): string | null {
  return BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null
}

/** What of the application tells who an operator is. */
type OperatorReads = Pick<Application, 'commands' | 'clock'>

/** A refused operator; never with the presented token. */
export interface RefusedOperator {
  readonly requestId: string
  /** Address of the caller, or of the proxy before it. */
  readonly address: string
  readonly why:
    | 'no token'
    | 'wrong token'
    | 'agent key'
    | 'expired token'
    | 'token of a revoked operator'
    | 'role'
    // of the console
    | 'session that has ended'
    | 'request of another site'
    | 'form token'
  /** Whose role does not open the endpoint. */
  readonly operatorId?: string | undefined
}

export interface OperatorGateSettings {
  /** The setting `OPERATOR_TOKEN`: the first admin's until that is rotated or revoked. */
  readonly firstToken: string
  /** Limits callers without a valid token. */
  readonly addresses: Pick<RateLimiter, 'take'>
  /** Called for every refused operator, also within the limits. */
  readonly onRefused: (refused: RefusedOperator) => void
}

const REFUSED = {
  unknown: 'wrong token',
  expired: 'expired token',
  revoked: 'token of a revoked operator',
} as const

/** Lets operators through, by their bearer tokens. */
export class OperatorGate {
  readonly #settings: OperatorGateSettings
  /** As of the last look at the log. */
  #known: Operators = operators.initialState
  /** Before that nobody knows whether the token of the setting still counts. */
  #hasLooked = false

  constructor(settings: OperatorGateSettings) {
    this.#settings = settings
  }

  /** Whether a request carries the token of an operator as last known; nothing is looked up. */
  knows(app: OperatorReads, request: IncomingMessage): boolean {
    const token = bearerToken(request)
    return token !== null && this.#isKnown(app, token)
  }

  /** Whether a request carries the token of an operator; while the log is away, of one as last known. */
  async isOperator(app: OperatorReads, request: IncomingMessage): Promise<boolean> {
    const token = bearerToken(request)
    if (token === null || !(this.#isKnown(app, token) || isOperatorToken(token))) return false
    const now = await this.#look(app).catch((error: unknown) => {
      if (isAway(error) && this.#hasLooked) return this.#known
      throw error
    })
    return typeof this.#with(app, now, token) === 'object'
  }

  /** The operator whom a token stands for, now; null: nobody. */
  async operatorOf(app: OperatorReads, token: string): Promise<Operator | null> {
    if (!(this.#isKnown(app, token) || isOperatorToken(token))) return null
    const found = this.#with(app, await this.#look(app), token)
    return typeof found === 'object' ? found : null
  }

  /** Tells of a refusal. */
  report(
    request: IncomingMessage,
    response: ServerResponse,
    why: RefusedOperator['why'],
    operatorId?: string,
  ): void {
    const { remoteAddress } = request.socket
    this.#settings.onRefused({
      requestId: requestIdOf(response),
      address: remoteAddress ?? 'unknown',
      why,
      operatorId,
    })
  }

  /**
   * The operator that calls.
   * @param roles whom the endpoint is for.
   * @throws HttpError 401 without an operator's token, 403 for another role and for an active agent's key, 429.
   */
  async require(
    app: OperatorReads,
    request: IncomingMessage,
    response: ServerResponse,
    roles: readonly OperatorRole[],
  ): Promise<Operator> {
    const token = bearerToken(request)
    const isKnown = token !== null && this.#isKnown(app, token)
    if (!isKnown) limitAddress(this.#settings.addresses, request)
    // what is no token of ours is not looked up
    const isOne = isKnown || (token !== null && isOperatorToken(token))
    const found = isOne ? this.#with(app, await this.#look(app), token) : 'unknown'
    if (typeof found === 'object') {
      this.requireRole(found, roles, request, response)
      return found
    }
    const isAgent = token !== null && found === 'unknown' && (await isActiveApiKey(app, token))
    this.report(request, response, token === null ? 'no token' : isAgent ? 'agent key' : REFUSED[found])
    if (isAgent) {
      throw new HttpError(
        403,
        'Forbidden',
        'An agent key does not open this route; send the token of an operator',
      )
    }
    throw new HttpError(
      401,
      'Unauthorized',
      'Send the token of an operator as Authorization: Bearer <token>',
      {
        headers: { 'WWW-Authenticate': 'Bearer realm="operator"' },
      },
    )
  }

  /** @throws HttpError 403 for an operator of another role. */
  requireRole(
    { operator_id, role }: Operator,
    roles: readonly OperatorRole[],
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (roles.includes(role)) return
    this.report(request, response, 'role', operator_id)
    const why = `The role ${role} does not open this; it is for ${roles.join(', ')}`
    throw new HttpError(403, 'Forbidden', why)
  }

  #isKnown(app: OperatorReads, token: string): boolean {
    return typeof this.#with(app, this.#known, token) === 'object'
  }

  #with({ clock }: OperatorReads, all: Operators, token: string) {
    return operatorWith(all, token, this.#settings.firstToken, clock.now())
  }

  async #look(app: OperatorReads): Promise<Operators> {
    this.#known = await allOperators(app)
    this.#hasLooked = true
    return this.#known
  }
}

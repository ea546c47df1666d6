import type { Request, Response } from 'express'
import type { OperatorRole } from '../../../domain/access/operators.ts'
import type { Pagination } from '../../endpoints/api.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { callEndpoint } from '../../endpoints/request-pipeline.ts'
import { requestIdOf } from '../../http/answers.ts'
import type { Costs } from '../../http/costs.ts'
import { HttpError } from '../../http/errors.ts'
import type { OperatorHost } from '../host/api.ts'
import { rolesOf } from '../host/roles.ts'

export type Texts = Readonly<Record<string, string>>

/** What an endpoint answered. */
export interface Answered {
  readonly status: number
  readonly data: unknown
  readonly pagination: Pagination | undefined
}

/** The declared endpoints of the operator API: all that the console reads and does goes through them. */
export class OperatorEndpoints {
  readonly #byRoute: ReadonlyMap<string, Endpoint<OperatorHost>>
  readonly #role: OperatorRole | null

  /** @param role who looks; null: anybody. */
  constructor(endpoints: readonly Endpoint<OperatorHost>[], role: OperatorRole | null = null) {
    this.#byRoute = new Map(endpoints.map((one) => [nameless(`${one.method} ${one.path}`), one]))
    this.#role = role
  }

  /**
   * Whether there is such an endpoint, and it is for the role: pages offer nothing else. What is called nevertheless is
   * refused by the endpoint itself.
   * @param route as the API's reference names it: `POST /projections/{name}/rebuild`.
   */
  has(route: string): boolean {
    const found = this.#byRoute.get(nameless(route))
    return found !== undefined && (this.#role === null || rolesOf(found).includes(this.#role))
  }

  /** @throws HttpError 404 for what this release does not have. */
  of(route: string): Endpoint<OperatorHost> {
    const found = this.#byRoute.get(nameless(route))
    if (!found) throw new HttpError(404, null, `This release does not have ${route} yet.`)
    return found
  }
}

/** A request to the console that calls endpoints as the operator who is signed in. */
export interface Caller {
  readonly request: Request
  readonly response: Response
  readonly costs: Costs
  readonly token: string
  readonly hostOf: () => OperatorHost
}

/** Calls an endpoint in the name of who is signed in. @param params of the path, by its names. @throws HttpError. */
export function call(
  { request, response, costs, token, hostOf }: Caller,
  endpoint: Endpoint<OperatorHost>,
  params: Texts = {},
  query: Texts = {},
  sent: Readonly<Record<string, unknown>> = {},
): Promise<Answered> {
  const headers = { ...request.headers, authorization: `Bearer ${token}` }
  // who is let in depends on what is asked
  const url = `?${new URLSearchParams(query).toString()}`
  const shown = { headers: { value: headers }, url: { value: url }, originalUrl: { value: url } }
  const received = {
    request: Object.create(request, shown) as Request,
    response,
    costs,
    params,
    requestId: requestIdOf(response),
  }
  return callEndpoint(endpoint, hostOf(), received, { query, sent })
}

/** Parameters of a path by the endpoint's own names, in order. */
export function paramsOf({ path }: Pick<Endpoint<never>, 'path'>, values: readonly string[]): Texts {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
}

function nameless(route: string): string {
  return route.replaceAll(/\{\w*\}/g, '{}')
}

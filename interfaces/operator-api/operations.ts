import type express from 'express'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { UnreadableEvent } from '../../application/event-registry.ts'
import { runClaimed } from '../../application/idempotency/claims.ts'
import { createOnce } from '../../application/idempotency/creations.ts'
import { type IdempotentOutcome, isIdempotencyKey } from '../../application/idempotency/keyed-call.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { requestIdOf, sendJson } from '../http/answers.ts'
import type { OperatorGate } from '../http/bearer.ts'
import { CallerGone, readBody, requireUtf8, SMALL_BODY, unreadable } from '../http/body.ts'
import { HttpError } from '../http/errors.ts'
import { type Method, queryOf, type Route } from '../http/server.ts'
import { parseLargeJson } from '../http/strict-json.ts'
import { badRequest, Fields, isObject } from './fields.ts'

/** Prefix of all operator routes that want the token. */
export const OPERATIONS_PREFIX = '/ops/v1'

/** What a handler answers with. */
export interface Answer {
  readonly status?: number
  readonly data: unknown
  readonly pagination?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One request of an operator, past the token check. */
export interface Call {
  readonly request: express.Request
  readonly query: ReadonlyMap<string, string>
  /** A path parameter, decoded. */
  parameter(name: string): string
  /** The fields of the JSON body; no body reads as an empty object. @throws HttpError 400, 413, 415. */
  body(): Promise<{ readonly fields: Fields; readonly value: Readonly<Record<string, unknown>> }>
  /** The context of a command of this request, with a new command id. */
  context(): CommandContext
  /** Aborts when the caller goes away before the answer. */
  readonly signal: AbortSignal
}

/** What every operator route works with. */
export interface OperatorHost {
  readonly app: Application
  readonly gate: OperatorGate
}

/**
 * Builds a route that wants the operator token and answers in the envelope. What needs a stream with an event that
 * cannot be read is 409 and names it.
 */
export function operation(
  host: OperatorHost,
  method: Method,
  path: string,
  handle: (call: Call) => Promise<Answer>,
): Route {
  return {
    method,
    path: `${OPERATIONS_PREFIX}${path}`,
    async handle(request, response) {
      await host.gate.require(request, response)
      const gone = new AbortController()
      response.once('close', () => {
        if (!response.writableEnded) gone.abort(new CallerGone())
      })
      const {
        status = 200,
        data,
        pagination,
        headers,
      } = await handle(callOf(host, request, response, gone.signal)).catch((error: unknown) => {
        throw error instanceof UnreadableEvent ? conflict(error.message) : error
      })
      for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value)
      sendJson(
        response,
        status,
        pagination === undefined ? { ok: true, data } : { ok: true, data, pagination },
      )
    },
  }
}

/** A POST that creates something; it honours `Idempotency-Key`. */
export interface Creation<Input, Created> {
  readonly path: string
  /** Reads the body. @throws HttpError 400. */
  readonly parse: (fields: Fields) => Input
  /** Why it would be refused, asked before a key is claimed; absent where `create` is one append. */
  readonly refuse?: (input: Input, context: CommandContext) => Promise<Rejection | null>
  readonly create: (input: Input, context: CommandContext) => Promise<Created | Rejection>
  readonly idOf: (created: Created) => string
  /** The answer's data. */
  readonly show: (created: Created) => Promise<unknown> | unknown
  /**
   * How a repeated key is answered: by the one aggregate that is created, as it began; where several streams are
   * written, by what is read again under the id; not at all where a secret was handed out.
   */
  readonly repeated:
    | { readonly by: Decider<Created | null, never> }
    | { readonly by: (id: string) => Promise<unknown> }
    | { readonly by: null }
}

/** Builds the route of a creation: 201, or 200 with `Idempotent-Replayed: true` for a repeated key. */
export function creation<Input, Created>(host: OperatorHost, definition: Creation<Input, Created>): Route {
  const { path, parse, refuse, create, idOf, show, repeated } = definition
  const { app } = host
  return operation(host, 'POST', path, async (call) => {
    const { fields, value } = await call.body()
    const key = idempotencyKeyOf(call.request)
    const input = parse(fields)
    const context = call.context()
    if (key === null) return { status: 201, data: await show(accepted(await create(input, context))) }

    const keyed = { caller: 'operator', operation: `POST ${path}`, key, context }
    const request = { ...keyed, requestHash: await requestHash(value) }
    const { by } = repeated
    if (typeof by === 'object' && by !== null) {
      const outcome = await createOnce(app, request, {
        decider: by,
        create: async (within) => ({
          status: 201,
          body: await show(accepted(await create(input, within))),
        }),
        answerOf: async ({ state }) => ({ status: 201, body: await show(state!) }),
      })
      return answerOf(outcome)
    }
    const outcome = await runClaimed(
      app,
      {
        ...request,
        secretAnswer: by === null,
        restore: (stored) => by?.((stored as { id: string }).id),
        check: async (claimedAs) =>
          (await refuse?.(input, { ...context, commandId: claimedAs ?? context.commandId })) ?? null,
      },
      async (within) => {
        const created = await create(input, within)
        if (isRejection(created)) return created
        const id = idOf(created)
        return { status: 201, body: await show(created), stored: { id }, createdId: id }
      },
    )
    return answerOf(outcome)
  })
}

/**
 * Answers a verb that hands out a secret, once per `Idempotency-Key` where the request has one: again it is 409 and
 * names what the secret is of.
 * @param run the verb; answers with the data.
 */
export async function handOut(
  host: OperatorHost,
  call: Call,
  { verb, id }: { readonly verb: string; readonly id: string },
  run: (context: CommandContext) => Promise<object | Rejection>,
): Promise<Answer> {
  const key = idempotencyKeyOf(call.request)
  const context = call.context()
  if (key === null) return { data: accepted(await run(context)) }
  const outcome = await runClaimed(
    host.app,
    {
      ...{ caller: 'operator', operation: `${verb} ${id}`, key, requestHash: '', context },
      secretAnswer: true,
    },
    async (within) => {
      const data = await run(within)
      return isRejection(data) ? data : { status: 200, body: data, createdId: id }
    },
  )
  return answerOf(outcome)
}

function answerOf(outcome: IdempotentOutcome | Rejection): Answer {
  const { status, body, replayed } = accepted(outcome)
  return {
    status,
    data: body,
    ...(replayed ? { headers: { 'Idempotent-Replayed': 'true' } } : {}),
  }
}

/** What a command yielded. @throws HttpError when it was rejected. */
export function accepted<Outcome>(outcome: Outcome | Rejection): Outcome {
  if (isRejection(outcome)) throw refusal(outcome)
  return outcome
}

const STATUS = { invalid: 400, not_found: 404, forbidden: 403, conflict: 409 } as const

/** A rejection as the refusal that answers it. */
export function refusal(rejection: Rejection): HttpError {
  return new HttpError(STATUS[rejection.kind], null, rejection.message)
}

/** The refusal of an id or name that names nothing. */
export function notFound(message: string): HttpError {
  return new HttpError(404, null, message)
}

/** The refusal of what the present state or settings do not allow. */
export function conflict(message: string): HttpError {
  return new HttpError(409, null, message)
}

function callOf(
  host: OperatorHost,
  request: express.Request,
  response: express.Response,
  signal: AbortSignal,
): Call {
  return {
    request,
    query: queryOf(request),
    signal,
    parameter: (name) => String(request.params[name]),
    async body() {
      const bytes = await readBody(request, SMALL_BODY)
      if (bytes.length === 0) return { fields: new Fields({}), value: {} }
      requireUtf8(request)
      const parsed = await parseLargeJson(bytes)
      if (!parsed.ok) throw unreadable(parsed, null)
      if (!isObject(parsed.value)) throw badRequest('The body must be a JSON object')
      return { fields: new Fields(parsed.value), value: parsed.value }
    },
    context: () => ({
      actor: { type: 'operator', id: 'operator' },
      tenantId: null,
      environment: null,
      correlationId: requestIdOf(response),
      commandId: host.app.randomness.commandId(),
    }),
  }
}

function idempotencyKeyOf(request: express.Request): string | null {
  const key = request.headers['idempotency-key']
  if (key === undefined || isIdempotencyKey(key)) return key ?? null
  throw badRequest('Idempotency-Key takes 1 to 255 visible ASCII characters')
}

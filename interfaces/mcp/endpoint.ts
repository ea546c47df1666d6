import type { IncomingMessage, ServerResponse } from 'node:http'
import { authenticateAgent } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/application.ts'
import { isIdempotencyKey } from '../../application/commands/idempotent.ts'
import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { requestIdOf, sendEmpty, sendJson, sendJsonText } from '../http/answers.ts'
import { bearerToken } from '../http/bearer.ts'
import { CallerGone, LARGE_BODY, readBody, requireUtf8 } from '../http/body.ts'
import { HttpError } from '../http/errors.ts'
import { addressKey, type RateLimits, unauthenticatedCost } from '../http/rate-limit.ts'
import { parseJson } from '../http/strict-json.ts'
import {
  AUTH_ERROR,
  failure,
  type Id,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  idOf,
  invalidParams,
  isObject,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  RATE_LIMITED,
  type RpcAnswer,
  RpcError,
  type RpcMessage,
  type RpcRequest,
  readMessage,
  success,
} from './json-rpc.ts'
import type { OriginCheck } from './origin.ts'
import { tools } from './tools.ts'

/** The one protocol revision that this server speaks. */
export const PROTOCOL_VERSION = '2025-03-26'
const SERVER_VERSION = '1.0.0'
/** Messages of one batch at the most. */
const MAX_BATCH = 100
/** Bodies up to this many bytes are still read for their id when the caller is over its rate. */
const SMALL_ENOUGH_FOR_ID = 64 * 1024

/** One message on its way to an answer. */
interface Incoming {
  readonly agent: AgentCredential
  readonly requestId: string
  /** From the `Idempotency-Key` header, for tools that take a key. */
  readonly idempotencyKey: string | null
  /** Called when the answer repeats that of an earlier call. */
  readonly onReplay: () => void
}

/** An answer with the HTTP status that goes with it when it is the only one. */
interface Answered {
  readonly answer: RpcAnswer
  readonly status: number
}

export interface EndpointSettings {
  /** `serverInfo.name`. */
  readonly serverName: string
  readonly origins: OriginCheck
  readonly limits: RateLimits
  readonly onFailure: (error: unknown, request: { id: string; method: string; path: string }) => void
}

const toolsByName = new Map(tools.map((tool) => [tool.name, tool]))
const toolList = tools.map(({ name, description, inputSchema, annotations }) => ({
  name,
  description,
  inputSchema,
  annotations,
}))

/**
 * `POST /mcp`: JSON-RPC 2.0 over one endpoint, without sessions and without streams. The order of
 * checks is fixed, so that one request gives one predictable code: key, JSON, envelope, method,
 * arguments, scope, execution.
 */
export class McpEndpoint {
  readonly #app: Application
  readonly #settings: EndpointSettings

  constructor(app: Application, settings: EndpointSettings) {
    this.#app = app
    this.#settings = settings
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#handle(request, response)
    } catch (error) {
      if (error instanceof CallerGone) throw error
      if (error instanceof HttpError) {
        for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
        refuse(response, error.status, null, new RpcError(INVALID_REQUEST, error.message))
      } else {
        this.#report(error, requestIdOf(response))
        refuse(response, 500, null, internalError())
      }
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { origins, limits } = this.#settings
    const foreign = origins.refusal(request)
    if (foreign !== null) {
      refuse(response, 403, null, new RpcError(INVALID_REQUEST, foreign))
      return
    }
    const key = bearerToken(request)
    const agent = key === null ? null : await authenticateAgent(this.#app, key)
    if (agent === null) {
      await this.#refuseKey(request, response, key)
      return
    }
    this.#app.lastUsed.touch(agent.credential_id, this.#app.clock.now())
    const wait = limits.credentials.take(agent.credential_id)
    if (wait > 0) {
      refuseRate(response, await idWithin(request, SMALL_ENOUGH_FOR_ID), wait)
      return
    }

    requireUtf8(request)
    const parsed = parseJson(await readBody(request, LARGE_BODY))
    if (!parsed.ok) {
      refuseJson(response, parsed)
      return
    }
    const idempotencyKey = request.headers['idempotency-key'] ?? null
    if (idempotencyKey !== null && !isIdempotencyKey(idempotencyKey)) {
      const message = 'The header Idempotency-Key must be 1 to 255 visible ASCII characters'
      refuse(response, 400, idOf(parsed.value), new RpcError(INVALID_REQUEST, message))
      return
    }
    const requestId = requestIdOf(response)
    if (Array.isArray(parsed.value)) {
      await this.#answerBatch({ agent, requestId, idempotencyKey }, parsed.value, response)
      return
    }
    const onReplay = () => void response.setHeader('Idempotent-Replayed', 'true')
    const incoming = { agent, requestId, idempotencyKey, onReplay }
    const answered = await this.#answer(incoming, readMessage(parsed.value))
    if (answered === null) sendEmpty(response, 202)
    else sendJson(response, answered.status, answered.answer)
  }

  async #answerBatch(
    { agent, requestId, idempotencyKey }: Omit<Incoming, 'onReplay'>,
    batch: unknown[],
    response: ServerResponse,
  ): Promise<void> {
    const messages = batch.map(readMessage)
    const malformed = batchFault(messages)
    if (malformed !== null) {
      refuse(response, 400, null, new RpcError(INVALID_REQUEST, malformed))
      return
    }
    // the first message was counted with the request itself
    const wait = this.#settings.limits.credentials.take(agent.credential_id, messages.length - 1)
    if (wait > 0) {
      refuseRate(response, null, wait)
      return
    }
    const answers: RpcAnswer[] = []
    for (const [index, message] of messages.entries()) {
      const key = idempotencyKey === null ? null : `${idempotencyKey}/${index}`
      const incoming = { agent, requestId, idempotencyKey: key, onReplay: () => {} }
      const answered = await this.#answer(incoming, message)
      if (answered !== null) answers.push(answered.answer)
    }
    if (answers.length === 0) sendEmpty(response, 202)
    else sendJson(response, 200, answers)
  }

  /** @returns null for a message that asks for no answer. */
  async #answer(incoming: Incoming, message: RpcMessage): Promise<Answered | null> {
    if (message.kind === 'unanswered') return null
    if (message.kind === 'invalid') return { answer: message.answer, status: 400 }
    try {
      return { answer: success(message.id, await this.#run(incoming, message)), status: 200 }
    } catch (error) {
      if (error instanceof RpcError) return { answer: failure(message.id, error), status: error.status }
      this.#report(error, incoming.requestId)
      return { answer: failure(message.id, internalError()), status: 200 }
    }
  }

  async #run(incoming: Incoming, { method, params }: RpcRequest): Promise<unknown> {
    if (!METHODS.has(method)) {
      throw new RpcError(METHOD_NOT_FOUND, `Unknown method; there are ${[...METHODS].join(', ')}`)
    }
    if (params !== undefined && !isObject(params)) {
      throw invalidParams('params', 'params must be an object with named members')
    }
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: PROTOCOL_VERSION,
          capabilities: { tools: { listChanged: false } },
          serverInfo: { name: this.#settings.serverName, version: SERVER_VERSION },
        }
      case 'tools/list':
        return { tools: toolList }
      case 'tools/call':
        return this.#callTool(incoming, params)
      default:
        return {}
    }
  }

  async #callTool(incoming: Incoming, params: Record<string, unknown> | undefined): Promise<unknown> {
    if (params === undefined) {
      throw invalidParams('params', 'params is required: send an object with name and arguments')
    }
    const { name, arguments: given = {} } = params
    const tool = typeof name === 'string' ? toolsByName.get(name) : undefined
    if (!tool) {
      throw invalidParams('name', `name must be one of the tools: ${[...toolsByName.keys()].join(', ')}`)
    }
    if (!isObject(given)) throw invalidParams('arguments', 'arguments must be an object with named members')
    const result = await tool.call({ ...incoming, app: this.#app, given })
    return { content: [{ type: 'text', text: JSON.stringify(result) }] }
  }

  /** Answers a missing, malformed, unknown or revoked key; the body is only read for its id. */
  async #refuseKey(request: IncomingMessage, response: ServerResponse, key: string | null): Promise<void> {
    const announced = request.headers['content-length']
    const size = Math.min(Number(announced ?? 0), LARGE_BODY)
    const cost = unauthenticatedCost(size)
    const wait = this.#settings.limits.addresses.take(addressKey(request.socket.remoteAddress), cost)
    if (wait > 0) {
      refuseRate(response, null, wait)
      return
    }
    const id = await idWithin(request, announced === undefined ? SMALL_ENOUGH_FOR_ID : size)
    response.setHeader('WWW-Authenticate', 'Bearer realm="mcp"')
    const message =
      key === null
        ? 'An API key is required: send Authorization: Bearer <API_KEY>'
        : 'The API key is invalid or revoked'
    refuse(response, 401, id, new RpcError(AUTH_ERROR, message))
  }

  #report(error: unknown, requestId: string): void {
    this.#settings.onFailure(error, { id: requestId, method: 'POST', path: '/mcp' })
  }
}

const METHODS: ReadonlySet<string> = new Set(['initialize', 'tools/list', 'tools/call', 'ping'])

function internalError(): RpcError {
  return new RpcError(INTERNAL_ERROR, 'The service failed to handle the request; try again later')
}

/** What makes a batch invalid as a whole, null when nothing does. */
function batchFault(messages: readonly RpcMessage[]): string | null {
  if (messages.length === 0) return 'A batch must not be empty'
  if (messages.length > MAX_BATCH) return `A batch takes at most ${MAX_BATCH} messages`
  const initializes = messages.some((one) => one.kind === 'request' && one.method === 'initialize')
  return initializes ? 'initialize must not be part of a batch' : null
}

/** The id in a body, null when it cannot be read. */
async function idWithin(request: IncomingMessage, limit: number): Promise<Id> {
  try {
    const parsed = parseJson(await readBody(request, limit))
    return idOf(parsed.value)
  } catch (error) {
    if (error instanceof HttpError) return null
    throw error
  }
}

/** Refuses a body that {@link parseJson} refused; characters of one argument are that argument's fault. */
function refuseJson(
  response: ServerResponse,
  parsed: Exclude<ReturnType<typeof parseJson>, { ok: true }>,
): void {
  const { kind, message, path = '', value } = parsed
  if (kind !== 'characters') {
    refuse(response, 400, null, new RpcError(PARSE_ERROR, message))
    return
  }
  const argument = /^params\.arguments\.([a-z_]{1,60})/.exec(path)?.[1]
  if (argument === undefined) {
    refuse(response, 400, null, new RpcError(INVALID_REQUEST, message))
  } else {
    const error = new RpcError(INVALID_PARAMS, `${message}: remove it`, { field: argument })
    refuse(response, 200, idOf(value), error)
  }
}

function refuseRate(response: ServerResponse, id: Id, retryAfter: number): void {
  response.setHeader('Retry-After', String(retryAfter))
  const message = `Rate limit reached; try again in ${retryAfter} s`
  refuse(response, 429, id, new RpcError(RATE_LIMITED, message, { retry_after: retryAfter }))
}

function refuse(response: ServerResponse, status: number, id: Id, error: RpcError): void {
  sendJsonText(response, status, JSON.stringify(failure(id, error)))
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { authenticateAgent } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/application.ts'
import { isIdempotencyKey } from '../../application/idempotency/keyed-call.ts'
import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { requestIdOf, sendEmpty, sendJson } from '../http/answers.ts'
import { bearerToken } from '../http/bearer.ts'
import { CallerGone, LARGE_BODY, readBeginning, readBody, requireUtf8 } from '../http/body.ts'
import { Call } from '../http/calls.ts'
import { HttpError, tooManyRequests } from '../http/errors.ts'
import { memberAtBeginning } from '../http/json-beginning.ts'
import { jsonPieces, sendJsonPieces } from '../http/long-json.ts'
import { addressKey, type RateLimits } from '../http/rate-limit.ts'
import { type parseJson, parseLargeJson } from '../http/strict-json.ts'
import { type Unavailability, unavailability } from '../http/unavailable.ts'
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
import { tools } from './tools.ts'

/** The one protocol revision that this server speaks. */
export const PROTOCOL_VERSION = '2025-03-26'
const SERVER_VERSION = '1.0.0'
/** Messages of one batch at the most. */
const MAX_BATCH = 100
/** Bytes of a refused request's body in which its id is looked for. */
const ID_WITHIN = 64 * 1024

/** One message on its way to an answer. */
interface Incoming {
  readonly agent: AgentCredential
  readonly requestId: string
  /** From the `Idempotency-Key` header, for tools that take a key. */
  readonly idempotencyKey: string | null
  /** Called when the answer repeats that of an earlier call. */
  readonly onReplay: () => void
  /** Called with how many rows a message brings, before they are looked at. @throws HttpError 429. */
  readonly onRows: (count: number) => Promise<void>
}

/** An answer with the HTTP status that goes with it when it is the only one. */
interface Answered {
  readonly answer: RpcAnswer
  readonly status: number
}

export interface EndpointSettings {
  /** `serverInfo.name`. */
  readonly serverName: string
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
      await Call.during(this.#settings.limits, (call) => this.#handle(call, request, response))
    } catch (error) {
      // an answer that broke off cannot become a refusal
      if (error instanceof CallerGone || response.headersSent) throw error
      if (error instanceof HttpError) {
        for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
        refuse(response, error.status, null, asRpcError(error))
        return
      }
      const passing = unavailability(error)
      if (passing) {
        await refuseUnavailable(request, response, passing)
        return
      }
      this.#report(error, requestIdOf(response))
      refuse(response, 500, null, internalError())
    }
  }

  async #handle(call: Call, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = bearerToken(request)
    const agent = key === null ? null : await authenticateAgent(this.#app, key)
    if (agent === null) {
      await this.#refuseKey(request, response, key)
      return
    }
    this.#app.lastUsed.touch(agent.credential_id, this.#app.clock.now())
    try {
      await call.admit(agent.credential_id)
    } catch (error) {
      if (error instanceof HttpError) await refuseRate(request, response, asRpcError(error))
      else throw error
      return
    }

    requireUtf8(request)
    const parsed = await parseLargeJson(await readBody(request, LARGE_BODY, call))
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
    let rows = 0
    const onRows = (count: number) => {
      rows += count
      return call.measure({ rows })
    }
    const incoming = { agent, requestId: requestIdOf(response), idempotencyKey, onRows }
    if (Array.isArray(parsed.value)) {
      await this.#answerBatch(incoming, parsed.value, call, response)
      return
    }
    const onReplay = () => void response.setHeader('Idempotent-Replayed', 'true')
    const answered = await this.#answer({ ...incoming, onReplay }, readMessage(parsed.value))
    if (answered === null) {
      sendEmpty(response, 202)
      return
    }
    const { answer, status } = answered
    const retryAfter = retryAfterOf(answer)
    if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
    await sendJsonPieces(response, status, answerPieces(answer))
  }

  async #answerBatch(
    incoming: Omit<Incoming, 'onReplay'>,
    batch: unknown[],
    call: Call,
    response: ServerResponse,
  ): Promise<void> {
    const messages = batch.slice(0, MAX_BATCH + 1).map(readMessage)
    const malformed = batchFault(messages)
    if (malformed !== null) {
      refuse(response, 400, null, new RpcError(INVALID_REQUEST, malformed))
      return
    }
    call.takeMessages(messages.length)
    const answers: RpcAnswer[] = []
    for (const [index, message] of messages.entries()) {
      const { idempotencyKey } = incoming
      const key = idempotencyKey === null ? null : `${idempotencyKey}/${index}`
      const answered = await this.#answer({ ...incoming, idempotencyKey: key, onReplay: () => {} }, message)
      if (answered !== null) answers.push(answered.answer)
    }
    if (answers.length === 0) sendEmpty(response, 202)
    else await sendJsonPieces(response, 200, batchPieces(answers))
  }

  /** @returns null for a message that asks for no answer. */
  async #answer(incoming: Incoming, message: RpcMessage): Promise<Answered | null> {
    if (message.kind === 'unanswered') return null
    if (message.kind === 'invalid') return { answer: message.answer, status: 400 }
    try {
      return { answer: success(message.id, await this.#run(incoming, message)), status: 200 }
    } catch (error) {
      if (error instanceof RpcError) return { answer: failure(message.id, error), status: error.status }
      if (error instanceof HttpError) {
        return { answer: failure(message.id, asRpcError(error)), status: error.status }
      }
      const passing = unavailability(error)
      if (passing) return { answer: failure(message.id, unavailable(passing)), status: 200 }
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
    return new ToolResult(await tool.call({ ...incoming, app: this.#app, given }))
  }

  /** Answers a missing, malformed, unknown or revoked key; the body is only looked at for its id. */
  async #refuseKey(request: IncomingMessage, response: ServerResponse, key: string | null): Promise<void> {
    const wait = this.#settings.limits.addresses.take(addressKey(request.socket.remoteAddress))
    if (wait > 0) throw tooManyRequests(wait)
    const id = await idAtBeginning(request)
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

/** A part of the service is away; the seconds tell when to try again. */
function unavailable({ message, retryAfter }: Unavailability): RpcError {
  return new RpcError(INTERNAL_ERROR, message, { retry_after: retryAfter })
}

/** Answers a request that was not yet read; 503 only where its id cannot be told, so that no client waits for an answer. */
async function refuseUnavailable(
  request: IncomingMessage,
  response: ServerResponse,
  passing: Unavailability,
): Promise<void> {
  const id = request.readableDidRead ? null : await idAtBeginning(request)
  response.setHeader('Retry-After', passing.retryAfter)
  refuse(response, id === null ? 503 : 200, id, unavailable(passing))
}

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

/** The id of a request that is refused unread, null when it does not stand near the beginning. */
async function idAtBeginning(request: IncomingMessage): Promise<Id> {
  return idOf({ id: memberAtBeginning(await readBeginning(request, ID_WITHIN), 'id') })
}

/** Refuses a body that {@link parseJson} refused; characters of one argument are that argument's fault. */
function refuseJson(
  response: ServerResponse,
  parsed: Exclude<ReturnType<typeof parseJson>, { ok: true }>,
): void {
  const { kind, message, path = '', value } = parsed
  if (kind === 'values') {
    refuse(response, 413, null, new RpcError(INVALID_REQUEST, message))
    return
  }
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

/** Refuses a request that is not read because its caller sends too fast. */
async function refuseRate(
  request: IncomingMessage,
  response: ServerResponse,
  error: RpcError,
): Promise<void> {
  const refusal = failure(await idAtBeginning(request), error)
  response.setHeader('Retry-After', String(retryAfterOf(refusal)))
  sendJson(response, error.status, refusal)
}

function refuse(response: ServerResponse, status: number, id: Id, error: RpcError): void {
  sendJson(response, status, failure(id, error))
}

/** A refusal by what all hosts share, as JSON-RPC has it. */
function asRpcError({ status, message, headers }: HttpError): RpcError {
  const retryAfter = Number(headers['Retry-After'])
  return status === 429
    ? new RpcError(RATE_LIMITED, message, { retry_after: retryAfter }, status)
    : new RpcError(INVALID_REQUEST, message, undefined, status)
}

function retryAfterOf(answer: RpcAnswer): number | undefined {
  return 'error' in answer
    ? (answer.error.data as { retry_after?: number } | undefined)?.retry_after
    : undefined
}

/** What a tool answered; it becomes text when it is written. */
class ToolResult {
  readonly structured: unknown

  constructor(structured: unknown) {
    this.structured = structured
  }
}

/** An answer as JSON text; the result of a tool is text within it. */
function* answerPieces(answer: RpcAnswer): Generator<string, void, void> {
  if ('error' in answer || !(answer.result instanceof ToolResult)) {
    yield JSON.stringify(answer)
    return
  }
  yield '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"'
  for (const piece of jsonPieces(answer.result.structured)) yield JSON.stringify(piece).slice(1, -1)
  yield `"}]},"id":${JSON.stringify(answer.id)}}`
}

function* batchPieces(answers: readonly RpcAnswer[]): Generator<string, void, void> {
  for (const [index, answer] of answers.entries()) {
    yield index === 0 ? '[' : ','
    yield* answerPieces(answer)
  }
  yield ']'
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { authenticateAgent } from '../../application/access/agent-scope.ts'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import { isIdempotencyKey } from '../../application/commands/keyed-call.ts'
import project from '../../package.json' with { type: 'json' }
import { unknownFault } from '../endpoints/unknown-fields.ts'
import { requestIdOf, sendEmpty } from '../http/answers.ts'
import { bearerToken } from '../http/bearer.ts'
import { CallerGone, LARGE_BODY, readBody, requireUtf8 } from '../http/body.ts'
import { Costs } from '../http/costs.ts'
import { HttpError } from '../http/errors.ts'
import { parseLargeJson } from '../http/json/strict-json.ts'
import { sendJsonPieces } from '../http/json-writer.ts'
import { limitAddress, type RateLimits } from '../http/rate-limit.ts'
import { type HostSettings, queryOf } from '../http/server.ts'
import { unavailability } from '../http/unavailable.ts'
import { checkArguments, jsonSchemaOf } from './arguments.ts'
import {
  AUTH_ERROR,
  failure,
  type Id,
  INVALID_REQUEST,
  idOf,
  invalidParams,
  isObject,
  METHOD_NOT_FOUND,
  type RpcAnswer,
  RpcError,
  type RpcMessage,
  type RpcRequest,
  readMessage,
  success,
} from './json-rpc.ts'
import {
  asRpcError,
  idAtBeginning,
  internalError,
  refuse,
  refuseJson,
  setRetryAfter,
  unavailable,
} from './refusals.ts'
import { answerPieces, batchPieces, ToolResult } from './results.ts'
import { type ToolCall, tools } from './tools.ts'

/** The one protocol revision that this server speaks. */
const PROTOCOL_VERSION = '2025-03-26'
/** Messages of one batch at the most. */
const MAX_BATCH = 100

/** One message on its way to an answer. */
interface Incoming extends ToolCall {
  /** A query parameter: it takes none. */
  readonly queried: string | null
  /** Called with how many rows a message brings, before they are looked at. @throws HttpError 429. */
  readonly onRows: (count: number) => Promise<void>
}

/** An answer with the HTTP status that goes with it when it is the only one. */
interface Answered {
  readonly answer: RpcAnswer
  readonly status: number
}

export interface ToolServerSettings {
  /** `serverInfo.name`. */
  readonly serverName: string
  readonly limits: RateLimits
  readonly onFailure: HostSettings['onFailure']
  readonly url: HostSettings['url']
}

const toolsByName = new Map(tools.map((tool) => [tool.name, tool]))
const toolList = tools.map(({ name, description, input, annotations }) => ({
  name,
  description,
  inputSchema: jsonSchemaOf(input),
  annotations,
}))

/**
 * `POST /mcp`: JSON-RPC 2.0 over one endpoint, without sessions and without streams. The order of
 * checks is fixed, so that one request gives one predictable code: key, JSON, envelope, method,
 * arguments, scope, execution.
 */
export class ToolServer {
  readonly #app: Application
  readonly #settings: ToolServerSettings

  constructor(app: Application, settings: ToolServerSettings) {
    this.#app = app
    this.#settings = settings
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await Costs.during(this.#settings.limits, (costs) => this.#handle(costs, request, response))
    } catch (error) {
      // an answer that broke off cannot become a refusal
      if (error instanceof CallerGone || response.headersSent) throw error
      if (error instanceof HttpError) {
        this.#refuse(response, asRpcError(error))
        return
      }
      this.#report(error, requestIdOf(response))
      const passing = unavailability(error)
      if (passing) {
        // 503 only where the id cannot be told, so that no client waits for an answer
        const id = request.readableDidRead ? null : await idAtBeginning(request)
        this.#refuse(response, unavailable(passing, id === null ? 503 : 200), id)
        return
      }
      this.#refuse(response, internalError(500))
    }
  }

  async #handle(costs: Costs, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = bearerToken(request)
    const app = asOfNow(this.#app)
    const agent = key === null ? null : await authenticateAgent(app, key)
    if (agent === null) {
      await this.#refuseKey(request, response, key)
      return
    }
    app.lastUsed.touch(agent.credential_id, app.clock.now())
    try {
      await costs.admit(agent.credential_id)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      this.#refuse(response, asRpcError(error), await idAtBeginning(request))
      return
    }

    requireUtf8(request)
    const bytes = await readBody(request, LARGE_BODY, costs)
    const parsed = await parseLargeJson(bytes)
    if (!parsed.ok) {
      refuseJson(response, bytes, parsed, this.#settings.url())
      return
    }
    const idempotencyKey = request.headers['idempotency-key'] ?? null
    if (idempotencyKey !== null && !isIdempotencyKey(idempotencyKey)) {
      const message = 'The header Idempotency-Key must be 1 to 255 visible ASCII characters'
      this.#refuse(
        response,
        new RpcError(INVALID_REQUEST, message, { code: 'field_invalid', field: 'Idempotency-Key' }, 400),
        idOf(parsed.value),
      )
      return
    }
    let rows = 0
    const onRows = (count: number) => {
      rows += count
      return costs.measure({ rows })
    }
    const [queried = null] = queryOf(request).keys()
    const incoming = { app, agent, requestId: requestIdOf(response), idempotencyKey, queried, onRows }
    if (Array.isArray(parsed.value)) {
      await this.#answerBatch(incoming, parsed.value, costs, response)
      return
    }
    const onReplay = () => void response.setHeader('Idempotent-Replayed', 'true')
    const answered = await this.#answer({ ...incoming, onReplay }, readMessage(parsed.value))
    if (answered === null) {
      sendEmpty(response, 202)
      return
    }
    const { answer, status } = answered
    if ('error' in answer) setRetryAfter(response, answer.error.data)
    await sendJsonPieces(response, status, answerPieces(answer))
  }

  async #answerBatch(
    incoming: Omit<Incoming, 'onReplay'>,
    batch: unknown[],
    costs: Costs,
    response: ServerResponse,
  ): Promise<void> {
    const messages = batch.slice(0, MAX_BATCH + 1).map(readMessage)
    const malformed = batchFault(messages)
    if (malformed !== null) {
      this.#refuse(response, new RpcError(INVALID_REQUEST, malformed, { code: 'invalid_request' }, 400))
      return
    }
    costs.takeMessages(messages.length)
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
    const failed = (error: RpcError): Answered => ({
      answer: failure(message.id, error, this.#settings.url()),
      status: error.status,
    })
    if (message.kind === 'invalid') return failed(message.error)
    try {
      return { answer: success(message.id, await this.#run(incoming, message)), status: 200 }
    } catch (error) {
      if (error instanceof RpcError) return failed(error)
      if (error instanceof HttpError) return failed(asRpcError(error))
      this.#report(error, incoming.requestId)
      const passing = unavailability(error)
      return failed(passing ? unavailable(passing) : internalError())
    }
  }

  async #run(incoming: Incoming, { method, params }: RpcRequest): Promise<unknown> {
    if (!METHODS.has(method)) {
      throw new RpcError(METHOD_NOT_FOUND, `Unknown method; there are ${[...METHODS].join(', ')}`, {
        code: 'not_found',
      })
    }
    if (incoming.queried !== null) {
      const { field, message } = unknownFault([incoming.queried], [], 'query parameter')
      throw invalidParams(field, `${field} ${message}`)
    }
    if (params !== undefined && !isObject(params)) {
      throw invalidParams('params', 'params must be an object with named members')
    }
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: PROTOCOL_VERSION,
          capabilities: { tools: { listChanged: false } },
          serverInfo: { name: this.#settings.serverName, version: project.version },
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
      throw invalidParams(
        'params',
        'params is required: send an object with name and arguments',
        'field_missing',
      )
    }
    const { name, arguments: given = {} } = params
    const tool = typeof name === 'string' ? toolsByName.get(name) : undefined
    if (!tool) {
      throw invalidParams('name', `name must be one of the tools: ${[...toolsByName.keys()].join(', ')}`)
    }
    if (!isObject(given)) throw invalidParams('arguments', 'arguments must be an object with named members')
    // rows cost more, whatever is wrong with them
    if (Array.isArray(given.rows)) await incoming.onRows(given.rows.length)
    return new ToolResult(await tool.call(incoming, checkArguments(tool.input, given)))
  }

  /** Answers a missing, malformed, unknown or revoked key; the body is only looked at for its id. */
  async #refuseKey(request: IncomingMessage, response: ServerResponse, key: string | null): Promise<void> {
    limitAddress(this.#settings.limits.addresses, request)
    const id = await idAtBeginning(request)
    response.setHeader('WWW-Authenticate', 'Bearer realm="mcp"')
    const message =
      key === null
        ? 'An API key is required: send Authorization: Bearer <API_KEY>'
        : 'The API key is invalid or revoked'
    this.#refuse(response, new RpcError(AUTH_ERROR, message, { code: 'unauthorized' }, 401), id)
  }

  #refuse(response: ServerResponse, error: RpcError, id?: Id): void {
    refuse(response, error, this.#settings.url(), id)
  }

  #report(error: unknown, requestId: string): void {
    this.#settings.onFailure(error, { id: requestId, method: 'POST' })
  }
}

const METHODS: ReadonlySet<string> = new Set(['initialize', 'tools/list', 'tools/call', 'ping'])

/** What makes a batch invalid as a whole, null when nothing does. */
function batchFault(messages: readonly RpcMessage[]): string | null {
  if (messages.length === 0) return 'A batch must not be empty'
  if (messages.length > MAX_BATCH) return `A batch takes at most ${MAX_BATCH} messages`
  const initializes = messages.some((one) => one.kind === 'request' && one.method === 'initialize')
  return initializes ? 'initialize must not be part of a batch' : null
}

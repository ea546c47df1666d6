import type { IncomingMessage, ServerResponse } from 'node:http'
import { authenticateAgent } from '../../application/access/agent-scope.ts'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import { isIdempotencyKey } from '../../application/commands/keyed-call.ts'
import { employersInScope } from '../../application/parties/employers-in-scope.ts'
import { unknownFault } from '../endpoints/unknown-fields.ts'
import { nameCaller, requestIdOf, sendEmpty } from '../http/answers.ts'
import { bearerToken } from '../http/bearer.ts'
import { CallerGone, LARGE_BODY, readBody, requireUtf8 } from '../http/body.ts'
import { Costs } from '../http/costs.ts'
import { docUrlOf, HttpError } from '../http/errors.ts'
import { parseLargeJson } from '../http/json/strict-json.ts'
import { sendJsonPieces } from '../http/json-writer.ts'
import { limitAddress, type RateLimits } from '../http/rate-limit.ts'
import { type HostSettings, queryOf } from '../http/server.ts'
import { unavailability } from '../http/unavailable.ts'
import { checkArguments, jsonSchemaOf } from './arguments.ts'
import {
  batchOfWrongEra,
  type Era,
  eraOf,
  hasModernHeader,
  LEGACY_VERSION,
  shownId,
  VERSIONS,
} from './eras.ts'
import {
  AUTH_ERROR,
  failure,
  type Id,
  INVALID_REQUEST,
  idOf,
  invalid,
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
  jsonFault,
  refuse,
  setRetryAfter,
  unavailable,
} from './refusals.ts'
import { answerPieces, batchPieces, ToolResult } from './results.ts'
import { namingEmployers, type ToolCall, tools } from './tools.ts'

/** The version of the tools, whatever the package's. */
const VERSION = '1.0.0'
const CAPABILITIES = { tools: { listChanged: false } }
const INSTRUCTIONS = `Report payroll for workers' compensation insurance. Begin with list_employer_policies; if you do not know the employer_id, call it with none: the refusal lists the employers that you may act for. Then call get_expected_fields, build the rows, and check them with validate_payroll_submission until it has no errors. Call submit_payroll_data once, with an idempotency_key of your own; to repeat a call whose answer was lost, send the same key and arguments. Read get_submission_status until phase_3 is complete, and get_validation_errors for rows that failed: send those alone, corrected, as a new submission with a new key. A result with isError stored nothing: its text names the code, the field and what to send instead.`
/** Where arguments stand: in a message by itself, or in one of a batch. */
const ARGUMENTS = /^(\[\d+\]\.)?params\.arguments\./
/** Messages of one batch at the most. */
const MAX_BATCH = 100

/** One message on its way to an answer. */
interface Incoming extends ToolCall {
  readonly era: Era
  readonly headers: IncomingMessage['headers']
  /** A query parameter: it takes none. */
  readonly queried: string | null
  /** Where the arguments of each message have a name that no object can keep, the first one of each. */
  readonly leftOut: readonly string[]
  /** Where the message stands in the body: `[3].` in a batch, else empty. */
  readonly at: string
  /** Called with how many rows a message brings, before they are looked at. @throws HttpError 429. */
  readonly onRows: (count: number) => Promise<void>
  /** The employers of the credential, looked up once for a request; none where they cannot be had. */
  readonly inScope: () => Promise<object>
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
 * `POST /mcp`: JSON-RPC 2.0 over one endpoint, without sessions and without streams, in two eras of the protocol which
 * each request tells by itself. The order of checks is fixed, so that one request gives one predictable code: key, JSON,
 * envelope, what the era asks for, method, arguments, scope, execution.
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
        // 503 only where the id cannot be told, so that no client waits for an answer; modern clients would take a
        // 200 for an older server, and keep to that
        const id = request.readableDidRead ? null : await idAtBeginning(request)
        const is503 = id === null || hasModernHeader(request.headers)
        this.#refuse(response, unavailable(passing, is503 ? 503 : 200), id)
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
    nameCaller(response, agent.credential_id)
    app.lastUsed.touch(agent.credential_id, app.clock.now())
    try {
      await costs.admit(agent.credential_id)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      costs.sayOn(response)
      this.#refuse(response, asRpcError(error), await idAtBeginning(request))
      return
    }
    costs.sayOn(response)

    requireUtf8(request)
    const bytes = await readBody(request, LARGE_BODY, costs)
    const parsed = await parseLargeJson(bytes, allButOneOfEach())
    const { headers } = request
    const era = eraOf(parsed.value, headers)
    if (!parsed.ok) {
      const { error, id, isOfCall } = jsonFault(bytes, parsed)
      if (!isOfCall || id === null) this.#refuse(response, error, id)
      else
        await send(
          response,
          await this.#answered(era, id, requestIdOf(response), () => this.#refused(era, error)),
        )
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
    const requestId = requestIdOf(response)
    let employers: Promise<object> | undefined
    const inScope = () => {
      // what is refused is refused, whether or not they can be named
      employers ??= employersInScope(app, agent).catch(() => ({}))
      return employers
    }
    const { leftOut = [] } = parsed
    const incoming = {
      era,
      headers,
      app,
      agent,
      requestId,
      idempotencyKey,
      queried,
      leftOut,
      at: '',
      onRows,
      inScope,
    }
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
    await send(response, answered)
  }

  async #answerBatch(
    incoming: Omit<Incoming, 'onReplay'>,
    batch: unknown[],
    costs: Costs,
    response: ServerResponse,
  ): Promise<void> {
    const wrongEra = batchOfWrongEra(batch, incoming.headers)
    if (wrongEra !== null) {
      this.#refuse(response, wrongEra)
      return
    }
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
      const at = `[${index}].`
      const answered = await this.#answer(
        { ...incoming, idempotencyKey: key, at, onReplay: () => {} },
        message,
      )
      if (answered !== null) answers.push(answered.answer)
    }
    if (answers.length === 0) sendEmpty(response, 202)
    else await sendJsonPieces(response, 200, batchPieces(answers))
  }

  /** @returns null for a message that asks for no answer. */
  async #answer(incoming: Incoming, message: RpcMessage): Promise<Answered | null> {
    const { era, requestId } = incoming
    if (message.kind === 'notification') return null
    if (message.kind === 'response' && era.responses === 202) return null
    const asked = message.kind === 'response' ? invalid(message.id, 'There is no request to answer') : message
    return this.#answered(era, asked.id, requestId, () => {
      if (asked.kind === 'invalid') throw asked.error
      return this.#run(incoming, asked)
    })
  }

  /** The answer to a request, whatever becomes of it. */
  async #answered(
    era: Era,
    id: Id,
    requestId: string,
    run: () => Promise<object> | object,
  ): Promise<Answered> {
    const failed = (error: RpcError): Answered => ({
      answer: failure(shownId(id, era), error, this.#settings.url()),
      status: error.status,
    })
    try {
      const result = await run()
      const members = era.members(this.#serverInfo)
      const complete =
        result instanceof ToolResult
          ? new ToolResult(result.structured, { ...result.members, ...members })
          : { ...result, ...members }
      return { answer: success(id, complete), status: 200 }
    } catch (error) {
      if (error instanceof RpcError) return failed(error)
      if (error instanceof HttpError) return failed(asRpcError(error))
      this.#report(error, requestId)
      const passing = unavailability(error)
      return failed(passing ? unavailable(passing) : internalError())
    }
  }

  async #run(incoming: Incoming, request: RpcRequest): Promise<object> {
    const { era } = incoming
    const { method, params } = request
    era.check(request, incoming.headers)
    if (!era.methods.includes(method)) {
      const message = `Unknown method; there are ${era.methods.join(', ')}`
      throw new RpcError(METHOD_NOT_FOUND, message, { code: 'not_found' }, era.unknownMethod)
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
          protocolVersion: LEGACY_VERSION,
          capabilities: CAPABILITIES,
          serverInfo: this.#serverInfo,
        }
      case 'server/discover':
        return {
          supportedVersions: VERSIONS,
          capabilities: CAPABILITIES,
          instructions: INSTRUCTIONS,
          ...era.kept,
        }
      case 'tools/list':
        return { tools: toolList, ...era.kept }
      case 'tools/call':
        return this.#callTool(incoming, params)
      default:
        return {}
    }
  }

  async #callTool(incoming: Incoming, params: Record<string, unknown> | undefined): Promise<object> {
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
    try {
      const within = `${incoming.at}params.arguments.`
      const unkept = incoming.leftOut.find((path) => path.startsWith(within))?.slice(within.length)
      return new ToolResult(await tool.call(incoming, checkArguments(tool.input, given, unkept)))
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return this.#refused(incoming.era, await namingEmployers(incoming.inScope, error))
    }
  }

  #refused(era: Era, error: RpcError): ToolResult {
    return era.refusedCall(error, docUrlOf(this.#settings.url(), error.data.code))
  }

  get #serverInfo() {
    return { name: this.#settings.serverName, version: VERSION }
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

async function send(response: ServerResponse, { answer, status }: Answered): Promise<void> {
  if ('error' in answer) setRetryAfter(response, answer.error.data)
  await sendJsonPieces(response, status, answerPieces(answer))
}

/** Ignores names that are not kept, but for the first among the arguments of each message: one message hides no other's. */
function allButOneOfEach(): (path: string) => boolean {
  const named = new Set<string>()
  return (path) => {
    const [within] = ARGUMENTS.exec(path) ?? []
    return within === undefined || named.size === named.add(within).size
  }
}

/** What makes a batch invalid as a whole, null when nothing does. */
function batchFault(messages: readonly RpcMessage[]): string | null {
  if (messages.length === 0) return 'A batch must not be empty'
  if (messages.length > MAX_BATCH) return `A batch takes at most ${MAX_BATCH} messages`
  const initializes = messages.some((one) => one.kind === 'request' && one.method === 'initialize')
  return initializes ? 'initialize must not be part of a batch' : null
}

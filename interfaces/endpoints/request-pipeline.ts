import type { ServerResponse } from 'node:http'
import type express from 'express'
import { z } from 'zod'
import { isIdempotencyKey } from '../../application/commands/keyed-call.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { whileOutside } from '../http/admission.ts'
import { requestIdOf, sendBytes, sendJson } from '../http/answers.ts'
import { CallerGone, readBody, requireUtf8, unreadable } from '../http/body.ts'
import { sendStream } from '../http/byte-stream.ts'
import { Costs } from '../http/costs.ts'
import { HttpError } from '../http/errors.ts'
import { parseLargeJson } from '../http/json/strict-json.ts'
import { jsonPieces, sendJsonPieces } from '../http/json-writer.ts'
import { linesOf } from '../http/lines.ts'
import type { RateLimits } from '../http/rate-limit.ts'
import { queryOf, type Route } from '../http/server.ts'
import type { Api, Pagination } from './api.ts'
import { Answer, type Endpoint, type Received, Rejected } from './endpoint.ts'
import { check, type Fault } from './faults.ts'
import { isByteStream } from './fields.ts'
import { missingCode, namingParameter } from './not-found.ts'
import { shown } from './shown.ts'
import { unknownIn } from './unknown-fields.ts'

/**
 * Routes of a host from its endpoints.
 * @param hostOf the host as one request sees it.
 * @param limits what every request is counted against.
 */
export function routesOf<Host>(
  endpoints: readonly Endpoint<Host>[],
  hostOf: () => Host,
  limits: RateLimits,
): readonly Route[] {
  return endpoints.flatMap((endpoint) =>
    endpoint.api.prefixes.map((prefix) => ({
      method: endpoint.method,
      path: `${prefix}${endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      handle: (request: express.Request, response: express.Response) =>
        Costs.during(limits, async (costs) => {
          try {
            await run(endpoint, hostOf(), costs, request, response)
          } catch (error) {
            costs.sayOn(response)
            throw namingParameter(endpoint.params ?? NOTHING, error)
          }
        }),
    })),
  )
}

/**
 * One request, in the order that is the same on every host: credentials and limits, raw bytes, signature, key, body,
 * and only then what the endpoint does. Path and method were checked before.
 */
async function run<Host>(
  endpoint: Endpoint<Host>,
  host: Host,
  costs: Costs,
  request: express.Request,
  response: express.Response,
): Promise<void> {
  const { access, api } = endpoint
  const received: Received = {
    request,
    response,
    costs,
    params: request.params,
    requestId: requestIdOf(response),
  }
  const caller = await access.identify(host, received)
  const bytes = await bytesOf(endpoint, caller, received)
  await access.verify?.(host, caller, bytes, received)
  const key = endpoint.idempotent === undefined ? null : keyOf(api, request)
  const body = endpoint.body
    ? await parsedBody(endpoint, bytes, costs)
    : access.ownsBody || endpoint.method === 'GET'
      ? { sent: {} }
      : await undeclaredBody(bytes)
  const queried = Object.fromEntries(queryOf(request))
  const asked: Asked = { ...body, query: queried, key, lines: (atOnce) => linesOf(request, atOnce) }
  const { status, data, options } = await answered(endpoint, host, caller, received, asked)
  const { textBytes } = options
  if (textBytes !== undefined) await costs.measure({ bytes: textBytes })
  costs.sayOn(response)
  if (options.replayed) response.setHeader('Idempotent-Replayed', 'true')
  const answer = await shown(endpoint, status, data)
  if (endpoint.produces !== undefined) {
    if (isByteStream(answer)) return sendStream(response, status, endpoint.produces, answer)
    return sendBytes(response, status, endpoint.produces, answer as Buffer)
  }
  const whole = api.envelope.wrap(answer, options.pagination)
  const said = endpoint.alsoBare ? { ...(whole as object), ...(answer as object) } : whole
  if (!Array.isArray(answer) && textBytes === undefined) return sendJson(response, status, said)
  const pieces = jsonPieces(said)
  // texts stand in memory anyway: their length is told
  const written = await sendJsonPieces(response, status, textBytes === undefined ? pieces : [...pieces])
  if (textBytes === undefined) costs.owe({ bytes: written })
}

/** What an endpoint is asked, past the bytes of a request. */
interface Asked extends Body, Pick<Parameters<Endpoint<never>['handle']>[0], 'key' | 'lines'> {
  readonly query: Readonly<Record<string, unknown>>
}

/** The fields of a body, and where it has names that no object can keep. */
interface Body {
  readonly sent: Readonly<Record<string, unknown>>
  readonly leftOut?: readonly string[] | undefined
}

/**
 * Calls an endpoint from within the process: who is let in, what is checked and what is answered are the same.
 * @param received its request shows the credential.
 * @param asked texts of the query, and the fields of the body.
 * @throws HttpError as it would be answered.
 */
export async function callEndpoint<Host>(
  endpoint: Endpoint<Host>,
  host: Host,
  received: Received,
  { query, sent }: Pick<Asked, 'query' | 'sent'>,
): Promise<{
  readonly status: number
  readonly data: unknown
  readonly pagination: Pagination | undefined
}> {
  const caller = await endpoint.access.identify(host, received)
  const asked: Asked = { query, sent, key: null, lines: (atOnce) => linesOf(received.request, atOnce) }
  const { status, data, options } = await answered(endpoint, host, caller, received, asked)
  return { status, data: await shown(endpoint, status, data), pagination: options.pagination }
}

/** Checks what is asked, and does it. @throws HttpError. */
async function answered<Host>(
  endpoint: Endpoint<Host>,
  host: Host,
  caller: unknown,
  received: Received,
  { query: queried, sent, leftOut = [], key, lines }: Asked,
): Promise<Answer<number, unknown>> {
  const { access, api } = endpoint
  const { request, response, requestId } = received
  const wanted = endpoint.bodyFor?.(caller, sent) ?? endpoint.body
  const unknown: readonly Fault[] = [
    ...leftOut.map((field) => ({ field, message: 'is a name that is not kept', kind: 'unknown' }) as const),
    ...unknownIn(endpoint.query ?? NOTHING, queried, 'query parameter'),
    ...unknownIn(wanted ?? NOTHING, sent, 'field'),
  ]
  const params = check(endpoint.params ?? NOTHING, received.params)
  const query = checked(api, endpoint.query, queried, unknown)
  const body = checked(api, wanted, sent, unknown)
  const refusal = unknown.length > 0 ? api.refuse(unknown) : null
  // earlier versions took what is not known here: a request that was accepted then is answered again
  if (refusal && key === null && !access.isKey) throw refusal
  const call = {
    host: (access.seenBy?.(host, caller) ?? host) as Host,
    caller,
    params: 'value' in params ? params.value : {},
    query,
    body,
    sent,
    key,
    unlessRepeated: refusal,
    requestId,
    isHead: request.method === 'HEAD',
    lines,
    get signal() {
      return goneSignal(response)
    },
  }
  const named = async () => {
    if ('faults' in params) {
      const { field, message } = params.faults[0]!
      throw new HttpError(404, null, message, { code: missingCode(endpoint.params!, field), field })
    }
    return answerOf(endpoint, call)
  }
  const answering = () =>
    named().catch((error: unknown) => {
      // the form goes before what may be missing or out of reach; what a key was used for is told
      const isLater = error instanceof HttpError && [400, 403, 404].includes(error.status)
      throw refusal && isLater ? refusal : error
    })
  return endpoint.asksOutside ? whileOutside(request, answering) : answering()
}

/** The `Idempotency-Key` of a request, null when it has none. @throws HttpError 400. */
function keyOf(api: Api, { headers }: express.Request): string | null {
  const key = headers['idempotency-key']
  if (key === undefined || isIdempotencyKey(key)) return key ?? null
  const message = 'takes 1 to 255 visible ASCII characters'
  throw api.refuse([{ field: 'Idempotency-Key', message, kind: 'other' }])
}

const NO_BYTES = Buffer.alloc(0)

async function bytesOf<Host>(
  { access, api, body, line, method }: Endpoint<Host>,
  caller: unknown,
  { request, costs }: Received,
): Promise<Buffer> {
  if (body) {
    requireUtf8(request)
    return readBody(request, api.bodyLimit, costs)
  }
  const { headers } = request
  const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  const isRead = access.signsBytes?.(caller) || (method !== 'GET' && !line)
  return hasBody && isRead ? readBody(request, api.bodyLimit, costs) : NO_BYTES
}

/** The fields of a body where none is taken; of what is no JSON object nothing can be meant. */
async function undeclaredBody(bytes: Buffer): Promise<Body> {
  const parsed = await parseLargeJson(bytes)
  const isObject = parsed.ok && typeof parsed.value === 'object' && !Array.isArray(parsed.value)
  return isObject ? { sent: (parsed.value ?? {}) as Body['sent'], leftOut: parsed.leftOut } : { sent: {} }
}

async function parsedBody<Host>({ api, rows }: Endpoint<Host>, bytes: Buffer, costs: Costs): Promise<Body> {
  if (bytes.length === 0 && api.takesEmptyBodies) return { sent: {} }
  const parsed = await parseLargeJson(bytes)
  if (!parsed.ok) throw unreadable(parsed, api.unreadable(parsed.kind))
  const sent = api.objectOf(parsed.value)
  if (rows) await costs.measure({ rows: rows(sent) })
  return { sent, leftOut: parsed.leftOut }
}

const NOTHING = z.object({})

/** A part of a request as its schema yields it. @param unknown what of the request is not known. @throws HttpError 400. */
function checked(
  api: Api,
  schema: z.ZodType | undefined,
  sent: Readonly<Record<string, unknown>>,
  unknown: readonly Fault[],
): unknown {
  if (!schema) return undefined
  const result = check(schema, sent)
  if ('faults' in result) throw api.refuse([...unknown, ...result.faults])
  return result.value
}

/** Aborts when the caller goes away before its answer. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  const abort = () => {
    if (!response.writableEnded) gone.abort(new CallerGone())
  }
  // a caller that left before the handler asked is not reported again
  if (response.req.socket.destroyed) abort()
  else response.once('close', abort)
  return gone.signal
}

async function answerOf<Host>(
  { api, answers, handle }: Endpoint<Host>,
  call: Parameters<Endpoint<Host>['handle']>[0],
): Promise<Answer<number, unknown>> {
  let returned: unknown
  try {
    returned = await handle(call)
  } catch (error) {
    throw error instanceof Rejected ? api.rejected(error.rejection) : (api.refusalOf?.(error) ?? error)
  }
  if (isRejection(returned)) throw api.rejected(returned)
  return returned instanceof Answer ? returned : new Answer(Number(Object.keys(answers)[0]), returned)
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendJson } from '../http/answers.ts'
import { readBeginning } from '../http/body.ts'
import type { HttpError } from '../http/errors.ts'
import { memberAtBeginning } from '../http/json/beginning.ts'
import type { parseJson } from '../http/json/strict-json.ts'
import type { Unavailability } from '../http/unavailable.ts'
import { eraOf, shownId } from './eras.ts'
import {
  failure,
  type Id,
  INTERNAL_ERROR,
  INVALID_REQUEST,
  idOf,
  invalidParams,
  PARSE_ERROR,
  RATE_LIMITED,
  RpcError,
} from './json-rpc.ts'

/** Bytes of a refused request's body in which its id is looked for. */
const ID_WITHIN = 64 * 1024
/** Real milliseconds that it is waited for: a refused caller holds no place for longer. */
const ID_WAIT_MS = 1_000

/**
 * Answers a request as a whole with an error.
 * @param base address of the host.
 * @param id null where it cannot be told.
 */
export function refuse(response: ServerResponse, error: RpcError, base: string, id: Id = null): void {
  setRetryAfter(response, error.data)
  sendJson(response, error.status, failure(shownId(id, eraOf(null, response.req.headers)), error, base))
}

/** Sets `Retry-After` where the data of an error name the seconds. */
export function setRetryAfter(response: ServerResponse, data: RpcError['data']): void {
  if (typeof data.retry_after === 'number') response.setHeader('Retry-After', data.retry_after)
}

/** Writes what all hosts refuse alike as a JSON-RPC error. @param base address of the host. */
export function writeRpcRefusal(response: ServerResponse, refusal: HttpError, base: string): void {
  refuse(response, asRpcError(refusal, response.getHeader('Retry-After')), base)
}

/** A refusal by what all hosts share, as JSON-RPC has it. */
export function asRpcError(
  { status, code, message, field, errors, headers }: HttpError,
  retryAfter: unknown = headers['Retry-After'],
): RpcError {
  const rpcCode = status === 429 ? RATE_LIMITED : status === 503 ? INTERNAL_ERROR : INVALID_REQUEST
  const data = {
    code,
    ...(field && { field }),
    ...(errors.length > 0 && { errors }),
    ...(retryAfter !== undefined && { retry_after: Number(retryAfter) }),
  }
  return new RpcError(rpcCode, message, data, status)
}

/** A part of the service is away; the seconds tell when to try again. */
export function unavailable({ message, retryAfter }: Unavailability, status = 200): RpcError {
  return new RpcError(INTERNAL_ERROR, message, { code: 'unavailable', retry_after: retryAfter }, status)
}

export function internalError(status = 200): RpcError {
  const message = 'The service failed to handle the request; try again later'
  return new RpcError(INTERNAL_ERROR, message, { code: 'internal_error' }, status)
}

/** The id of a request that is refused unread, null when it does not stand near the beginning. */
export async function idAtBeginning(request: IncomingMessage): Promise<Id> {
  return idOf({ id: memberAtBeginning(await readBeginning(request, ID_WITHIN, ID_WAIT_MS), 'id') })
}

/**
 * What is wrong with a body that {@link parseJson} refused; characters and numbers of one argument are that argument's fault.
 * @param bytes the body: of one that was not read to its end, the id stands there nevertheless.
 */
export function jsonFault(
  bytes: Buffer,
  { kind, message, path = '', value }: Exclude<ReturnType<typeof parseJson>, { ok: true }>,
): { readonly error: RpcError; readonly id: Id; readonly isOfCall: boolean } {
  const isOfValue = kind === 'characters' || kind === 'numbers'
  const argument = isOfValue ? /^params\.arguments\.([a-z_]{1,60})/.exec(path)?.[1] : undefined
  if (argument !== undefined) {
    const advice = kind === 'characters' ? `${message}: remove it` : message
    const request = value ?? { id: memberAtBeginning(bytes.subarray(0, ID_WITHIN), 'id') }
    return { error: invalidParams(argument, advice, 'invalid_json'), id: idOf(request), isOfCall: true }
  }
  const error =
    kind === 'values'
      ? new RpcError(INVALID_REQUEST, message, { code: 'payload_too_large' }, 413)
      : new RpcError(isOfValue ? INVALID_REQUEST : PARSE_ERROR, message, { code: 'invalid_json' }, 400)
  return { error, id: null, isOfCall: false }
}

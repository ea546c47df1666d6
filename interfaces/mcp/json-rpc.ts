import { docUrlOf, type ErrorCode } from '../http/errors.ts'

/** JSON-RPC 2.0 as the tool server speaks it: codes, envelope, answers. */

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
export const AUTH_ERROR = -32001
export const SCOPE_ERROR = -32002
/** Outside the documented codes: the caller sends too fast. */
export const RATE_LIMITED = -32000

export type Id = string | number | null

/** What programs read of a refusal. */
export type RefusalData = Readonly<Record<string, unknown>> & { readonly code: ErrorCode }

/** A refusal that goes out as a JSON-RPC error; its message is written for the agent. */
export class RpcError extends Error {
  readonly code: number
  readonly data: RefusalData
  /** HTTP status of the answer to a single message; in a batch it counts for nothing. */
  readonly status: number

  constructor(code: number, message: string, data: RefusalData, status = 200) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.data = data
    this.status = status
  }
}

/** Refuses an argument: the message names it and says what to send instead. */
export function invalidParams(field: string, message: string, code: ErrorCode = 'field_invalid'): RpcError {
  return new RpcError(INVALID_PARAMS, message, { code, field })
}

export interface RpcSuccess {
  readonly jsonrpc: '2.0'
  readonly result: unknown
  readonly id: Id
}
export interface RpcFailure {
  readonly jsonrpc: '2.0'
  readonly error: {
    readonly code: number
    readonly message: string
    readonly data: RefusalData
  }
  /** Left out by an era that knows no other word for an id that cannot be told. */
  readonly id?: Id | undefined
}
export type RpcAnswer = RpcSuccess | RpcFailure

export function success(id: Id, result: unknown): RpcSuccess {
  return { jsonrpc: '2.0', result, id }
}

/** @param base address of the host: its page explains the code. */
export function failure(id: Id | undefined, { code, message, data }: RpcError, base: string): RpcFailure {
  return {
    jsonrpc: '2.0',
    error: { code, message, data: { ...data, doc_url: docUrlOf(base, data.code) } },
    id,
  }
}

/** A message that asks for an answer. */
export interface RpcRequest {
  readonly kind: 'request'
  readonly id: string | number
  readonly method: string
  readonly params: unknown
}
export type RpcMessage =
  | RpcRequest
  | { readonly kind: 'notification' }
  /** To a request that this server never sends. */
  | { readonly kind: 'response'; readonly id: Id }
  | { readonly kind: 'invalid'; readonly id: Id; readonly error: RpcError }

/** Reads one message of the envelope. Parameters are left to the method. */
export function readMessage(value: unknown): RpcMessage {
  if (!isObject(value)) return invalid(null, 'A JSON-RPC message is an object')
  const id = idOf(value)
  if (value.jsonrpc !== '2.0') return invalid(id, 'jsonrpc must be the string "2.0"')
  const hasId = Object.hasOwn(value, 'id')
  if (!Object.hasOwn(value, 'method') && (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error'))) {
    return { kind: 'response', id }
  }
  if (hasId && id === null) return invalid(null, 'id must be a string or a number of at most 2^53 - 1')
  const { method, params } = value
  if (typeof method !== 'string' || method === '') return invalid(id, 'method must be a non-empty string')
  if (params !== undefined && (typeof params !== 'object' || params === null)) {
    return invalid(id, 'params must be an object')
  }
  if (id === null) return { kind: 'notification' }
  return { kind: 'request', id, method, params }
}

/** The id of a message where it is usable, else null: a string, or a number that every client reads alike. */
export function idOf(value: unknown): Id {
  if (!isObject(value) || !Object.hasOwn(value, 'id')) return null
  const { id } = value
  if (typeof id === 'number') return Math.abs(id) <= Number.MAX_SAFE_INTEGER ? id : null
  return typeof id === 'string' ? id : null
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A message that is none of the protocol's. */
export function invalid(id: Id, message: string): RpcMessage & { readonly kind: 'invalid' } {
  return {
    kind: 'invalid',
    id,
    error: new RpcError(INVALID_REQUEST, message, { code: 'invalid_request' }, 400),
  }
}

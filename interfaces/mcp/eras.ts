import type { IncomingHttpHeaders } from 'node:http'
import {
  type Id,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isObject,
  type RefusalData,
  RpcError,
  type RpcRequest,
  SCOPE_ERROR,
} from './json-rpc.ts'
import { ToolResult } from './results.ts'

/** The revision whose handshake is answered, whatever is asked for. */
export const LEGACY_VERSION = '2025-03-26'
/** The revision without a handshake: each request says of itself what it is. */
const MODERN_VERSION = '2026-07-28'
/** Newest first. */
export const VERSIONS: readonly string[] = [MODERN_VERSION, LEGACY_VERSION]

const PREFIX = 'io.modelcontextprotocol/'
const VERSION_KEY = `${PREFIX}protocolVersion`
const CAPABILITIES_KEY = `${PREFIX}clientCapabilities`

const HEADER_MISMATCH = -32020
const UNSUPPORTED_VERSION = -32022

/** How long clients may keep what is the same for all callers until the next deployment, in milliseconds. */
const KEPT_MS = 3_600_000

export interface ServerInfo {
  readonly name: string
  readonly version: string
}

/** What two generations of the protocol do otherwise with the same messages. */
export interface Era {
  readonly methods: readonly string[]
  /** HTTP status that goes with the refusal of any other method. */
  readonly unknownMethod: 200 | 404
  /** Stands where an id cannot be told; undefined leaves it out. */
  readonly noId: null | undefined
  /** HTTP status of a posted response, to requests that this server never sends. */
  readonly responses: 202 | 400
  /** Members of what may be kept by clients. */
  readonly kept: Readonly<Record<string, unknown>>
  /** Members of every result. */
  members(server: ServerInfo): Readonly<Record<string, unknown>>
  /** Checks what a request says of itself, in its metadata and its headers. @throws RpcError */
  check(request: RpcRequest, headers: IncomingHttpHeaders): void
  /** A tool call with wrong arguments, or one that the business refuses. @throws RpcError where that is no result. */
  refusedCall(error: RpcError, docUrl: string): ToolResult
}

const LEGACY: Era = {
  methods: ['initialize', 'tools/list', 'tools/call', 'ping'],
  unknownMethod: 200,
  noId: null,
  responses: 202,
  kept: {},
  members: () => ({}),
  check() {},
  refusedCall(error) {
    throw error
  },
}

const MODERN: Era = {
  methods: ['server/discover', 'tools/list', 'tools/call'],
  unknownMethod: 404,
  noId: undefined,
  responses: 400,
  kept: { ttlMs: KEPT_MS, cacheScope: 'public' },
  members: (server) => ({ resultType: 'complete', _meta: { [`${PREFIX}serverInfo`]: server } }),
  check({ method, params }, headers) {
    const version = versionOf(method, params)
    agree(headers, 'MCP-Protocol-Version', version)
    if (version !== MODERN_VERSION) {
      const message = `This protocol version is not served; there are ${VERSIONS.join(', ')}`
      const data = { code: 'field_invalid', field: VERSION_KEY } as const
      throw new RpcError(
        UNSUPPORTED_VERSION,
        message,
        { ...data, supported: VERSIONS, requested: version },
        400,
      )
    }
    agree(headers, 'Mcp-Method', method)
    const { name } = params as { name?: unknown }
    // what is no name at all is refused as such
    if (method === 'tools/call' && typeof name === 'string') agree(headers, 'Mcp-Name', name)
  },
  refusedCall({ code, message, data }, docUrl) {
    const error =
      code === INVALID_PARAMS ? 'Invalid Params' : code === SCOPE_ERROR ? 'Scope Error' : 'Internal Error'
    return new ToolResult({ error, message, ...data, doc_url: docUrl }, { isError: true })
  },
}

/** The era of a message: its body decides, and the headers where that says nothing. @param message as it was parsed. */
export function eraOf(message: unknown, headers: IncomingHttpHeaders): Era {
  return isModern(message) || hasModernHeader(headers) ? MODERN : LEGACY
}

/** Why an array of messages is refused as a whole: batches belong to the legacy era. Null: they are of that one. */
export function batchOfWrongEra(messages: readonly unknown[], headers: IncomingHttpHeaders): RpcError | null {
  if (!hasModernHeader(headers) && !messages.some(isModern)) return null
  const message = `Revision ${MODERN_VERSION} has no batches: send each message by itself`
  return new RpcError(INVALID_REQUEST, message, { code: 'invalid_request' }, 400)
}

/** True where the header names the modern revision or a later one, all that is known of a request before its body. */
export function hasModernHeader(headers: IncomingHttpHeaders): boolean {
  const version = headerOf(headers, 'MCP-Protocol-Version')
  return version !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= MODERN_VERSION
}

/** An id as the answer has it. */
export function shownId(id: Id, era: Era): Id | undefined {
  return id ?? era.noId
}

function isModern(message: unknown): boolean {
  if (!isObject(message) || !isObject(message.params)) return false
  const { _meta: meta } = message.params
  return isObject(meta) && Object.hasOwn(meta, VERSION_KEY)
}

/** The version that the metadata of a request name. @throws RpcError for metadata that are not as they must be. */
function versionOf(method: string, params: unknown): string {
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {}
  if (method === 'initialize' && !Object.hasOwn(meta, VERSION_KEY)) {
    throw mismatch(
      'MCP-Protocol-Version',
      `names a revision without initialize: send server/discover, or leave the header out`,
      'field_invalid',
    )
  }
  const [version, capabilities] = [meta[VERSION_KEY], meta[CAPABILITIES_KEY]]
  if (typeof version !== 'string') throw metaFault(VERSION_KEY, version, `a string, ${MODERN_VERSION}`)
  if (!isObject(capabilities))
    throw metaFault(CAPABILITIES_KEY, capabilities, 'an object, {} if there are none')
  return version
}

function metaFault(key: string, given: unknown, what: string): RpcError {
  const message = `params._meta must have ${key}: send ${what}`
  const data: RefusalData = { code: given === undefined ? 'field_missing' : 'field_invalid', field: key }
  return new RpcError(INVALID_PARAMS, message, data, 400)
}

/** Compares a header with what the body says. @throws RpcError where they differ. */
function agree(headers: IncomingHttpHeaders, header: string, said: string): void {
  const given = headerOf(headers, header)
  if (given === undefined) throw mismatch(header, 'is required: send what the body says', 'field_missing')
  const read = header === 'Mcp-Name' ? decoded(given) : given
  if (read === null)
    throw mismatch(header, 'cannot be decoded: send =?base64?<base64 of UTF-8>?=', 'field_invalid')
  if (read !== said) throw mismatch(header, 'differs from the body: send what the body says', 'field_invalid')
}

function mismatch(header: string, message: string, code: RefusalData['code']): RpcError {
  return new RpcError(HEADER_MISMATCH, `The header ${header} ${message}`, { code, field: header }, 400)
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return headers[name.toLowerCase()] as string | undefined
}

/** A header's value, which may be base64 of UTF-8 between marks; null where that cannot be decoded. */
function decoded(value: string): string | null {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
  if (encoded === undefined) return value
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, '')) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

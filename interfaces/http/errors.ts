import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { RejectionCode } from '../../domain/kernel/rejection-codes.ts'
import { sendJson } from './answers.ts'

/** What a request is refused for by its form, its credentials or its number: one line each, for callers. */
export const HTTP_CODES = {
  bad_gateway: 'A provider could not be reached, is busy or answers nonsense',
  conflict: 'The present state or the settings do not allow it',
  credentials_missing: 'The headers that prove who calls are missing',
  field_invalid: 'A field has the wrong type or form',
  field_missing: 'A required field is missing',
  field_too_large: 'A field is longer, larger or of more elements than it may be',
  field_too_small: 'A field is shorter, smaller or of fewer elements than it must be',
  field_unknown: 'Nothing of the name is known there; a field that is meant for it may be named',
  forbidden: 'The credential does not open this, or does not reach what is named',
  internal_error: 'The service failed to handle the request',
  invalid_json: 'The body is no JSON, or holds characters or numbers that cannot be kept',
  invalid_signature: 'The signature is not the one that the secret makes of time and body',
  invalid_request: 'The request cannot be read as what is expected here',
  method_not_allowed: 'The path does not take the method',
  not_found: 'There is no such path, or nothing of the name',
  payload_too_large: 'The body, or a part of it, is larger than it may be',
  provider_refused: 'A provider refused for good; `message` has its reason',
  rate_limited: 'Too many requests, or too much at once; `Retry-After` names the seconds',
  timestamp_outside_tolerance: 'The time of the signature is more than 5 minutes from now',
  timeout: 'The request took too long',
  unauthorized: 'Credentials or signature are missing or wrong',
  unavailable: 'A part of the service is away; `Retry-After` names the seconds',
  unsupported_media_type: 'The body has a type, an encoding or a compression that is not taken',
  wrong_environment: 'The key is one of the other environment',
} as const
export type HttpCode = keyof typeof HTTP_CODES
/** The code of a refusal: what is wrong with the request as such, or why the command is rejected. */
export type ErrorCode = HttpCode | RejectionCode

const GENERAL_CODES: Readonly<Record<number, HttpCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  500: 'internal_error',
  502: 'bad_gateway',
  503: 'unavailable',
  504: 'timeout',
}

/** One thing that is wrong with a body: a stable code, the field as its caller wrote it, and a sentence. */
export interface FaultOfBody {
  readonly code: HttpCode
  readonly field: string
  readonly message: string
}

/** Where a code is explained, on a host. @param base address of the host. */
export function docUrlOf(base: string, code: ErrorCode): string {
  return `${base}/docs/errors#${code}`
}

/**
 * Writes a refusal in the error body of a host.
 * @param docUrl where its code is explained.
 */
export type ErrorWriter = (response: ServerResponse, refusal: HttpError, docUrl: string) => void

/** The core API's error body, also of the credential admin routes: `{ error, message, … }`. */
export const writeCoreError = errorWriter(generalWord)

/** The operator and payments envelope: `{ ok: false, error, message, … }`, by default with the status's reason phrase. */
export const writeEnvelopeError = errorWriter((status) => STATUS_CODES[status] ?? 'Error', { ok: false })

function errorWriter(wordOf: (status: number) => string, before: object = {}): ErrorWriter {
  return (response, { status, error, message, code, field, errors, details }, docUrl) =>
    sendJson(response, status, {
      ...before,
      ...{ error: error ?? wordOf(status), message, code },
      ...(field && { field }),
      ...(errors.length > 0 && { errors }),
      doc_url: docUrl,
      ...details,
    })
}

/** A status in the words of the core API and of pages, for example `Payload too large`. */
export function generalWord(status: number): string {
  if (status === 500) return 'Server error'
  const phrase = STATUS_CODES[status] ?? 'Error'
  return phrase.charAt(0) + phrase.slice(1).toLowerCase()
}

/**
 * A refusal on the way, thrown by what all hosts share and written by the host in its own error body.
 * Its message goes out as it is.
 */
export class HttpError extends Error {
  readonly status: number
  /** The short error word of the body; null: the host's general word for the status. */
  readonly error: string | null
  readonly headers: Readonly<Record<string, string>>
  /** What the body says besides, where the host has room for it. */
  readonly details: Readonly<Record<string, unknown>>
  /** Stable, lower snake case. */
  readonly code: ErrorCode
  /** What is at fault, as its caller wrote it; undefined where that is no single field. */
  readonly field: string | undefined
  /** All that is wrong with a body or a query. */
  readonly errors: readonly FaultOfBody[]

  constructor(
    status: number,
    error: string | null,
    message: string,
    {
      code = GENERAL_CODES[status] ?? 'invalid_request',
      field,
      errors = [],
      headers = {},
      details = {},
    }: Partial<Pick<HttpError, 'code' | 'field' | 'errors' | 'headers' | 'details'>> = {},
  ) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.headers = headers
    this.details = details
    this.code = code
    this.field = field
    this.errors = errors
  }
}

/** The refusal of a caller that sends too fast, or too much at once. @param retryAfter whole seconds. */
export function tooManyRequests(retryAfter: number, reason = 'Rate limit reached'): HttpError {
  const headers = { 'Retry-After': String(retryAfter) }
  return new HttpError(429, null, `${reason}; try again in ${retryAfter} s`, { headers })
}

const STATUS = {
  invalid: 400,
  not_found: 404,
  forbidden: 403,
  conflict: 409,
  too_many: 429,
  unavailable: 503,
} as const
const WORDS = {
  invalid: 'Invalid request',
  not_found: 'Not found',
  forbidden: 'Forbidden',
  conflict: 'Conflict',
  too_many: 'Too many requests',
  unavailable: 'Service unavailable',
} as const

/**
 * A rejection as a refusal.
 * @param words error words by rejection code, beside the usual ones; null: the host's general word for the status.
 */
export function refusalOf(
  { kind, code, message, field, retryAfterSeconds }: Rejection,
  words: Readonly<Record<string, string>> | null = {},
): HttpError {
  const headers: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }
  const word = words && (words[code] ?? WORDS[kind])
  return new HttpError(STATUS[kind], word, message, { code, field, headers })
}

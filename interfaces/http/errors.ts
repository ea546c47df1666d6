import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import { sendJson } from './answers.ts'

/**
 * Writes a refusal in the error body of a host.
 * @param error null: the host's general word for the status.
 * @param details what the body says besides, where the host has room for it.
 */
export type ErrorWriter = (
  response: ServerResponse,
  status: number,
  error: string | null,
  message: string,
  details?: Readonly<Record<string, unknown>>,
) => void

/** The core API's error body, also of the credential admin routes: `{ error, message }`. */
export const writeCoreError: ErrorWriter = (response, status, error, message) => {
  sendJson(response, status, { error: error ?? generalWord(status), message })
}

/** The operator and payments envelope: `{ ok: false, error, message }`, by default with the status's reason phrase. */
export const writeEnvelopeError: ErrorWriter = (response, status, error, message, details) => {
  sendJson(response, status, {
    ok: false,
    error: error ?? STATUS_CODES[status] ?? 'Error',
    message,
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

  constructor(
    status: number,
    error: string | null,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.headers = headers
    this.details = details
  }
}

/** The refusal of a caller that sends too fast, or too much at once. @param retryAfter whole seconds. */
export function tooManyRequests(retryAfter: number, reason = 'Rate limit reached'): HttpError {
  return new HttpError(429, null, `${reason}; try again in ${retryAfter} s`, {
    'Retry-After': String(retryAfter),
  })
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
  { kind, code, message, retryAfterSeconds }: Rejection,
  words: Readonly<Record<string, string>> | null = {},
): HttpError {
  const headers: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }
  return new HttpError(STATUS[kind], words && (words[code] ?? WORDS[kind]), message, headers)
}

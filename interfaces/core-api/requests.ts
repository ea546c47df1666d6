import type { IncomingHttpHeaders } from 'node:http'
import { isIdempotencyKey } from '../../application/commands/idempotent.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import { HttpError } from '../http/errors.ts'
import { parseJson } from '../http/strict-json.ts'

/** A header's value; null when it is absent or empty. Of a repeated one all values, joined. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  if (typeof value === 'string') return value === '' ? null : value
  return value === undefined ? null : value.join(', ')
}

/**
 * The body as a JSON object.
 * @throws HttpError 400 `Invalid JSON` or `Invalid characters`. JSON that is no object reads as an
 *   empty one: all its fields are missing.
 */
export function parseBody(bytes: Buffer): Readonly<Record<string, unknown>> {
  const parsed = parseJson(bytes)
  if (!parsed.ok) {
    const error = parsed.kind === 'characters' ? 'Invalid characters' : 'Invalid JSON'
    throw new HttpError(400, error, parsed.message)
  }
  return isObject(parsed.value) ? parsed.value : {}
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The `Idempotency-Key` of a request, null when it has none. @throws HttpError 400. */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key']
  if (key === undefined || isIdempotencyKey(key)) return key ?? null
  throw new HttpError(
    400,
    'Invalid Idempotency-Key',
    'The header Idempotency-Key takes 1 to 255 visible ASCII characters',
  )
}

const ERROR_WORDS: Readonly<Record<string, string>> = {
  employer_not_found: 'Employer not found',
  policy_not_found: 'Policy not found',
}
const STATUS = { invalid: 400, not_found: 404, forbidden: 403, conflict: 409 } as const
const GENERAL_WORDS = {
  invalid: 'Invalid request',
  not_found: 'Not found',
  forbidden: 'Forbidden',
  conflict: 'Conflict',
} as const

/** A rejection in the words of the core API. */
export function asHttpError({ kind, code, message }: Rejection): HttpError {
  return new HttpError(STATUS[kind], ERROR_WORDS[code] ?? GENERAL_WORDS[kind], message)
}

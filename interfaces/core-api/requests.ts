import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { IdempotentOutcome } from '../../application/idempotency/keyed-call.ts'
import { MAX_ROWS } from '../../application/payroll/submit-payroll.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { sendJson } from '../http/answers.ts'
import { LARGE_BODY, readBody, requireUtf8, unreadable } from '../http/body.ts'
import type { Call } from '../http/calls.ts'
import { HttpError } from '../http/errors.ts'
import { refusalOf } from '../http/rejections.ts'
import { parseLargeJson } from '../http/strict-json.ts'

/** A header's value; null when it is absent or empty. Of a repeated one all values, joined. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  if (typeof value === 'string') return value === '' ? null : value
  return value === undefined ? null : value.join(', ')
}

/** The raw bytes of a JSON body. @throws HttpError 413, 415, 429; CallerGone. */
export async function readJsonBytes(request: IncomingMessage, call: Call): Promise<Buffer> {
  requireUtf8(request)
  return readBody(request, LARGE_BODY, call)
}

/**
 * The body as a JSON object, its `employees` measured as the call's rows.
 * @throws HttpError 400 `Invalid JSON` or `Invalid characters`, 413, 429. JSON that is no object reads as an
 *   empty one: all its fields are missing.
 */
export async function parseBody(bytes: Buffer, call: Call): Promise<Readonly<Record<string, unknown>>> {
  const parsed = await parseLargeJson(bytes)
  if (!parsed.ok)
    throw unreadable(parsed, parsed.kind === 'characters' ? 'Invalid characters' : 'Invalid JSON')
  if (!isObject(parsed.value)) return {}
  const { employees } = parsed.value
  if (Array.isArray(employees)) await call.measure({ rows: employees.length })
  return parsed.value
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @throws HttpError 400 `employees must be non-empty`, 413. */
export function requireSomeEmployees(employees: readonly unknown[]): void {
  if (employees.length === 0) {
    throw new HttpError(400, 'employees must be non-empty', 'Send at least one element in employees')
  }
  if (employees.length > MAX_ROWS) {
    throw new HttpError(413, null, `employees takes at most ${MAX_ROWS} elements`)
  }
}

/** The refusal of a body without some required fields, or with a wrong type in them. */
export function missingFields(names: readonly string[]): HttpError {
  const verb = names.length === 1 ? 'is' : 'are'
  return new HttpError(
    400,
    'Missing required fields',
    `${names.join(', ')} ${verb} missing or of the wrong type`,
  )
}

const ERROR_WORDS: Readonly<Record<string, string>> = {
  employer_not_found: 'Employer not found',
  policy_not_found: 'Policy not found',
}

/** A rejection in the words of the core API. */
export function asHttpError(rejection: Rejection): HttpError {
  return refusalOf(rejection, ERROR_WORDS)
}

/** What a command yielded. @throws HttpError when it was rejected, 409 when its key was used for something else. */
export function accepted<Outcome>(outcome: Outcome | Rejection): Outcome {
  if (isRejection(outcome)) throw asHttpError(outcome)
  return outcome
}

/** Answers with an outcome; a replay says so. */
export function sendOutcome(response: ServerResponse, outcome: IdempotentOutcome): void {
  if (outcome.replayed) response.setHeader('Idempotent-Replayed', 'true')
  sendJson(response, outcome.status, outcome.body)
}

import type { IncomingHttpHeaders } from 'node:http'
import { isIdempotencyKey } from '../../application/idempotency/keyed-call.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import { HttpError } from './errors.ts'

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

const STATUS = { invalid: 400, not_found: 404, forbidden: 403, conflict: 409 } as const
const WORDS = {
  invalid: 'Invalid request',
  not_found: 'Not found',
  forbidden: 'Forbidden',
  conflict: 'Conflict',
} as const

/** A rejection as a refusal in the core API's error body. @param words error words by rejection code. */
export function refusalOf(
  { kind, code, message }: Rejection,
  words: Readonly<Record<string, string>> = {},
): HttpError {
  return new HttpError(STATUS[kind], words[code] ?? WORDS[kind], message)
}

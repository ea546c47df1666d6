import type { ServerResponse } from 'node:http'
import { sendJson } from './answers.ts'

/** Writes a refusal in the error body of a host. */
export type ErrorWriter = (response: ServerResponse, status: number, error: string, message: string) => void

/** The core API's error body, also of the credential admin routes: `{ error, message }`. */
export const writeCoreError: ErrorWriter = (response, status, error, message) => {
  sendJson(response, status, { error, message })
}

/** The operator and payments envelope: `{ ok: false, error, message }`. */
export const writeEnvelopeError: ErrorWriter = (response, status, error, message) => {
  sendJson(response, status, { ok: false, error, message })
}

/**
 * A refusal on the way, thrown by what all hosts share and written by the host in its own error body.
 * Its message goes out as it is.
 */
export class HttpError extends Error {
  readonly status: number
  /** The short error word of the body, for example `Payload too large`. */
  readonly error: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, error: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.headers = headers
  }
}

/** The refusal of a caller that sends too fast. @param retryAfter whole seconds. */
export function tooManyRequests(retryAfter: number): HttpError {
  return new HttpError(429, 'Too many requests', `Rate limit reached; try again in ${retryAfter} s`, {
    'Retry-After': String(retryAfter),
  })
}

import type { ErrorCode } from './error-codes.ts'

/** What every failed call tells. */
interface Failed {
  readonly operation: string
  /** Tries that were made. */
  readonly tries: number
  /** The `Idempotency-Key` of all tries: send it again to learn what became of the call; null where there is none. */
  readonly idempotencyKey: string | null
}

/** The service refused a call. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError'
  readonly status: number
  /** The service's short word, for example `Policy not found`. */
  readonly error: string
  /** The reason as a stable word, of those that the descriptions list; null where the answer is not the service's. */
  readonly code: ErrorCode | (string & {}) | null
  /** What is at fault, as it was sent; null where that is no single field. */
  readonly field: string | null
  /** All that is wrong with the body or the query. */
  readonly errors: readonly { readonly code: string; readonly field: string; readonly message: string }[]
  /** The page that explains the code. */
  readonly docUrl: string | null
  /** The id under which the operator finds the request. */
  readonly requestId: string | null
  /** The answer's whole body, null when it is no JSON. */
  readonly body: unknown
  /** Seconds after which the service wants to be asked again, null where it does not say. */
  readonly retryAfter: number | null
  readonly operation: string
  readonly tries: number
  readonly idempotencyKey: string | null

  constructor(answer: { status: number; headers: Headers; body: unknown }, call: Failed) {
    const body = (answer.body ?? {}) as Readonly<Record<string, unknown>>
    const { error, message, errors } = body
    const textOf = (value: unknown) => (typeof value === 'string' ? value : null)
    super(typeof message === 'string' ? message : `The service answered ${answer.status}`)
    this.status = answer.status
    this.error = typeof error === 'string' ? error : `HTTP ${answer.status}`
    this.code = textOf(body.code)
    this.field = textOf(body.field)
    this.errors = Array.isArray(errors) ? errors : []
    this.docUrl = textOf(body.doc_url)
    this.requestId = answer.headers.get('x-request-id')
    this.body = answer.body
    this.retryAfter = retryAfterOf(answer.headers)
    this.operation = call.operation
    this.tries = call.tries
    this.idempotencyKey = call.idempotencyKey
  }
}

/** No answer came: the service was not reached, or took longer than the time limit. `cause` tells why. */
export class NoAnswerError extends Error {
  override readonly name: string = 'NoAnswerError'
  readonly operation: string
  readonly tries: number
  readonly idempotencyKey: string | null

  constructor(cause: unknown, call: Failed) {
    const why = isTimeout(cause) ? 'in time' : `(${reasonOf(cause)})`
    super(`No answer to ${call.operation} ${why}`, { cause })
    this.operation = call.operation
    this.tries = call.tries
    this.idempotencyKey = call.idempotencyKey
  }
}

/** `fetch` says no more than that it failed: what happened stands in its cause. */
function reasonOf(failure: unknown): unknown {
  if (!(failure instanceof Error)) return failure
  const { message, code } = (failure.cause ?? failure) as NodeJS.ErrnoException
  return message || code || failure.message
}

function isTimeout(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'TimeoutError'
}

/** `Retry-After` in seconds, null when there is none. */
export function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after')
  return text !== null && /^\d+$/.test(text) ? Number(text) : null
}

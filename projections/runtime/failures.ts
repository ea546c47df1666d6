import { UnreadableEvent } from '../../application/event-registry.ts'

/**
 * `transient` passes by itself, `data` belongs to one event (it does not fit the tables), `handler`
 * too (it does not fit the code), `fatal` is about the database as a whole, `fenced` means that
 * another owner has taken over.
 */
export type FailureCategory = 'transient' | 'data' | 'handler' | 'fatal' | 'fenced'

/** Why a projection, or one of its streams, does not go on. Messages never carry values of events. */
export interface Failure {
  readonly category: FailureCategory
  readonly message: string
  readonly position: bigint | null
  readonly type: string | null
}

/** A failed database operation, classified. The message carries no values. */
export class ProjectionStoreError extends Error {
  readonly category: Exclude<FailureCategory, 'handler'>
  constructor(category: Exclude<FailureCategory, 'handler'>, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'ProjectionStoreError'
    this.category = category
  }
}

/** A handler asked for something impossible; the message names tables and columns, never values. */
export class FoldError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FoldError'
  }
}

/** How a failure is met: by its category. What comes from outside the store (the log) passes by itself. */
export function categoryOf(error: unknown): FailureCategory {
  return error instanceof ProjectionStoreError ? error.category : 'transient'
}

/**
 * An error in words that are safe to store and show. Messages of errors that did not originate here
 * may quote values of the event, so only their kind and place are kept.
 */
export function safeMessage(error: unknown): string {
  if (
    error instanceof ProjectionStoreError ||
    error instanceof FoldError ||
    error instanceof UnreadableEvent
  ) {
    return error.message
  }
  if (!(error instanceof Error)) return 'a value was thrown that is no error'
  const place = /([^/\\(\s]+:\d+):\d+\)?$/m.exec(
    error.stack?.slice(error.stack.indexOf('\n    at ')) ?? '',
  )?.[1]
  return place ? `${error.name} at ${place}` : error.name
}

/** A failure that is about no particular event. */
export function failureOf(error: unknown): Failure {
  return { category: categoryOf(error), message: safeMessage(error), position: null, type: null }
}

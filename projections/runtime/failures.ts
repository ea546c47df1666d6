import { describeError } from '../../application/followers/describe-error.ts'
import { SafeError } from '../../application/ports/safe-error.ts'

/**
 * `transient` passes by itself, `data` belongs to one event (it does not fit the tables), `handler`
 * too (it does not fit the code), `fatal` is about the database as a whole, `fenced` means that
 * another owner has taken over.
 */
export type FailureCategory = 'transient' | 'data' | 'handler' | 'fatal' | 'fenced'

/** Why a projection does not go on. Messages never carry values of events. */
export interface Failure {
  readonly category: FailureCategory
  readonly message: string
}

/** A failed database operation, classified. The message carries no values. */
export class ProjectionStoreError extends SafeError {
  readonly category: Exclude<FailureCategory, 'handler'>
  constructor(category: Exclude<FailureCategory, 'handler'>, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'ProjectionStoreError'
    this.category = category
  }
}

/** A handler asked for something impossible; the message names tables and columns, never values. */
export class FoldError extends SafeError {
  constructor(message: string) {
    super(message)
    this.name = 'FoldError'
  }
}

/** How a failure is met: by its category. What comes from outside the store (the log) passes by itself. */
export function categoryOf(error: unknown): ProjectionStoreError['category'] {
  return error instanceof ProjectionStoreError ? error.category : 'transient'
}

/** A failure of the whole, not of one stream. */
export function failureOf(error: unknown): Failure {
  return { category: categoryOf(error), message: describeError(error) }
}

import { UnreadableEvent } from '../../application/event-store.ts'
import { FoldError } from './fold.ts'
import { type Failure, type FailureCategory, ProjectionStoreError } from './projection-store.ts'

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

import type { RejectionCode } from './rejection-codes.ts'

/**
 * Why a decider refused a command. A rejection is an expected outcome, not an exception:
 * interfaces map `code` to their documented status and error words.
 */
export interface Rejection {
  readonly rejected: true
  /** Broad class that an interface maps to a status: shape, missing thing, scope, state, too often, not set up. */
  readonly kind: 'invalid' | 'not_found' | 'forbidden' | 'conflict' | 'too_many' | 'unavailable'
  /** Stable machine word, for example `employer_not_found`. */
  readonly code: RejectionCode
  /** One human-readable sentence that names the field where there is one. Never personal data. */
  readonly message: string
  /** Input field at fault, if one is. */
  readonly field?: string
  /** What stands in the way, or was begun, by the names that an answer gives the ids. */
  readonly ids?: Readonly<Record<string, string>>
  /** Whole seconds after which the same would go through; with the kind `too_many`. */
  readonly retryAfterSeconds?: number
}

/** Builds a {@link Rejection}. */
export function reject(
  kind: Rejection['kind'],
  code: RejectionCode,
  message: string,
  field?: string,
): Rejection {
  return field === undefined
    ? { rejected: true, kind, code, message }
    : { rejected: true, kind, code, message, field }
}

/** True when a decision or command outcome is a rejection. */
export function isRejection(value: unknown): value is Rejection {
  return typeof value === 'object' && value !== null && (value as { rejected?: unknown }).rejected === true
}

/** What a command came to that nothing should refuse. @throws Error with the words of the rejection. */
export function orThrow<Outcome>(outcome: Outcome | Rejection): Outcome {
  if (isRejection(outcome)) throw new Error(outcome.message)
  return outcome
}

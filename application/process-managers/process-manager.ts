import type { EventType } from '../../domain/kernel/event-type.ts'
import type { RecordedEvent } from '../event-store.ts'
import type { FaultPoint } from '../ports/faults.ts'

/**
 * A process manager reacts to the log and does what must happen next. Reacting is pure and yields
 * intents; the runner stores them together with its checkpoint in one transaction, and workers carry
 * them out under a lease, at least once, so that effects must be keyed (derived command ids,
 * idempotency keys).
 */
export interface ProcessManager {
  readonly name: string
  readonly handles: readonly EventType[]
  /** What to do about a page of events, in order. Pure. */
  react(events: readonly RecordedEvent[]): readonly Intent[]
  /** How each kind of work is done. */
  readonly work: Readonly<Record<string, WorkHandler>>
}

/** The lease under which a process manager follows the log. */
export function leaseOf(processManager: string): string {
  return `process-manager/${processManager}`
}

/** Work to be done, or no longer to be done. */
export type Intent =
  | {
      readonly intent: 'do'
      readonly kind: string
      /** With process manager and kind, what makes the work one piece; a second intent replaces payload and due time. */
      readonly key: string
      readonly payload: Readonly<Record<string, unknown>>
      /** A durable timer: service-clock milliseconds; absent = at once. */
      readonly dueAt?: number
      /** The event that caused it: its correlation and tenant travel with the work. */
      readonly because: RecordedEvent
    }
  | { readonly intent: 'cancel'; readonly kind: string; readonly key: string }

/** A piece of work in the hands of a worker. */
export interface WorkItem {
  readonly processManager: string
  readonly kind: string
  readonly key: string
  readonly payload: Readonly<Record<string, unknown>>
  /** From 1; a try that a crash or a lost lease cut short counts, one that a hold or an orderly stop ended does not. */
  readonly attempt: number
  /** Service-clock milliseconds at which it was due. */
  readonly dueAt: number
  readonly correlationId: string
  /** Event id that caused it. */
  readonly causationId: string
  readonly tenantId: string | null
  readonly environment: 'live' | 'sandbox' | null
  /** Aborts when the lease is lost or the service stops; stop at the next safe point by throwing its reason. */
  readonly signal: AbortSignal
}

/** What became of a piece of work. A thrown error counts as `retry` with the runner's backoff. */
export type WorkOutcome =
  | { readonly outcome: 'done' }
  /** Try again after real milliseconds (something outside was not ready). */
  | { readonly outcome: 'retry'; readonly afterMs: number; readonly why: string }
  /** An operator holds it at that point on purpose: it goes on by itself when the hold is cleared. */
  | { readonly outcome: 'held'; readonly at: FaultPoint }
  /** Do it again at a service-clock time. */
  | { readonly outcome: 'reschedule'; readonly at: number }
  /** Give up; it stays visible to operators with its reason. */
  | { readonly outcome: 'stop'; readonly why: string }

export type WorkHandler = (item: WorkItem) => Promise<WorkOutcome>

import type { LogTree } from '../../../application/audit/log-tree.ts'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import type { ConsoleSessions } from '../../../application/ports/console-sessions.ts'
import type { DeadLetters } from '../../../application/ports/dead-letters.ts'
import type { EventLog } from '../../../application/ports/event-log.ts'
import type { LogMemory } from '../../../application/ports/log-memory.ts'
import type { Outbox } from '../../../application/ports/outbox.ts'
import type { Throughput } from '../../../application/ports/throughput.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type {
  ProjectionStatus,
  ShownDeadLetteredStream,
} from '../../../projections/runtime/projection-status.ts'
import type { WorkOverview } from './work-schema.ts'

/** What operators do with projections. Every method throws ProjectionError for what is not possible. */
export interface ProjectionOperations {
  list(): Promise<readonly ProjectionStatus[]>
  show(name: string): Promise<ProjectionStatus & { readonly parked: readonly ShownDeadLetteredStream[] }>
  /** Starts a rebuild beside the live tables; `manual` waits for {@link switch}. */
  rebuild(name: string, options: { switch?: 'auto' | 'manual' }): Promise<unknown>
  /** Puts the rebuilt tables in place of the live ones. */
  switch(name: string): Promise<unknown>
  /** Puts the tables that were live before back in place. */
  rollback(name: string): Promise<unknown>
  /** Gives a rebuild up; the live tables stay as they are. */
  cancel(name: string): Promise<unknown>
  pause(name: string): Promise<unknown>
  resume(name: string): Promise<unknown>
  /** Tries dead-lettered streams again (all, or one); a dry run only counts. */
  redrive(name: string, options: { stream?: string; dryRun?: boolean }): Promise<unknown>
}

/** Work of the process managers, as operators see it. */
export interface WorkOperations {
  overview(): Promise<WorkOverview>
  /** Tries failed work again (all, or one piece); a dry run only counts. @returns how much of it there is. */
  redrive(options: {
    readonly key: { readonly processManager: string; readonly kind: string; readonly key: string } | null
    readonly dryRun: boolean
  }): Promise<number>
  /** Removes work of a kind that this release does not have (all, or one piece); a dry run only counts. @returns how much of it there is. */
  discard(options: {
    readonly processManager: string
    readonly kind: string
    readonly key: string | null
    readonly dryRun: boolean
  }): Promise<number | Rejection>
}

/** The state of this process and what it depends on. */
export interface Health {
  /** False: the process cannot serve. */
  readonly ok: boolean
  /** What calls for a person although the process serves, in a few words each. */
  readonly degraded?: readonly string[]
  /** What was looked at, with a word or number each. */
  readonly checks: Readonly<Record<string, unknown>>
}

/** What the operator API drives and the composition root provides. */
export interface OperatorServices {
  /** For what reads much of the log: its reads wait for a server that is away for a moment. */
  readonly patientLog: EventLog
  readonly logMemory: LogMemory
  readonly logTree: LogTree
  readonly outbox: Outbox
  readonly throughput: Throughput
  /** What cannot be taken back waits for a second operator. */
  readonly needsSecondOperator: boolean
  readonly consoleSessions: ConsoleSessions
  /** Hosts under which the service shows hosted pages itself, with their ports. */
  portalHosts(): readonly string[]
  readonly projections: ProjectionOperations
  readonly work: WorkOperations
  readonly deadLetters: DeadLetters
  /** Moves the virtual clock on, by seconds or to a time in epoch milliseconds, and does what falls due on the way. */
  advanceClock(
    by: { readonly seconds: number } | { readonly to: number },
    context: CommandContext,
  ): Promise<{ readonly now: number } | Rejection>
  /** Waits until nothing is left to do at the present clock. `waiting_for` names what was left when the time ran out. */
  drain(timeoutMs: number): Promise<{ readonly drained: boolean; readonly waiting_for?: unknown }>
  /** Whether the process lives; never looks at anything outside it. */
  health(): Health | Promise<Health>
  /** Whether the process can serve, and what is stuck. */
  readiness(): Health | Promise<Health>
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>
}

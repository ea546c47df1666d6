import type { LogMark } from './event-log.ts'

/** An event that was read. */
export interface RememberedMark extends LogMark {
  /** How many events stand up to it; null where nobody counted them. */
  readonly events: number | null
}

/** What an installation remembers of its log, outside of it. */
export interface LogMemory {
  /** Events that were read, ascending, and the furthest checkpoint. */
  recall(): Promise<{ readonly marks: readonly RememberedMark[]; readonly reached: bigint }>
  /** Remembers an event that was read. */
  remember(mark: RememberedMark): Promise<void>
}

import type { ListPage, PageRequest } from './read-database.ts'

/** What reads the log, and may meet an event that it cannot handle. */
export const READER_KINDS = ['projection', 'process_manager', 'integration_events'] as const
export type ReaderKind = (typeof READER_KINDS)[number]

/** A stream that waits behind an event which a reader of the log could not handle. */
export interface DeadLetter {
  /** Name of the projection or process manager; `integration-events`. */
  readonly reader: string
  readonly kind: ReaderKind
  /** Of the projection; null of other readers. */
  readonly generation: number | null
  readonly stream: string
  /** Of the event. */
  readonly revision: number
  /** Why it could not be handled; holds no values. */
  readonly error: string | null
  readonly attempts: number
  /** Since when the stream waits, by the database's clock; null: an earlier release set it aside. */
  readonly since: Date | null
}

/** What a list of them is narrowed to; null: everything. */
export interface DeadLetterScope {
  readonly reader: string | null
  readonly kind: ReaderKind | null
}

/** A reader of the log; a projection and a process manager may have one name. */
export interface LogReader {
  readonly name: string
  readonly kind: ReaderKind
}

/** The streams that wait, of all readers of the log. */
export interface DeadLetters {
  /** All readers, by name: those of this release, and those of others that the database still knows. */
  readers(): Promise<readonly LogReader[]>
  /** Newest first. */
  list(scope: DeadLetterScope, page: PageRequest): Promise<ListPage<DeadLetter>>
}

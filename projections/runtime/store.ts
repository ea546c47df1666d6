import type { Failure, FailureCategory } from './failures.ts'
import type { ProjectionState, Row, TableDefinition } from './projection.ts'

/**
 * What the runtime needs of a database. One generation of a projection is one set of physical tables
 * with a checkpoint of its own; queries see the tables of the live one.
 */

/** `live` answers queries, `shadow` is being built beside it, `retired` is kept for going back. */
export type GenerationRole = 'live' | 'shadow' | 'retired'

/** One generation as stored. */
export interface GenerationRecord {
  readonly projection: string
  readonly generation: number
  readonly version: number
  readonly role: GenerationRole
  readonly state: ProjectionState
  /** Everything up to here is applied. */
  readonly position: bigint
  /** Lease epoch of its owner. */
  readonly epoch: number
  /** Key and columns of its tables, see {@link shapeOf}. */
  readonly shape: string
  readonly tables: readonly TableDefinition[]
  /** A shadow: whether it goes live by itself. */
  readonly autoSwitch: boolean
  /** Set after going back: the version that was left, which is not built again by itself. */
  readonly rolledBackFrom: number | null
  /** Positions per second, lately. */
  readonly rate: number
  readonly failure: Failure | null
  readonly comparison: Comparison | null
  readonly deadLetteredStreams: number
}

/** What a generation is addressed by. */
export interface GenerationRef {
  readonly projection: string
  readonly generation: number
  readonly tables: readonly TableDefinition[]
}

/** Live and shadow tables held against each other at one position of the log. */
export interface Comparison {
  readonly position: number
  readonly equal: boolean
  readonly tables: readonly {
    readonly table: string
    readonly equal: boolean
    /** Hashes cover the columns that both have. */
    readonly live: { readonly rows: number; readonly hash: string }
    readonly shadow: { readonly rows: number; readonly hash: string }
    /** Where they are not equal: in how many rows, and the first of them by key. Left out where their keys differ. */
    readonly differing_rows?: number
    readonly differences?: readonly RowDifference[]
  }[]
}

/** A row that live and shadow tables do not have alike. Values are texts as PostgreSQL writes them, personal ones masked. */
export interface RowDifference {
  readonly key: Readonly<Record<string, string>>
  /** Where there is no such row; null where both have one. */
  readonly missing_in: 'live' | 'shadow' | null
  /** The columns that differ; of a missing row all others are null. */
  readonly columns: readonly {
    readonly column: string
    readonly live: string | null
    readonly shadow: string | null
  }[]
}

/** A stream that waits: its first event that could not be applied, and the error. */
export interface DeadLetteredStream {
  readonly stream: string
  readonly position: bigint
  readonly revision: number
  readonly type: string
  readonly category: FailureCategory
  readonly message: string
  readonly attempts: number
  /** ISO 8601 UTC, database time; empty until stored. */
  readonly deadLetteredAt: string
}

/** What a page made of the tables. Row keys appear in one of the two lists. */
export interface TableChanges {
  readonly table: string
  readonly put: readonly Row[]
  /** Rows of key columns. */
  readonly removed: readonly Row[]
}

/** A page ready to be written. */
export interface PageOfChanges {
  readonly epoch: number
  /** The checkpoint as this owner left it, and where it moves. */
  readonly from: bigint
  readonly to: bigint
  readonly tables: readonly TableChanges[]
  readonly deadLetter: readonly DeadLetteredStream[]
  readonly redriven: readonly string[]
  readonly rate: number
}

/** Something an operator asked of a projection; its owner answers. */
export interface ProjectionRequest {
  readonly id: string
  readonly projection: string
  readonly kind: RequestKind
  readonly arguments: Readonly<Record<string, unknown>>
}
export type RequestKind = 'pause' | 'resume' | 'rebuild' | 'switch' | 'rollback' | 'cancel' | 'redrive'
export type RequestOutcome =
  | { readonly ok: true; readonly result: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly kind: 'conflict' | 'failed' | 'expired'; readonly message: string }

/** Generations of projections: their tables, their checkpoints, which of them answers. */
export interface GenerationStore {
  /** All generations of all projections. */
  all(): Promise<readonly GenerationRecord[]>
  /** Makes an epoch the only one that may write the generations of a projection. @returns them, as they stand then. */
  claim(projection: string, epoch: number): Promise<readonly GenerationRecord[]>
  /** Positions of the live generations, by projection. */
  positions(projections: readonly string[]): Promise<ReadonlyMap<string, bigint>>

  /** Creates the tables of a generation and its checkpoint at the start of the log; for a live one the views too. */
  create(
    generation: GenerationRef & {
      readonly version: number
      readonly role: 'live' | 'shadow'
      readonly autoSwitch: boolean
    },
    epoch: number,
  ): Promise<void>
  /** Drops a generation that is not live: tables, checkpoint and dead-lettered streams. */
  drop(generation: GenerationRef, epoch: number): Promise<void>
  /** Changes what is known about a generation; what is left out stays. */
  note(
    generation: GenerationRef,
    epoch: number,
    changes: {
      readonly state?: ProjectionState
      readonly failure?: Failure | null
      readonly comparison?: Comparison | null
      readonly autoSwitch?: boolean
      readonly role?: 'shadow' | 'retired'
    },
  ): Promise<void>

  /**
   * Compares two generations in one snapshot, at the position both stand at.
   * @param pinned called as soon as the snapshot is taken: both may go on from then.
   */
  compare(live: GenerationRef, shadow: GenerationRef, pinned: () => void): Promise<Comparison>
  /**
   * Makes the views answer from another generation, in one transaction; the old one is retired, and the request that
   * asked for it is answered.
   * @throws ProjectionStoreError `transient` when readers held the views for too long.
   */
  switchTo(
    from: GenerationRef,
    to: GenerationRef,
    epoch: number,
    options: {
      readonly rolledBackFrom: number | null
      readonly answer?: { readonly id: string; readonly outcome: RequestOutcome } | undefined
    },
  ): Promise<void>
}

/** Rows of a generation, its checkpoint, and its dead-lettered streams. */
export interface PageStore {
  /** The rows with those keys, of one table. */
  fetch(
    generation: GenerationRef,
    table: string,
    keys: readonly (readonly unknown[])[],
  ): Promise<readonly Row[]>
  /** Writes a page and moves the checkpoint in one transaction, by compare-and-set on position and epoch. */
  write(generation: GenerationRef, page: PageOfChanges): Promise<void>
  /** The checkpoint as stored. */
  position(generation: GenerationRef, epoch: number): Promise<bigint>
  deadLettered(
    generation: Pick<GenerationRef, 'projection' | 'generation'>,
  ): Promise<readonly DeadLetteredStream[]>
}

/** What operators ask of the owners of projections. */
export interface RequestStore {
  /** Leaves a request for the owner of a projection. @returns its id. */
  ask(projection: string, kind: RequestKind, args: Readonly<Record<string, unknown>>): Promise<string>
  /** Unanswered requests, oldest first; those older than a minute have been given up. */
  open(projections: readonly string[]): Promise<readonly ProjectionRequest[]>
  answer(id: string, outcome: RequestOutcome): Promise<void>
  /** @returns null while unanswered. */
  outcome(id: string): Promise<RequestOutcome | null>
}

/** Every operation throws {@link ProjectionStoreError}; those that take an epoch refuse an old one as `fenced`. */
export interface ProjectionStore {
  readonly generations: GenerationStore
  readonly pages: PageStore
  readonly requests: RequestStore
}

/** Keys and columns of tables as one comparable text: equal for generations that the same code can write. */
export function shapeOf(tables: readonly TableDefinition[]): string {
  const sorted = [...tables].sort((a, b) => (a.name < b.name ? -1 : 1))
  return JSON.stringify(
    sorted.map((table) => [
      table.name,
      table.key,
      Object.entries(table.columns).sort(([a], [b]) => (a < b ? -1 : 1)),
    ]),
  )
}

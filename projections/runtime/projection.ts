import type { RecordedEvent } from '../../application/event-store.ts'
import type { DomainEvent, EventOf, EventType } from '../../domain/kernel/event-type.ts'

/** PostgreSQL types that read models use. */
export type ColumnType = 'text' | 'integer' | 'bigint' | 'boolean' | 'date' | 'timestamptz' | 'jsonb'

/** A table of a read model, as projections and the runner see it. */
export interface TableDefinition {
  /** The name queries read: `read_model.<name>`. */
  readonly name: string
  /** Columns of the primary key. */
  readonly key: readonly string[]
  /** All columns, the key's included; those not in `key` may be null. */
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Further indexes, each a list of columns (with `desc` where wanted). */
  readonly indexes?: readonly (readonly string[])[]
}

/** A row: values by column. `jsonb` columns take any JSON value, `timestamptz` ISO strings, `bigint` numbers or bigints. */
export type Row = Record<string, unknown>

/** A table while a page is folded: reads see what the page wrote before. */
export interface FoldedTable {
  /** The row with that key as of now. Only rows named by `reads` (or put before in this page) are there. */
  get(...key: readonly unknown[]): Readonly<Row> | undefined
  /** Inserts or replaces a whole row; columns left out become null. */
  put(row: Row): void
  /** Changes some columns of a row that is there. @throws when it is not, which parks the event's stream. */
  change(key: readonly unknown[], columns: Row): void
  remove(...key: readonly unknown[]): void
}

/** How a projection handles one event type. Pure: nothing here reaches the outside. */
export interface Handler {
  readonly type: string
  /** Keys of the rows that `apply` may read or change, by table; the runner fetches them in one go per page. */
  readonly reads: (event: RecordedEvent) => Readonly<Record<string, readonly (readonly unknown[])[]>>
  readonly apply: (event: RecordedEvent, tables: Readonly<Record<string, FoldedTable>>) => void
}

/** A read model: its tables and what each event does to them. */
export interface Projection {
  readonly name: string
  /** Raise it with every change that needs a rebuild. */
  readonly version: number
  readonly tables: readonly TableDefinition[]
  readonly handlers: readonly Handler[]
}

/** Declares how a projection handles an event type, with the event typed. */
export function on<T extends EventType>(
  type: T,
  handler: {
    reads?: (
      event: RecordedEvent<Extract<EventOf<T>, DomainEvent>>,
    ) => Readonly<Record<string, readonly (readonly unknown[])[]>>
    apply: (
      event: RecordedEvent<Extract<EventOf<T>, DomainEvent>>,
      tables: Readonly<Record<string, FoldedTable>>,
    ) => void
  },
): Handler {
  return {
    type: type.name,
    reads: (handler.reads ?? (() => ({}))) as Handler['reads'],
    apply: handler.apply as Handler['apply'],
  }
}

/** Where a projection stands in its life; see docs/operations.md for the moves. */
export type ProjectionState = 'new' | 'booting' | 'active' | 'paused' | 'parked' | 'detached' | 'error'

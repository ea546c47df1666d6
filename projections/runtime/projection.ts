import type { RecordedEvent } from '../../application/commands/event-registry.ts'
import type {
  ChangedColumns,
  KeyOf,
  NewRow,
  RowOf,
  TableDefinition,
} from '../../application/queries/table.ts'
import type { DomainEvent, EventOf, EventType } from '../../domain/kernel/event-type.ts'

export type { TableDefinition }

/** A row: values by column. `jsonb` columns take any JSON value, `timestamptz` ISO strings, `bigint` numbers or bigints. */
export type Row = Record<string, unknown>

/** Columns that a table does not have: rows spread together must not carry them. */
type NoOther<Given, Known> = { readonly [C in Exclude<keyof Given, keyof Known>]: never }

/** A table while a page is folded: reads see what the page wrote before. */
export interface FoldedTable<T extends TableDefinition = TableDefinition> {
  /** The row with that key as of now. Only rows named by `reads` (or put before in this page) are there. */
  get(...key: KeyOf<T>): RowOf<T> | undefined
  /** Inserts or replaces a whole row; columns left out become null, and what is no column of it stays behind. */
  put(row: NewRow<T>): void
  /** Changes some columns of a row that is there. @throws when it is not, which dead-letters the event's stream. */
  change<R extends ChangedColumns<T>>(key: KeyOf<T>, columns: R & NoOther<R, ChangedColumns<T>>): void
  remove(...key: KeyOf<T>): void
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
  /** Every reader waits for the log's end: no command does, and rows are stored for many events at once. */
  readonly readersWait?: true
}

/** Tables by name, as handlers change them. */
type FoldedTables<Tables extends readonly TableDefinition[]> = {
  readonly [T in Tables[number] as T['name']]: FoldedTable<T>
}
/** Keys of rows by table, as handlers name them. */
type ReadKeys<Tables extends readonly TableDefinition[]> = {
  readonly [T in Tables[number] as T['name']]?: readonly KeyOf<T>[]
}

/** Declares how a projection handles an event type, with the event and the projection's tables typed. */
type On<Tables extends readonly TableDefinition[]> = <T extends EventType>(
  type: T,
  handler: {
    reads?: (event: RecordedEvent<Extract<EventOf<T>, DomainEvent>>) => ReadKeys<Tables>
    apply: (event: RecordedEvent<Extract<EventOf<T>, DomainEvent>>, tables: FoldedTables<Tables>) => void
  },
) => Handler

/** Declares a read model: its tables, and what each event does to them. */
export function projection<const Tables extends readonly TableDefinition[]>(definition: {
  readonly name: string
  /** Raise it with every change that needs a rebuild. */
  readonly version: number
  readonly tables: Tables
  /** See {@link Projection.readersWait}. */
  readonly readersWait?: true
  readonly handlers: (on: On<Tables>) => readonly Handler[]
}): Projection {
  const on: On<Tables> = (type, { reads, apply }) => ({
    type: type.name,
    reads: (reads ?? (() => ({}))) as Handler['reads'],
    apply: apply as unknown as Handler['apply'],
  })
  return { ...definition, handlers: definition.handlers(on) }
}

type Recorded<E extends EventType> = RecordedEvent<Extract<EventOf<E>, DomainEvent>>

/**
 * Declares what events change of one row. It must be there, unless nothing (`null`) is changed of it.
 * @param keyOf of the row that an event is about; default: the event names it as the key's column does.
 */
export function changing<T extends TableDefinition, Data = { readonly [Column in T['key'][number]]: string }>(
  table: T,
  keyOf = ((data: Record<string, unknown>) => table.key.map((column) => data[column])) as unknown as (
    data: Data,
  ) => KeyOf<T>,
) {
  return <E extends EventType, R extends ChangedColumns<T>>(
    type: E & (Recorded<E>['data'] extends Data ? unknown : never),
    columnsOf: (event: Recorded<E>, row: RowOf<T> | undefined) => (R & NoOther<R, ChangedColumns<T>>) | null,
  ): Handler => ({
    type: type.name,
    reads: ({ data }) => ({ [table.name]: [keyOf(data as Data)] }),
    apply(event, tables) {
      const key = keyOf(event.data as Data)
      const folded = tables[table.name]!
      const columns = columnsOf(event as Recorded<E>, folded.get(...key) as RowOf<T> | undefined)
      if (columns !== null) folded.change(key, columns)
    },
  })
}

/** Where a projection stands in its life; see docs/operators/operations.md for the moves. */
export type ProjectionState = 'new' | 'booting' | 'active' | 'paused' | 'parked' | 'detached' | 'error'

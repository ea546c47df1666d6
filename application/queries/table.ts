/**
 * Tables of read models, each declared once: the stored tables, the rows that handlers write and the
 * rows that queries read all follow from the declaration.
 */

/** PostgreSQL types that read models use. */
export type ColumnType = 'text' | 'integer' | 'bigint' | 'boolean' | 'date' | 'timestamptz' | 'jsonb'

declare const values: unique symbol

/** A column: its PostgreSQL type and, for the compiler, what is read from it and what may be written to it. */
export type Column<Read, Written = Read> = ColumnType & {
  readonly [values]: { readonly read: Read; readonly written: Written }
}

function column<Read, Written = Read>(type: ColumnType): Column<Read, Written> {
  return type as Column<Read, Written>
}

export const text = <Value extends string = string>() => column<Value>('text')
export const integer = () => column<number>('integer')
/** Reads as a number. */
export const bigint = () => column<number, number | bigint>('bigint')
export const boolean = () => column<boolean>('boolean')
/** Reads as `YYYY-MM-DD`. */
export const date = () => column<string>('date')
/** Reads as ISO 8601 UTC with milliseconds. */
export const timestamptz = () => column<string>('timestamptz')
export const jsonb = <Value>() => column<Value>('jsonb')

/** A column that may be null, and left out of a row. */
export function orNull<Read, Written>(
  column: Column<Read, Written>,
): Column<Read | null, Written | null | undefined> {
  return column as ColumnType as Column<Read | null, Written | null | undefined>
}

/** A table of a read model. */
export interface TableDefinition<
  Name extends string = string,
  Columns extends Readonly<Record<string, ColumnType>> = Readonly<Record<string, ColumnType>>,
  Key extends readonly string[] = readonly string[],
> {
  /** The name queries read: `read_model.<name>`. */
  readonly name: Name
  /** Columns of the primary key. */
  readonly key: Key
  /** All columns, the key's included. */
  readonly columns: Columns
  /** Further indexes, each a list of columns (with `desc` where wanted). */
  readonly indexes?: readonly (readonly string[])[]
  /** Columns of personal values: they are masked wherever rows are shown as they stand. */
  readonly personal?: readonly string[]
}

/** Declares a table. Stored tables follow it: another shape needs a higher version of its projection. */
export function table<
  const Name extends string,
  Columns extends Readonly<Record<string, ColumnType>>,
  const Key extends readonly (keyof Columns & string)[],
>(
  name: Name,
  definition: {
    readonly key: Key
    readonly columns: Columns
    readonly indexes?: readonly (readonly ((keyof Columns & string) | `${keyof Columns & string} desc`)[])[]
    readonly personal?: readonly (keyof Columns & string)[]
  },
): TableDefinition<Name, Columns, Key> {
  return { name, ...definition }
}

type ReadOf<C> = C extends { readonly [values]: { readonly read: infer Read } } ? Read : unknown
type WrittenTo<C> = C extends { readonly [values]: { readonly written: infer Written } } ? Written : unknown

/** A row as it is read. */
export type RowOf<T extends TableDefinition> = {
  readonly [C in keyof T['columns']]: ReadOf<T['columns'][C]>
}

type OptionalColumns<Columns> = {
  [C in keyof Columns]: undefined extends WrittenTo<Columns[C]> ? C : never
}[keyof Columns]

/** A whole row to write: what may be null may be left out. */
export type NewRow<T extends TableDefinition> = {
  readonly [C in Exclude<keyof T['columns'], OptionalColumns<T['columns']>>]: WrittenTo<T['columns'][C]>
} & { readonly [C in OptionalColumns<T['columns']>]?: WrittenTo<T['columns'][C]> }

/** Some columns of a row, none of them of the key. */
export type ChangedColumns<T extends TableDefinition> = {
  readonly [C in Exclude<keyof T['columns'], T['key'][number]>]?: WrittenTo<T['columns'][C]>
}

type KeyValues<Columns, Key extends readonly string[]> = {
  readonly [At in keyof Key]: Key[At] extends keyof Columns ? ReadOf<Columns[Key[At]]> : unknown
}

/** The values of a row's key, in the order of the key's columns. */
export type KeyOf<T extends TableDefinition> = KeyValues<T['columns'], T['key']>

/** Rows by table, as queries see them: each table adds itself where it is declared. */
// biome-ignore lint/suspicious/noEmptyInterface: declarations of tables fill it
export interface ReadModels {}

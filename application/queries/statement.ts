import {
  type CompiledQuery,
  DummyDriver,
  type Expression,
  type ExpressionBuilder,
  ExpressionWrapper,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryCreator,
  type SqlBool,
  type StringReference,
  sql,
  ValueNode,
} from 'kysely'
import type { Statement } from '../ports/read-database.ts'
import type { ReadModels } from './table.ts'

// what queries of other rooms are written with: the package itself stays here
export { type Expression, sql } from 'kysely'

/** What queries are built from; it reads only. */
export type Reading = Pick<QueryCreator<ReadModels>, 'selectFrom'>

/** Names a parameter where a query takes a value. */
export type Parameter<Parameters> = <Name extends keyof Parameters & string>(
  name: Name,
) => Expression<Parameters[Name]>

/** A query that was built, whatever tables it reads. */
interface Query<Row> {
  compile(): CompiledQuery
  execute(): Promise<Row[]>
}

class Named {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/** Builds texts of queries; it has no connection. */
const builder = new Kysely<ReadModels>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
}).withSchema('read_model')

const names = new Set<string>()

/**
 * A query on the read models, compiled here and once: declare it where modules are loaded.
 * @param name what the database knows it by; no two are alike.
 * @param build the query; values come from `$('<name of the parameter>')`, constants from `lit`.
 * @param options.plannedAnew its values decide how it is best answered.
 * @throws Error when the name is taken, or the query carries a value of its own.
 */
export function statement<Parameters, Row>(
  name: string,
  build: (db: Reading, $: Parameter<Parameters>) => Query<Row>,
  { plannedAnew = false }: { readonly plannedAnew?: boolean } = {},
): Statement<Parameters, Row> {
  if (names.has(name)) throw new Error(`There are two statements ${name}`)
  names.add(name)
  const query = build(builder, (name) => new ExpressionWrapper(ValueNode.create(new Named(name)))).compile()
  const parameters = query.parameters.map((value) => {
    if (!(value instanceof Named)) throw new Error(`Statement ${name} has a value that is no parameter`)
    return value.name as keyof Parameters & string
  })
  return { name, text: query.sql, parameters, ...(plannedAnew && { plannedAnew }) }
}

/** A text that is the same in every call, and so no parameter. */
export function constant<const Text extends string>(text: Text) {
  return sql.lit(text)
}

/** Tables that have all of some columns. */
export type TableWith<Column extends string> = {
  [Table in keyof ReadModels]: [Column] extends [keyof ReadModels[Table]] ? Table : never
}[keyof ReadModels]

/** What lists of things that expire are narrowed to: a status as of now, or null. */
export interface StatusWanted {
  readonly status: string | null
  /** ISO 8601: open ones whose time is over by then are expired, whatever the read model has heard of that. */
  readonly now: string
  readonly expired: 'expired'
}

/** Holds for rows that read a status at a moment: open ones whose time is over then read `expired`. */
export function readsStatus<Table extends TableWith<'status' | 'open' | 'expires_at'>>(
  builder: ExpressionBuilder<ReadModels, Table>,
  $: Parameter<StatusWanted>,
): Expression<SqlBool> {
  const eb = builder as unknown as ExpressionBuilder<ReadModels, 'payment_links'>
  const isOver = eb.and([eb('open', '=', eb.lit(true)), eb('expires_at', '<=', $('now'))])
  const wanted = eb.cast<string | null>($('status'), 'text')
  return eb.or([
    eb(wanted, 'is', null),
    eb.and([isOver, eb(wanted, '=', $('expired'))]),
    eb.and([eb.not(isOver), eb(eb.cast<string | null>('status', 'text'), '=', wanted)]),
  ])
}

/** Holds where each of some columns has the value of the parameter of its name, or that is null. */
export function equalIfGiven<Table extends keyof ReadModels, Scope>(
  eb: ExpressionBuilder<ReadModels, Table>,
  $: Parameter<Scope>,
  ...columns: readonly (keyof Scope & StringReference<ReadModels, Table> & string)[]
): Expression<SqlBool> {
  const isEqual = (column: (typeof columns)[number]) => {
    const value = $(column)
    return eb.or([eb(eb.cast(value, 'text'), 'is', null), eb(column, '=', value as Expression<never>)])
  }
  return eb.and(columns.map(isEqual))
}

/** Holds where a column has one of the values of a parameter, or the parameter is null. */
export function inIfGiven<Table extends keyof ReadModels>(
  eb: ExpressionBuilder<ReadModels, Table>,
  column: StringReference<ReadModels, Table>,
  parameter: Expression<readonly string[] | null>,
): Expression<SqlBool> {
  const list = eb.cast<readonly string[]>(parameter, sql`text[]`)
  return eb.or([eb(list, 'is', null), eb(column, '=', eb.fn.any(list) as Expression<never>)])
}

/** Holds where a column of ISO 8601 times lies within bounds, both included; null: there is none. */
export function isBetween<Table extends keyof ReadModels>(
  eb: ExpressionBuilder<ReadModels, Table>,
  column: StringReference<ReadModels, Table>,
  { from, to }: { readonly from: Expression<string | null>; readonly to: Expression<string | null> },
): Expression<SqlBool> {
  const least = eb.cast<string | null>(from, 'text')
  return eb.and([
    eb.or([eb(least, 'is', null), eb(column, '>=', least as Expression<never>)]),
    isUntil(eb, column, to),
  ])
}

/** Holds where a column of ISO 8601 times lies before a bound or at it; null: there is none. */
export function isUntil<Table extends keyof ReadModels>(
  eb: ExpressionBuilder<ReadModels, Table>,
  column: StringReference<ReadModels, Table>,
  to: Expression<string | null>,
): Expression<SqlBool> {
  const most = eb.cast<string | null>(to, 'text')
  return eb.or([eb(most, 'is', null), eb(column, '<=', most as Expression<never>)])
}

/** Holds where a condition is as a parameter says, or that is null. */
export function isAsGiven<Table extends keyof ReadModels>(
  eb: ExpressionBuilder<ReadModels, Table>,
  condition: Expression<SqlBool>,
  parameter: Expression<boolean | null>,
): Expression<SqlBool> {
  const wanted = eb.cast<SqlBool | null>(parameter, 'boolean')
  return eb.or([eb(wanted, 'is', null), eb(wanted, '=', eb.parens(condition))])
}

declare const row: unique symbol

/** A query that the database prepares once per connection under its name, unless it says otherwise. */
export interface Statement<Parameters, Row> {
  readonly name: string
  /** SQL with $1, $2 …; read models are `read_model.<table>`. */
  readonly text: string
  /** Which parameter stands for $1, $2 …; one may stand for several. */
  readonly parameters: readonly (keyof Parameters & string)[]
  /** The statement is planned for the values of each call, as they decide which index serves it; it is not prepared. */
  readonly plannedAnew?: boolean
  /** What a row looks like; for the compiler alone. */
  readonly [row]?: Row
}

/** What a row of a statement looks like. */
export type ResultOf<S> = S extends Statement<infer _, infer Row> ? Row : never

/** Read access to the read models. */
export interface ReadDatabase {
  /**
   * Runs a prepared statement. `bigint` columns come back as numbers, `date` columns as
   * `YYYY-MM-DD` strings, `timestamptz` columns as ISO 8601 UTC strings with milliseconds.
   */
  query<Parameters, Row>(
    statement: Statement<Parameters, Row>,
    parameters: Parameters,
  ): Promise<readonly Row[]>
}

/** A page of a list: `page` from 1, `limit` rows on each. */
export interface PageRequest {
  readonly page: number
  readonly limit: number
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** How many there are on all pages. */
  readonly total: number
}

/** A statement that the database prepares once per connection under its name. */
export interface Statement {
  readonly name: string
  /** SQL with $1, $2 …; read models are `read_model.<table>`. */
  readonly text: string
}

/** Read access to the read models. */
export interface ReadDatabase {
  /**
   * Runs a prepared statement. `bigint` columns come back as numbers, `date` columns as
   * `YYYY-MM-DD` strings, `timestamptz` columns as ISO 8601 UTC strings with milliseconds.
   */
  query<Row>(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]>
}

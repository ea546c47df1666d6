import type { Pool, QueryConfig, QueryResultRow } from 'pg'
import type { ReadDatabase, Statement } from '../../application/ports/read-database.ts'
import { ReadModelsLate } from '../../application/ports/read-models.ts'
import { plainTypes } from '../database/plain-types.ts'

const PLAN_OUTDATED = '0A000'
/** Undefined column, undefined table: another release's code has yet to build what the statement reads, or replaced it. */
const NOT_THERE = ['42703', '42P01']

/** Queries on the read models through a pool, each statement prepared once per connection unless it says otherwise. */
export class PostgresReadDatabase implements ReadDatabase {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * @throws DatabaseUnavailable
   * @throws ReadModelsLate when there is no such column or table: one release runs, and the tables are of another.
   */
  async query<Parameters, Row>(
    statement: Statement<Parameters, Row>,
    parameters: Parameters,
  ): Promise<readonly Row[]> {
    const query: QueryConfig = {
      ...(statement.plannedAnew ? {} : { name: statement.name }),
      text: statement.text,
      values: statement.parameters.map((name) => parameters[name]),
      types: plainTypes,
    }
    try {
      return await this.#rowsOf<Row>(query)
    } catch (error) {
      const { code = '' } = error as { code?: string }
      throw NOT_THERE.includes(code) ? new ReadModelsLate({ cause: error }) : error
    }
  }

  async #rowsOf<Row>(query: QueryConfig): Promise<Row[]> {
    try {
      return (await this.#pool.query<QueryResultRow & Row>(query)).rows
    } catch (error) {
      // a switch gave a column another type: connections that prepared the statement before keep refusing it
      const { code } = error as { code?: string }
      if (code !== PLAN_OUTDATED) throw error
      const { name: _, ...unprepared } = query
      return (await this.#pool.query<QueryResultRow & Row>(unprepared)).rows
    }
  }
}

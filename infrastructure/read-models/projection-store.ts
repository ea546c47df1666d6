import type { Pool } from 'pg'
import type { ProjectionStore } from '../../projections/runtime/store.ts'
import type { Database } from '../database/database.ts'
import { PostgresGenerationStore } from './generations.ts'
import { PostgresPageStore } from './pages.ts'
import { PostgresRequestStore } from './requests.ts'

/**
 * Projections in PostgreSQL. Each generation has a schema of its own; `read_model.<table>` are views
 * on the live one.
 */
export class PostgresProjectionStore implements ProjectionStore {
  readonly generations: PostgresGenerationStore
  readonly pages: PostgresPageStore
  readonly requests: PostgresRequestStore

  /** @param pool what pages are fetched and written through, default the database's pool for such. */
  constructor(database: Database, pool: Pool = database.background) {
    this.generations = new PostgresGenerationStore(database, pool)
    this.pages = new PostgresPageStore(pool)
    this.requests = new PostgresRequestStore(database, pool)
  }
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Processes that own leases, each with the number of the advisory lock that its session holds: whose lock is free is
 * gone, however long its leases would last.
 */
export const sessions: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.sessions (
        owner text COLLATE "C" PRIMARY KEY,
        lock integer NOT NULL UNIQUE
      )`.execute(db)
    await sql`CREATE SEQUENCE runtime.session_locks AS integer CYCLE`.execute(db)
  },
}

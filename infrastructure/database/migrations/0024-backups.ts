import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Backups of this database that were found whole, by the moment that they hold. */
export const backups: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.backups (
        backup text PRIMARY KEY,
        made_at timestamptz NOT NULL
      )`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Some events that were read of the log, with how many stand up to them where they were counted: what tells that the log
 * is an older one, also when it has grown since.
 */
export const logMarks: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.log_marks (
        position bigint NOT NULL,
        event_id uuid NOT NULL,
        events bigint,
        PRIMARY KEY (position, event_id)
      )`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** One row is one stream that waits, named by its first event that could not be applied. */
export const parkedStreams: SchemaMigration = {
  async up(db) {
    await sql`ALTER TABLE runtime.parked_events RENAME TO parked_streams`.execute(db)
  },
}

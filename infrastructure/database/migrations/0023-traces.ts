import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Where a trace goes on; null in rows of what is in no trace. */
export const traces: SchemaMigration = {
  async up(db) {
    for (const table of ['runtime.work', 'webhooks.events']) {
      await sql`ALTER TABLE ${sql.table(table)} ADD COLUMN traceparent text`.execute(db)
    }
  },
}

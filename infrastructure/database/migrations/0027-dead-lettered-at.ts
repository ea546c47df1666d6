import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Since when a stream waits behind an event; null in rows of all other work. */
export const deadLetteredAt: SchemaMigration = {
  async up(db) {
    await sql`ALTER TABLE runtime.work ADD COLUMN dead_lettered_at timestamptz`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Where an installation was moved to from this database, which it does not use any more. */
export const movedTo: SchemaMigration = {
  async up(db) {
    await sql`ALTER TABLE runtime.log_binding ADD COLUMN moved_to text COLLATE "C"`.execute(db)
  },
}

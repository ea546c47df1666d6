import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Files that went to banks and files that came from them, in parts, each encrypted. */
export const bankArchive: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.bank_archive (
        ref text COLLATE "C" NOT NULL,
        part integer NOT NULL,
        sealed bytea NOT NULL,
        PRIMARY KEY (ref, part)
      )`.execute(db)
  },
}

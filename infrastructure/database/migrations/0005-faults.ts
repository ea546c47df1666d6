import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Faults that operators injected, for all processes. */
export const faults: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.faults (
        point text COLLATE "C" PRIMARY KEY,
        mode text NOT NULL,
        times integer NOT NULL CHECK (times >= 0)
      )`.execute(db)
  },
}

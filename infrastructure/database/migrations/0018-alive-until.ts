import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Until when a process that owns something is alive, unless it says so again; releases before it leave that empty. */
export const aliveUntil: SchemaMigration = {
  async up(db) {
    await sql`ALTER TABLE runtime.sessions ADD COLUMN alive_until timestamptz`.execute(db)
  },
}

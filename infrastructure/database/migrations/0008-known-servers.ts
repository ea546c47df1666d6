import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Servers that were reached once: when one of them is away at a start, it is away, and no setting is wrong. */
export const knownServers: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.known_servers (
        address text COLLATE "C" PRIMARY KEY
      )`.execute(db)
  },
}

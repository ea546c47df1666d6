import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Since when a provider is away that work waits for. Earlier releases know it in the payload alone, so that it is
 * written there for both.
 */
export const awaySince: SchemaMigration = {
  async up(db) {
    await sql`
      ALTER TABLE runtime.work
        ADD COLUMN away_since bigint GENERATED ALWAYS AS ((payload ->> 'away_since')::bigint) STORED`.execute(
      db,
    )
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Deliveries that partners ask for once more: they run the immediate ladder alone, and no failure of theirs counts. */
export const resentDeliveries: SchemaMigration = {
  async up(db) {
    await sql`ALTER TABLE webhooks.deliveries ADD COLUMN resent boolean NOT NULL DEFAULT false`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Emails and texts that were recorded because no provider delivers them. Who they are for is sealed. */
export const outbox: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.outbox (
        message_key text COLLATE "C" PRIMARY KEY,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        channel text NOT NULL,
        recipient text COLLATE "C" NOT NULL,
        sealed text NOT NULL,
        at timestamptz NOT NULL
      )`.execute(db)
    await sql`CREATE INDEX ON runtime.outbox (seq)`.execute(db)
    await sql`CREATE INDEX ON runtime.outbox (recipient, seq)`.execute(db)
    await sql`CREATE INDEX ON runtime.outbox (at)`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Sessions of the web console. What opens one is in its cookie alone: here are a hash of it and what it opens. */
export const consoleSessions: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.console_sessions (
        secret_hash bytea PRIMARY KEY,
        sealed_token bytea NOT NULL,
        began timestamptz NOT NULL,
        seen timestamptz NOT NULL,
        used_forms text[] NOT NULL DEFAULT '{}'
      )`.execute(db)
  },
}

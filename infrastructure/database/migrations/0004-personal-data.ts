import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Keys of personal data, secrets and last uses: what is known beside the log. No plaintext ever gets here. */
export const personalData: SchemaMigration = {
  async up(db) {
    await sql`CREATE SCHEMA IF NOT EXISTS runtime`.execute(db)
    // a row outlives its key, so that what was sealed with it is known to be erased and not merely unreadable
    await sql`
      CREATE TABLE runtime.data_keys (
        subject text COLLATE "C" PRIMARY KEY,
        generation integer NOT NULL CHECK (generation BETWEEN 1 AND 65535),
        wrapped bytea,
        master_key_id text COLLATE "C",
        created_at timestamptz NOT NULL,
        destroyed_at timestamptz,
        destruction bigint,
        CHECK ((wrapped IS NULL) = (master_key_id IS NULL)),
        CHECK (wrapped IS NOT NULL OR destruction IS NOT NULL),
        CHECK ((destroyed_at IS NULL) = (destruction IS NULL))
      )`.execute(db)
    await sql`CREATE INDEX ON runtime.data_keys (destruction) WHERE destruction IS NOT NULL`.execute(db)
    await sql`
      CREATE TABLE runtime.erasures (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        count bigint NOT NULL
      )`.execute(db)
    await sql`INSERT INTO runtime.erasures (count) VALUES (0)`.execute(db)
    await sql`
      CREATE TABLE runtime.secrets (
        ref text COLLATE "C" PRIMARY KEY,
        sealed bytea NOT NULL,
        wrapped_key bytea NOT NULL,
        master_key_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL
      )`.execute(db)
    await sql`
      CREATE TABLE runtime.last_used (
        credential_id text COLLATE "C" PRIMARY KEY,
        at_ms bigint NOT NULL
      ) WITH (fillfactor = 50)`.execute(db)
  },
}

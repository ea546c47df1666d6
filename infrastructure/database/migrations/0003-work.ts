import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Where process managers stand in the log, and the work they want done. */
export const work: SchemaMigration = {
  async up(db) {
    await sql`CREATE SCHEMA IF NOT EXISTS runtime`.execute(db)
    await sql`
      CREATE TABLE runtime.process_managers (
        name text COLLATE "C" PRIMARY KEY,
        position bigint NOT NULL,
        epoch bigint NOT NULL,
        problem text
      )`.execute(db)
    // numbers no two claims ever share: a worker that lost its lease cannot end the claim of another
    await sql`CREATE SEQUENCE runtime.work_claims AS bigint`.execute(db)
    await sql`
      CREATE TABLE runtime.work (
        process_manager text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        payload jsonb NOT NULL,
        due_at bigint NOT NULL,
        stored_order bigint GENERATED ALWAYS AS IDENTITY,
        state text NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'leased', 'failed')),
        not_before timestamptz NOT NULL DEFAULT '-infinity',
        attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
        held_at text,
        again boolean NOT NULL DEFAULT false,
        lease_owner text,
        lease_until timestamptz,
        lease_token bigint,
        correlation_id text NOT NULL,
        causation_id text NOT NULL,
        tenant_id text,
        environment text,
        last_error text,
        PRIMARY KEY (process_manager, kind, key),
        CHECK ((state = 'leased') = (lease_token IS NOT NULL)),
        CHECK ((lease_token IS NULL) = (lease_owner IS NULL)),
        CHECK ((lease_token IS NULL) = (lease_until IS NULL))
      ) WITH (fillfactor = 70)`.execute(db)
    await sql`CREATE INDEX work_due ON runtime.work (due_at, stored_order) WHERE state <> 'failed'`.execute(
      db,
    )
    // rows come and go all the time: their dead versions are cleared before they slow the claims down
    await sql`
      ALTER TABLE runtime.work SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)
    `.execute(db)
  },
}

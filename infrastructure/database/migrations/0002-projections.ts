import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * What the projections run on: leases, checkpoints, dead-lettered streams and requests of operators in
 * `runtime`, the views that queries read in `read_model`. The physical tables are not here: each
 * generation of a projection has a schema of its own, `rm_<projection>_g<generation>`, made at run time.
 */
export const projections: SchemaMigration = {
  async up(db) {
    await sql`CREATE SCHEMA IF NOT EXISTS runtime`.execute(db)
    await sql`CREATE SCHEMA IF NOT EXISTS read_model`.execute(db)
    await sql`
      CREATE TABLE runtime.leases (
        name text COLLATE "C" PRIMARY KEY,
        owner text COLLATE "C" NOT NULL,
        epoch bigint NOT NULL,
        expires_at timestamptz NOT NULL
      ) WITH (fillfactor = 50)`.execute(db)
    await sql`
      CREATE TABLE runtime.projections (
        projection text COLLATE "C" NOT NULL,
        generation integer NOT NULL,
        version integer NOT NULL,
        role text NOT NULL CHECK (role IN ('live', 'shadow', 'retired')),
        state text NOT NULL,
        position bigint NOT NULL DEFAULT 0,
        epoch bigint NOT NULL,
        rate double precision NOT NULL DEFAULT 0,
        shape text NOT NULL,
        tables jsonb NOT NULL,
        auto_switch boolean NOT NULL,
        rolled_back_from integer,
        failure jsonb,
        comparison jsonb,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (projection, generation)
      ) WITH (fillfactor = 50)`.execute(db)
    await sql`CREATE UNIQUE INDEX ON runtime.projections (projection) WHERE role = 'live'`.execute(db)
    await sql`
      CREATE TABLE runtime.parked_events (
        projection text COLLATE "C" NOT NULL,
        generation integer NOT NULL,
        stream text COLLATE "C" NOT NULL,
        position bigint NOT NULL,
        revision integer NOT NULL,
        type text COLLATE "C" NOT NULL,
        category text NOT NULL,
        message text NOT NULL,
        attempts integer NOT NULL,
        parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (projection, generation, stream),
        FOREIGN KEY (projection, generation) REFERENCES runtime.projections ON DELETE CASCADE
      )`.execute(db)
    await sql`
      CREATE TABLE runtime.projection_requests (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        projection text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        arguments jsonb NOT NULL,
        requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        outcome jsonb
      )`.execute(db)
    await sql`CREATE INDEX ON runtime.projection_requests (projection, id) WHERE outcome IS NULL`.execute(db)
  },
}

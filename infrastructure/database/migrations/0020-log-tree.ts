import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** The Merkle tree over the log in tiles, how far it reaches, and the signed checkpoints of it. */
export const logTree: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.log_tree_tiles (
        level smallint NOT NULL,
        index bigint NOT NULL,
        hashes bytea NOT NULL,
        after bigint,
        event_ids bytea,
        PRIMARY KEY (level, index)
      )`.execute(db)
    // hashes cannot be compressed
    await sql`
      ALTER TABLE runtime.log_tree_tiles
        ALTER COLUMN hashes SET STORAGE EXTERNAL, ALTER COLUMN event_ids SET STORAGE EXTERNAL`.execute(db)
    await sql`
      CREATE TABLE runtime.log_tree (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        size bigint NOT NULL,
        position bigint NOT NULL,
        event_id uuid
      )`.execute(db)
    await sql`
      CREATE TABLE runtime.log_checkpoints (
        size bigint PRIMARY KEY,
        note text NOT NULL,
        key text NOT NULL,
        made_at timestamptz NOT NULL
      )`.execute(db)
  },
}

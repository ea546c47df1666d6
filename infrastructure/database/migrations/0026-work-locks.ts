import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Locks what is there already of the work that a checkpoint stores or cancels, in the order of all statements on several
 * pieces, and deletes what is cancelled. Each piece is looked up by the primary key, whatever the planner believes of the
 * size of the table: statistics of a table that was nearly empty then would lead to a look at all of it, for each checkpoint.
 */
export const workLocks: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE FUNCTION runtime.lock_and_cancel(stored jsonb, cancelled jsonb) RETURNS void
      LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
      BEGIN
        -- LIMIT keeps each look by itself
        PERFORM FROM (
          SELECT * FROM jsonb_to_recordset(stored || cancelled) AS named (process_manager text, kind text, key text)
          ORDER BY process_manager COLLATE "C", kind COLLATE "C", key COLLATE "C"
        ) AS named CROSS JOIN LATERAL (
          SELECT FROM runtime.work
          WHERE (work.process_manager, work.kind, work.key) = (named.process_manager, named.kind, named.key)
          LIMIT 1 FOR UPDATE
        ) AS locked;
        DELETE FROM runtime.work WHERE ctid = ANY (ARRAY(
          SELECT place FROM jsonb_to_recordset(cancelled) AS named (process_manager text, kind text, key text)
            CROSS JOIN LATERAL (
              SELECT ctid AS place FROM runtime.work
              WHERE (work.process_manager, work.kind, work.key) = (named.process_manager, named.kind, named.key)
              LIMIT 1) AS there));
      END $$`.execute(db)
  },
}

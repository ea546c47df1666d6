import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Lookups of many rows by their keys, each by the index, whatever the planner believes of the size of the table: a plan
 * that was made when it was nearly empty stays until statistics are taken anew, and would look at all rows for each key.
 */
export const lookups: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE FUNCTION runtime.data_keys_of(subjects text[])
      RETURNS TABLE (subject text, generation integer, wrapped bytea, master_key_id text)
      LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
      #variable_conflict use_column
      BEGIN
        -- LIMIT keeps each lookup by itself, here and below
        RETURN QUERY
          SELECT found.* FROM unnest(subjects) AS wanted (subject) CROSS JOIN LATERAL (
            SELECT subject, generation, wrapped, master_key_id FROM runtime.data_keys
            WHERE data_keys.subject = wanted.subject LIMIT 1
          ) AS found;
      END $$`.execute(db)
    // work that a checkpoint stores or cancels: what is there already is locked in the order of all statements on several
    // pieces, and what is cancelled deleted
    await sql`
      CREATE FUNCTION runtime.lock_and_cancel(stored jsonb, cancelled jsonb) RETURNS void
      LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
      BEGIN
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

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Work by what it waits for, each state with an index of its own, and by what its kind allows only some of at once.
 * Reactions that failed were a piece each: their streams become one.
 */
export const workSlots: SchemaMigration = {
  async up(db) {
    await sql`DROP INDEX runtime.work_due`.execute(db)
    await sql`
      ALTER TABLE runtime.work
        DROP CONSTRAINT work_state_check,
        ADD COLUMN concurrency_key text COLLATE "C" NOT NULL DEFAULT '',
        ALTER COLUMN not_before DROP NOT NULL,
        ALTER COLUMN not_before DROP DEFAULT`.execute(db)
    await sql`ALTER TABLE runtime.work RENAME COLUMN not_before TO paused_until`.execute(db)
    await sql`
      INSERT INTO runtime.work AS work
        (process_manager, kind, key, payload, due_at, state, attempts, correlation_id, causation_id, last_error)
      SELECT DISTINCT ON (process_manager, stream)
        process_manager, '$stream', stream, payload || jsonb_build_object('revision', revision), due_at,
        CASE state WHEN 'failed' THEN 'failed' ELSE 'due' END, attempts, correlation_id, causation_id, last_error
      FROM (
        SELECT work.*, substring(key FROM '^(.*)@[0-9]+$') AS stream,
          substring(key FROM '@([0-9]+)$')::bigint AS revision
        FROM runtime.work WHERE kind = '$reaction'
      ) AS reaction
      ORDER BY process_manager, stream, revision`.execute(db)
    await sql`DELETE FROM runtime.work WHERE kind = '$reaction'`.execute(db)
    await sql`
      UPDATE runtime.work SET
        state = CASE
          WHEN held_at IN (SELECT point FROM runtime.faults WHERE mode = 'hold') THEN 'held'
          WHEN paused_until > clock_timestamp() THEN 'paused'
          ELSE 'later'
        END
      WHERE state = 'due'`.execute(db)
    await sql`UPDATE runtime.work SET paused_until = NULL WHERE state <> 'paused'`.execute(db)
    await sql`UPDATE runtime.work SET held_at = NULL WHERE state <> 'held'`.execute(db)
    await sql`
      ALTER TABLE runtime.work
        ADD CHECK (state IN ('later', 'paused', 'held', 'due', 'leased', 'failed')),
        ADD CHECK ((state = 'paused') = (paused_until IS NOT NULL)),
        ADD CHECK ((state = 'held') = (held_at IS NOT NULL))`.execute(db)
    await sql`
      CREATE INDEX work_due ON runtime.work (process_manager, kind, concurrency_key, due_at, stored_order)
        WHERE state = 'due'`.execute(db)
    await sql`CREATE INDEX work_later ON runtime.work (due_at) WHERE state = 'later'`.execute(db)
    await sql`CREATE INDEX work_paused ON runtime.work (paused_until) WHERE state = 'paused'`.execute(db)
    await sql`CREATE INDEX work_leased ON runtime.work (lease_token) WHERE state = 'leased'`.execute(db)
    await sql`CREATE INDEX work_failed ON runtime.work (due_at, stored_order) WHERE state = 'failed'`.execute(
      db,
    )
  },
}

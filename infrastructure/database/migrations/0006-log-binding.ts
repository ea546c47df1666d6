import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Which event log the checkpoints in this database stand in: positions mean something in that one only. */
export const logBinding: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.log_binding (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        engine text COLLATE "C" NOT NULL CHECK (engine IN ('postgresql', 'eventstoredb')),
        first_event_id uuid,
        first_position bigint,
        CHECK ((first_event_id IS NULL) = (first_position IS NULL))
      )`.execute(db)
    // before this, there was no other engine
    await sql`
      INSERT INTO runtime.log_binding (engine, first_event_id, first_position)
        SELECT 'postgresql', event_id, position FROM event_log.events ORDER BY position LIMIT 1`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * The event log. One table holds the whole truth: the head of the log, the revision of a stream and its last hash
 * are read from its indexes, so nothing can disagree with the events, not even after a partial restore.
 */
export const eventLog: SchemaMigration = {
  async up(db) {
    // byte order, whatever locale the cluster has, so that an index survives a change of the system's locale data;
    // json keeps the text exactly as written, jsonb would not
    await sql`CREATE SCHEMA event_log`.execute(db)
    await sql`
      CREATE TABLE event_log.events (
        position bigint CONSTRAINT events_position PRIMARY KEY,
        revision integer NOT NULL CHECK (revision >= 0),
        event_id uuid NOT NULL CONSTRAINT events_event_id UNIQUE,
        stream text COLLATE "C" NOT NULL,
        type text COLLATE "C" NOT NULL,
        data json NOT NULL,
        metadata json NOT NULL,
        CONSTRAINT events_stream_revision UNIQUE (stream, revision)
      )`.execute(db)
    await sql`
      CREATE FUNCTION event_log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'events are immutable: % on event_log.events is refused', TG_OP
          USING ERRCODE = 'restrict_violation';
      END
      $$`.execute(db)
    await sql`
      CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON event_log.events
        FOR EACH STATEMENT EXECUTE FUNCTION event_log.refuse_change()`.execute(db)
    // always: also for sessions that replay with session_replication_role = replica
    await sql`ALTER TABLE event_log.events ENABLE ALWAYS TRIGGER immutable`.execute(db)
  },
}

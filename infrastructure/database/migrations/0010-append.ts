import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * Appends to the event log as one statement. It runs with the rights of its caller, who may insert events.
 *
 * Whoever appends holds the lock from before the last position is read until the commit: positions become visible in
 * order and without gaps. Each statement in it sees what was committed before it began, the first one after the lock
 * included. Events of one stream in a batch follow each other, so one look per stream tells whether all of them have
 * their place; those of a stream that has not are left out, and the others get the positions.
 */
export const append: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE FUNCTION event_log.append(
        -- the streams of the batch, and the revision at which each has to be
        expected_streams text[], expected_revisions integer[],
        -- the events in order
        streams text[], revisions integer[], event_ids uuid[], types text[],
        data_texts json[], metadata_texts json[],
        -- who tells other processes how far the log reaches then; null tells nobody
        writer text,
        -- the last position before those of the events, and the streams that were refused
        OUT base bigint, OUT refused text[]
      ) LANGUAGE plpgsql VOLATILE AS $$
      DECLARE
        stored integer;
      BEGIN
        PERFORM pg_advisory_xact_lock(7305420017320845001);
        SELECT COALESCE(max(position), 0) INTO base FROM event_log.events;
        SELECT COALESCE(array_agg(expected.stream), '{}') INTO refused
          FROM unnest(expected_streams, expected_revisions) AS expected (stream, revision)
         WHERE expected.revision <> COALESCE(
                 (SELECT last.revision FROM event_log.events AS last
                   WHERE last.stream = expected.stream COLLATE "C"
                   ORDER BY last.revision DESC LIMIT 1), -1);
        INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
          SELECT base + row_number() OVER (ORDER BY event.n),
                 event.revision, event.event_id, event.stream, event.type, event.data, event.metadata
            FROM unnest(streams, revisions, event_ids, types, data_texts, metadata_texts)
                   WITH ORDINALITY AS event (stream, revision, event_id, type, data, metadata, n)
           WHERE event.stream <> ALL (refused);
        GET DIAGNOSTICS stored = ROW_COUNT;
        IF stored > 0 AND writer IS NOT NULL THEN
          PERFORM pg_notify('event_log_appended', (base + stored) || ' ' || writer);
        END IF;
      END
      $$`.execute(db)
    // ids tell an append that is sent again from another one at the same place; nothing looks for them in the whole log
    await sql`ALTER TABLE event_log.events DROP CONSTRAINT events_event_id`.execute(db)
  },
}

import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * What became of webhooks: the events with the bytes that are sent, their deliveries, and how many events in a row each
 * subscription has failed. All times are milliseconds of the service's clock. Rows are added in the order of their times,
 * so that a block range finds the old ones; no change to a delivery touches an index.
 */
export const webhookDeliveries: SchemaMigration = {
  async up(db) {
    await sql`CREATE SCHEMA webhooks`.execute(db)
    await sql`
      CREATE TABLE webhooks.events (
        event_id text COLLATE "C" PRIMARY KEY,
        tenant_id text COLLATE "C" NOT NULL,
        environment text NOT NULL,
        event_type text NOT NULL,
        body text NOT NULL,
        created_at bigint NOT NULL
      )`.execute(db)
    await sql`
      CREATE TABLE webhooks.deliveries (
        delivery_id text COLLATE "C" PRIMARY KEY,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        event_id text COLLATE "C" NOT NULL,
        subscription_id text COLLATE "C" NOT NULL,
        created_at bigint NOT NULL,
        test boolean NOT NULL DEFAULT false,
        status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'retrying', 'failed', 'delivered')),
        attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
        rung integer NOT NULL DEFAULT 0,
        next_attempt_at bigint,
        last_attempt_at bigint,
        last_response_code integer,
        last_error text,
        delivered_at bigint,
        revision integer NOT NULL DEFAULT -1
      ) WITH (fillfactor = 60)`.execute(db)
    await sql`
      CREATE INDEX deliveries_of_subscription
        ON webhooks.deliveries (subscription_id, created_at, seq)`.execute(db)
    for (const table of ['events', 'deliveries']) {
      await sql`
        CREATE INDEX ${sql.ref(`${table}_age`)} ON webhooks.${sql.ref(table)}
          USING brin (created_at) WITH (autosummarize = on)`.execute(db)
    }
    await sql`
      CREATE TABLE webhooks.health (
        subscription_id text COLLATE "C" PRIMARY KEY,
        failure_count integer NOT NULL CHECK (failure_count >= 0),
        reset_revision integer NOT NULL DEFAULT -1
      ) WITH (fillfactor = 70)`.execute(db)
  },
}

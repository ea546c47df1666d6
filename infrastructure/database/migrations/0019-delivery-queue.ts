import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/**
 * A delivery that is not over waits in its own row: `state` says for what. It has none where it is over, or where an
 * earlier release stored it as work, from where it is taken over. A lease without an owner is a pause in real time.
 */
export const deliveryQueue: SchemaMigration = {
  async up(db) {
    await sql`
      ALTER TABLE webhooks.events ADD COLUMN correlation_id text, ADD COLUMN causation_id text`.execute(db)
    await sql`
      ALTER TABLE webhooks.deliveries
        ADD COLUMN host text,
        ADD COLUMN state text CHECK (state IN ('due', 'later', 'asleep', 'leased')),
        ADD COLUMN tries integer NOT NULL DEFAULT 0,
        ADD COLUMN lease_owner text,
        ADD COLUMN lease_until timestamptz,
        ADD COLUMN lease_token bigint`.execute(db)
    await sql`
      CREATE INDEX deliveries_queue
        ON webhooks.deliveries (state, (attempts > 0), subscription_id, next_attempt_at, seq)
        WHERE state IS NOT NULL`.execute(db)
    await sql`
      CREATE INDEX deliveries_later ON webhooks.deliveries (next_attempt_at) WHERE state = 'later'`.execute(
      db,
    )
    await sql`
      CREATE INDEX deliveries_asleep
        ON webhooks.deliveries (subscription_id, revision) WHERE state = 'asleep'`.execute(db)
    await sql`
      CREATE INDEX deliveries_asleep_age ON webhooks.deliveries (created_at) WHERE state = 'asleep'`.execute(
      db,
    )
    await sql`
      CREATE INDEX deliveries_over
        ON webhooks.deliveries (seq) WHERE state IS NOT NULL AND next_attempt_at IS NULL`.execute(db)
  },
}

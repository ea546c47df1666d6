import { sql } from 'kysely'
import type { SchemaMigration } from './schema-migration.ts'

/** Samples of how much was stored and how late its readers were; `seconds` since the sample before, 0 where there was none. */
export const throughput: SchemaMigration = {
  async up(db) {
    await sql`
      CREATE TABLE runtime.throughput (
        at timestamptz PRIMARY KEY,
        seconds double precision NOT NULL,
        events bigint NOT NULL,
        events_behind bigint NOT NULL,
        seconds_behind double precision NOT NULL
      )`.execute(db)
  },
}

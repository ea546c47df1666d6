import type { Pool } from 'pg'

/** How often PostgreSQL made its log reach the disk since its statistics began, and how long that took. */
export interface DiskWaits {
  readonly syncs: number
  /** Null where the server does not take the time (`track_wal_io_timing`). */
  readonly seconds: number | null
}

/** What PostgreSQL 14 to 17 tells of it, all its databases together; null from those that do not. */
export async function diskWaits(pool: Pick<Pool, 'query'>): Promise<DiskWaits | null> {
  // as JSON: a column that a release lacks is null
  const { rows } = await pool.query<{ syncs: number | null; seconds: number | null }>({
    name: 'disk-waits',
    text: `SELECT (wal ->> 'wal_sync')::double precision AS syncs,
             CASE current_setting('track_wal_io_timing', true)
               WHEN 'on' THEN (wal ->> 'wal_sync_time')::double precision / 1000 END AS seconds
           FROM (SELECT to_jsonb(stat) AS wal FROM pg_stat_wal AS stat) AS told`,
  })
  const { syncs = null, seconds = null } = rows[0] ?? {}
  return syncs === null ? null : { syncs, seconds }
}

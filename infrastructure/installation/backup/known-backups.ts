import type { Pool } from 'pg'
import type { Manifest } from './manifest.ts'

/** Notes in the database that a backup of it was found whole. @throws DatabaseUnavailable */
export async function recordBackup(pool: Pool, { id, made_at }: Pick<Manifest, 'id' | 'made_at'>) {
  await pool.query({
    name: 'backups/record',
    text: 'INSERT INTO runtime.backups (backup, made_at) VALUES ($1, $2)',
    values: [id, made_at],
  })
}

/**
 * Milliseconds since the moment that the newest backup of a database holds, by the database's clock; null: none was made.
 * @throws DatabaseUnavailable
 */
export async function backupAge(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ ms: number | null }>({
    name: 'backups/age',
    text: 'SELECT (extract(epoch FROM now() - max(made_at)) * 1000)::float8 AS ms FROM runtime.backups',
  })
  return rows[0]!.ms
}

import type { Pool } from 'pg'

/** Whether one of these addresses (`host:port`) was ever reached by a process on this database. */
export async function isKnownServer(
  pool: Pick<Pool, 'query'>,
  addresses: readonly string[],
): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT 1 FROM runtime.known_servers WHERE address = ANY ($1)', [
    addresses,
  ])
  return (rowCount ?? 0) > 0
}

/** Remembers servers that were reached. */
export async function rememberServers(
  pool: Pick<Pool, 'query'>,
  addresses: readonly string[],
): Promise<void> {
  await pool.query(
    'INSERT INTO runtime.known_servers (address) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING',
    [addresses],
  )
}

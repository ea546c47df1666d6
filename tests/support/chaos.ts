import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../infrastructure/embedded-postgres/embedded-postgres.ts'
import { listServerProcesses, signal } from '../../infrastructure/embedded-postgres/processes.ts'
import type { RunningService } from './service.ts'

/** The processes of the embedded server of a data directory. */
export function databaseProcesses(dataDir: string): Promise<readonly number[]> {
  return listServerProcesses(join(dataDir, 'postgres'))
}

/** kill -9 of the service and of every process of its database at once. */
export async function killTree(service: RunningService): Promise<void> {
  const processes = await databaseProcesses(service.dataDir)
  const dead = service.kill()
  for (const pid of processes) signal(pid, 'SIGKILL')
  await dead
}

/** What of a stream survived, read from the database of a service that is down. */
export async function autopsy(dataDir: string, stream: string): Promise<readonly string[]> {
  const server = await startEmbeddedPostgres({ dataDir })
  const client = new pg.Client(server.url)
  try {
    await client.connect()
    const { rows } = await client.query<{ type: string }>(
      'SELECT type FROM event_log.events WHERE stream = $1 ORDER BY revision',
      [stream],
    )
    return rows.map(({ type }) => type)
  } finally {
    await client.end()
    await server.stop()
  }
}

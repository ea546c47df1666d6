import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import { startEmbeddedPostgres } from '../../../infrastructure/embedded-postgres/embedded-postgres.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { outageContract } from './event-log-outages.contract.ts'

deadlinesOfTheProduct()

// a server of its own: all other test files share one
outageContract('PostgreSQL', ['killed'], async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-outages-'))
  const server = await startEmbeddedPostgres({ dataDir, durable: false })
  const { url } = server
  await migrate({ url })
  const databases: Database[] = []
  return {
    async open() {
      const database = await openDatabase({ url })
      databases.push(database)
      return openPostgresEventLog({ database, patienceMs: 240_000 })
    },
    async remove() {
      for (const database of databases) await database.close()
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
    outages: [{ name: 'killed', happen: () => crash(url) }],
  }
})

/** kill -9 of one of its processes, after which the server ends all others and recovers from its write-ahead log. */
async function crash(url: string): Promise<void> {
  const session = async () => {
    const client = new pg.Client(url)
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const client = await session()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  process.kill(rows[0]!.pid, 'SIGKILL')
  await vi.waitUntil(
    async () => {
      const next = await session().catch(() => null)
      await next?.end()
      return next !== null
    },
    { timeout: 240_000, interval: 50 },
  )
}

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase } from './database.ts'
import { type RunningService, startProcess } from './service.ts'

/** Processes of one installation: one database, and the servers that were given. */
export interface Installation {
  /** Superuser url of the database. */
  readonly databaseUrl: string
  /** Starts one more process. */
  start(roles: string, env?: Record<string, string>): Promise<RunningService>
  /** Kills what still runs and removes everything. */
  stop(): Promise<void>
}

/** Servers that an installation uses; each is the caller's to end. */
interface InstallationOptions {
  /** Keeps the event log; default the database. */
  readonly eventStoreUrl?: string | undefined
  readonly natsUrl?: string | undefined
  /** An empty database; default one of the test server. */
  readonly databaseUrl?: string
  /** Settings of every process. */
  readonly env?: Record<string, string>
}

/** What processes share: keys, database and servers. Nothing runs yet. */
export async function createInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const { eventStoreUrl, natsUrl } = options
  const database = options.databaseUrl === undefined ? await createTestDatabase() : null
  const databaseUrl = options.databaseUrl ?? database!.url
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-many-'))
  const shared = {
    DATABASE_URL: databaseUrl,
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    ...(eventStoreUrl === undefined ? {} : { EVENTSTORE_URL: eventStoreUrl }),
    ...(natsUrl === undefined ? {} : { NATS_URL: natsUrl }),
    ...options.env,
  }
  const processes: RunningService[] = []
  return {
    databaseUrl,
    async start(roles, env = {}) {
      const service = await startProcess({ dataDir, env: { ...shared, ROLES: roles, ...env } })
      processes.push(service)
      return service
    },
    async stop() {
      await Promise.all(processes.map((service) => service.kill()))
      await database?.drop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

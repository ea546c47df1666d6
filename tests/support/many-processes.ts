import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type RunningService, startService } from './service.ts'

/** Processes of one installation: one database, and one NATS server where given. */
export interface Installation {
  readonly database: TestDatabase
  /** Starts one more process. */
  start(roles: string, env?: Record<string, string>): Promise<RunningService>
  /** Stops what still runs and removes everything. @returns the exit codes of what was stopped. */
  stop(): Promise<readonly (number | null)[]>
}

/** What tests need of an installation: an API to send to and the operator routes of the same process. */
export async function createInstallation(
  options: { natsUrl?: string; env?: Record<string, string> } = {},
): Promise<Installation> {
  const database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-many-'))
  const shared = {
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    ...(options.natsUrl === undefined ? {} : { NATS_URL: options.natsUrl }),
    ...options.env,
  }
  const processes: RunningService[] = []
  return {
    database,
    async start(roles, env = {}) {
      const service = await startService({ dataDir, env: { ...shared, ROLES: roles, ...env } })
      processes.push(service)
      return service
    },
    async stop() {
      const alive = processes.filter(
        ({ process: { exitCode, signalCode } }) => exitCode === null && signalCode === null,
      )
      const codes = await Promise.all(alive.map((service) => service.stop({ keepData: true })))
      await database.drop()
      await rm(dataDir, { recursive: true, force: true })
      return codes
    },
  }
}

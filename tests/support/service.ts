import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { describeHosts } from './described-hosts.ts'
import { eventStoreOf, installationName, natsOf } from './installation.ts'
import {
  type RunningService,
  type ServiceAddresses,
  type StartOptions,
  startProcess as startAnyProcess,
  startProcesses,
} from './service-process.ts'
import { ROLES, type SharedAddresses } from './shared-services.ts'

export type { RunningService, ServiceAddresses } from './service-process.ts'

/** A service that several suites use, one after the other. */
export interface SharedService extends ServiceAddresses {
  /** Everything its processes wrote to stdout and stderr so far, by line. */
  output(): Promise<readonly string[]>
}

/**
 * The service of this worker, on the installation that the suites run on: for suites that ask for no settings, start or
 * end of their own. It holds what earlier suites stored, so a suite works with a tenant of its own and leaves clock,
 * faults and projections as it found them, but for the time, which only goes on.
 */
export async function sharedService(): Promise<SharedService> {
  const path = `/service/${process.env.VITEST_POOL_ID}/${installationName}`
  const { outputUrl, ...service } = await ask<SharedAddresses>(path)
  describeHosts(service)
  return { ...service, output: () => ask(outputUrl) }
}

/** Asks the process of the runner, see shared-services.ts. */
async function ask<Answer>(path: string): Promise<Answer> {
  const answer = await fetch(`${inject('sharedServices')}${path}`)
  if (!answer.ok) throw new Error(await answer.text())
  return answer.json() as Promise<Answer>
}

interface OwnStart extends Omit<StartOptions, 'preparedDir'> {
  /** Lets the service create its cluster itself, as a user's first start does. */
  readonly isFirstStart?: boolean
}

/**
 * Starts a whole service on free ports and waits until it is ready: the installation that the suites run on.
 * @param options.env settings on top of the defaults for tests (virtual clock, no rate limits).
 * @param options.dataDir an existing data directory, to continue where another service stopped.
 * @param options.release the built project to start, default this one.
 */
export async function startService(options: OwnStart = {}): Promise<RunningService> {
  if (installationName === 'embedded') return startProcess(options)
  const isOwn = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'compstream-')))
  const settings = await settingsOf(dataDir, options.env ?? {})
  const env = { ...settings, ...options.env }
  const service = await startProcesses(ROLES[installationName], { ...options, dataDir, env })
  return {
    ...service,
    async stop() {
      await service.stop()
      if (!isOwn) return
      await forget(dataDir)
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Starts one process, an embedded server on a copy of a cluster that is made once a run. */
export async function startProcess({ isFirstStart, ...options }: OwnStart = {}): Promise<RunningService> {
  const isOnItsOwn = isFirstStart || options.release !== undefined || options.env?.DATABASE_URL !== undefined
  return startAnyProcess(isOnItsOwn ? options : { ...options, preparedDir: await ask('/prepared-data') })
}

/** What a data directory of an installation with servers of its own stands for. */
interface Data {
  readonly database: TestDatabase
  readonly keys: Readonly<Record<'MASTER_KEY' | 'OPERATOR_TOKEN', string>>
}
const dataOf = new Map<string, Promise<Data>>()

/** Settings that all processes of a service share, the same for every service on one data directory. */
async function settingsOf(
  dataDir: string,
  env: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const { DATABASE_URL: given } = env
  const keys = {
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
  }
  if (given === undefined && !dataOf.has(dataDir)) {
    dataOf.set(
      dataDir,
      createTestDatabase({ migrate: false }).then((database) => ({ database, keys })),
    )
  }
  const data = given === undefined ? await dataOf.get(dataDir) : undefined
  const databaseUrl = given ?? data!.database.url
  const [eventStoreUrl, natsUrl] = await Promise.all([eventStoreOf(databaseUrl), natsOf(databaseUrl)])
  return {
    DATABASE_URL: databaseUrl,
    ...(data?.keys ?? keys),
    ...(eventStoreUrl === null ? {} : { EVENTSTORE_URL: eventStoreUrl }),
    ...(natsUrl === null ? {} : { NATS_URL: natsUrl }),
  }
}

async function forget(dataDir: string): Promise<void> {
  const data = dataOf.get(dataDir)
  dataOf.delete(dataDir)
  await (await data)?.database.drop()
}

/** Drops what services of a suite left that it started on a directory of its own. */
export async function dropDatabases(): Promise<void> {
  await Promise.all([...dataOf.keys()].map(forget))
}

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEventStore } from './eventstoredb.ts'
import type { InstallationName } from './installation.ts'
import { startNats } from './nats.ts'
import { type PreparedData, prepareData } from './prepared-data.ts'
import {
  type RunningService,
  type ServiceAddresses,
  startProcess,
  startProcesses,
} from './service-process.ts'

/** Roles of the processes of an installation, the one that answers requests first. */
export const ROLES: Readonly<Record<InstallationName, readonly string[]>> = {
  embedded: ['api,projector,worker'],
  'postgres-nats': ['api,projector,worker'],
  'eventstoredb-nats': ['api', 'projector', 'worker'],
}

/** What a suite knows of a service that it shares. */
export interface SharedAddresses extends ServiceAddresses {
  /** What its processes have written so far, by line, is below this address. */
  readonly outputUrl: string
}

interface Shared {
  readonly installation: InstallationName
  readonly service: Pick<RunningService, keyof ServiceAddresses | 'output' | 'processes'>
  stop(): Promise<void>
}

/** The one service of each worker of the test runner. */
interface SharedServices {
  readonly url: string
  stop(): Promise<void>
}

/**
 * Starts services that suites share, when the first of a worker asks for it, and makes the cluster that others start on a
 * copy of. A worker has one suite at a time: it finds what earlier ones stored, and nobody writes beside it. Runs in the
 * process of the runner, which outlives workers.
 * @param postgresUrl the test server, as its superuser.
 */
export async function openSharedServices(postgresUrl: string): Promise<SharedServices> {
  const ofWorkers = new Map<string, Promise<Shared>>()
  let preparing: Promise<PreparedData> | undefined
  const preparedDir = async () => {
    preparing ??= prepareData()
    return (await preparing).path
  }
  const take = async (worker: string, installation: InstallationName): Promise<Shared> => {
    const last = await ofWorkers.get(worker)?.catch(() => undefined)
    if (last?.installation === installation && last.service.processes.every(isAlive)) return last
    await last?.stop()
    const starting = start(installation, postgresUrl, preparedDir)
    ofWorkers.set(worker, starting)
    return starting
  }
  const server = createServer((request, response) => {
    const [, what, worker, installation] = request.url!.split('/') as [
      string,
      string,
      string,
      InstallationName,
    ]
    const answering = async () => {
      if (what === 'prepared-data') return preparedDir()
      const { service } = await take(worker, installation)
      if (what === 'output') return service.output
      return { ...addressesOf(service), outputUrl: `/output/${worker}/${installation}` }
    }
    answering().then(
      (answer) => response.end(JSON.stringify(answer)),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
      const started = await Promise.allSettled(ofWorkers.values())
      await Promise.all(started.map((one) => (one.status === 'fulfilled' ? one.value.stop() : undefined)))
      await (await preparing)?.remove()
    },
  }
}

function isAlive({ process: { exitCode, signalCode } }: Pick<RunningService, 'process'>): boolean {
  return exitCode === null && signalCode === null
}

function addressesOf(service: ServiceAddresses): ServiceAddresses {
  const { mcpUrl, coreUrl, paymentsUrl, portalUrl, opsUrl, operatorToken, dataDir, databaseUrl } = service
  return { mcpUrl, coreUrl, paymentsUrl, portalUrl, opsUrl, operatorToken, dataDir, databaseUrl }
}

async function start(
  installation: InstallationName,
  postgresUrl: string,
  preparedDir: () => Promise<string>,
): Promise<Shared> {
  if (installation === 'embedded') {
    const service = await startProcess({ preparedDir: await preparedDir() })
    return { installation, service, stop: service.stop }
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-shared-'))
  const [database, nats, eventStore] = await Promise.all([
    emptyDatabase(postgresUrl),
    startNats(),
    installation === 'eventstoredb-nats' ? startEventStore() : null,
  ])
  const service = await startProcesses(ROLES[installation], {
    dataDir,
    env: {
      DATABASE_URL: database.url,
      NATS_URL: nats.url,
      ...(eventStore === null ? {} : { EVENTSTORE_URL: eventStore.url }),
      MASTER_KEY: randomBytes(32).toString('base64'),
      OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    },
  })
  return {
    installation,
    service,
    async stop() {
      await service.stop()
      await Promise.all([database.drop(), nats.stop(), eventStore?.stop()])
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function emptyDatabase(postgresUrl: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `shared_${randomBytes(8).toString('hex')}`
  const query = async (sql: string) => {
    const client = new pg.Client(postgresUrl)
    await client.connect()
    await client.query(sql)
    await client.end()
  }
  await query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`)
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  return { url: url.toString(), drop: () => query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServer, type ServerSource } from './find-server.ts'
import { EVENTSTOREDB_ENVIRONMENT, freePort, type ServerProcess, serverProcess } from './server-process.ts'

/** An EventStoreDB server with a log of its own. */
export interface EventStoreServer extends Pick<ServerProcess, 'kill' | 'end' | 'freeze' | 'thaw'> {
  readonly url: string
  /** Starts it again after it was killed or ended, at the same address and with what was stored. */
  restart(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

/** As in docker-compose.yml. */
const IMAGE = 'eventstore/eventstore:23.10.8-bookworm-slim'
/** Settings of a node without TLS, users or anything that the service does not use. */
export const PLAIN_NODE = ['--insecure', '--run-projections=None', '--enable-atom-pub-over-http=false']

/**
 * Where tests get a server from: the address in TEST_EVENTSTORE_URL, the program `eventstored` or `kurrentd` on the
 * PATH, a container where Docker answers. @returns null when there is none of them: such suites are skipped by name.
 */
export function findEventStore(): Promise<ServerSource | null> {
  found ??= findServer('TEST_EVENTSTORE_URL', ['eventstored', 'kurrentd'])
  return found
}
let found: Promise<ServerSource | null> | undefined

/** The server's program on this machine; null where there is none. */
export async function eventStoreProgram(): Promise<string | null> {
  const source = await findEventStore()
  return source?.kind === 'program' ? source.path : null
}

interface ServerOptions {
  /** On disk, so that it can be restarted; default false: in memory, quicker. */
  readonly keepsData?: boolean
  /** A directory of the caller's, which is made when it is not there; only a program takes it. */
  readonly database?: string
  /** An earlier server, whose address this one takes; only a program does. */
  readonly at?: EventStoreServer
}

/**
 * Starts a server that is the caller's alone, and empty unless its database is given. One that was given by address is
 * shared and cannot be killed.
 */
export async function startEventStore(options: ServerOptions = {}): Promise<EventStoreServer> {
  const source = await findEventStore()
  if (!source) throw new Error('no EventStoreDB server was found')
  if (source.kind === 'given') {
    const no = () => {
      throw new Error('a server given by TEST_EVENTSTORE_URL is not the tests’ to kill')
    }
    return {
      url: source.url,
      kill: no,
      restart: no,
      end: no,
      freeze: no,
      thaw: no,
      stop: async () => undefined,
    }
  }
  return source.kind === 'program' ? startProgram(source.path, options) : startContainer()
}

async function startProgram(path: string, options: ServerOptions): Promise<EventStoreServer> {
  const { database: given, keepsData = given !== undefined, at } = options
  const folder = await mkdtemp(join(tmpdir(), 'compstream-eventstore-'))
  const database = given ?? join(folder, 'db')
  const port = at ? Number(/:(\d+)/.exec(at.url)![1]) : await freePort()
  const server = serverProcess(path, [
    ...[...PLAIN_NODE, ...(await addressOf(port))],
    ...['--log', join(folder, 'log'), ...(keepsData ? ['--db', database] : ['--mem-db'])],
  ])
  const start = async () => {
    const startOnce = () => server.start(() => leads(`http://127.0.0.1:${port}/gossip`))
    const isToCut = existsSync(join(database, 'truncate.chk'))
    // since 24.10.0 a server that has cut its log ends, and serves at its next start
    await startOnce().catch((error) => {
      if (!isToCut || existsSync(join(database, 'truncate.chk'))) throw error
      return startOnce()
    })
  }
  try {
    await start()
  } catch (error) {
    await server.kill()
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    ...server,
    url: `esdb://127.0.0.1:${port}?tls=false`,
    restart: keepsData ? start : () => Promise.reject(new Error('it has kept nothing: see keepsData')),
    async stop() {
      await server.kill()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Settings of a node that listens on this machine alone. */
export async function addressOf(port: number): Promise<string[]> {
  return [
    ...['--node-ip', '127.0.0.1', '--node-port', String(port)],
    ...['--replication-ip', '127.0.0.1', '--replication-port', String(await freePort())],
  ]
}

async function startContainer(): Promise<EventStoreServer> {
  const { GenericContainer, Wait } = await import('testcontainers')
  const port = await freePort()
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts({ container: 2113, host: port })
    .withEnvironment({
      ...EVENTSTOREDB_ENVIRONMENT,
      EVENTSTORE_INSECURE: 'true',
      EVENTSTORE_RUN_PROJECTIONS: 'None',
    })
    .withWaitStrategy(Wait.forHttp('/health/live', 2113).forStatusCode(204))
    .start()
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    kill: () => container.stop({ timeout: 0, remove: false }).then(() => undefined),
    restart: () => container.restart(),
    end: () => container.stop({ remove: false }).then(() => undefined),
    freeze: () => {
      throw new Error('a server in a container cannot be frozen')
    },
    thaw: () => undefined,
    stop: () => container.stop({ timeout: 0 }).then(() => undefined),
  }
}

/** Whether the server leads, and so takes appends. */
function leads(gossip: string): Promise<boolean> {
  return fetch(gossip)
    .then(async (answer) => /"state":\s*"Leader"/.test(await answer.text()))
    .catch(() => false)
}

import { type ChildProcess, spawn } from 'node:child_process'
import { access, constants, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** An EventStoreDB server with a log of its own. */
export interface EventStoreServer {
  readonly url: string
  /** kill -9. */
  kill(): Promise<void>
  /** Starts it again after {@link kill}, at the same address and with what was stored. */
  restart(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

export type EventStoreSource =
  | { readonly kind: 'given'; readonly url: string }
  | { readonly kind: 'program'; readonly path: string }
  | { readonly kind: 'container' }

const IMAGE = 'eventstore/eventstore:24.10'
const READY_LIMIT_MS = 60_000

/**
 * Where tests get a server from: the address in TEST_EVENTSTORE_URL, the program `eventstored` or `kurrentd` on the
 * PATH, a container where Docker answers. @returns null when there is none of them: such suites are skipped by name.
 */
export function findEventStore(): Promise<EventStoreSource | null> {
  found ??= find()
  return found
}
let found: Promise<EventStoreSource | null> | undefined

async function find(): Promise<EventStoreSource | null> {
  const given = process.env.TEST_EVENTSTORE_URL
  if (given) return { kind: 'given', url: given }
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const program of ['eventstored', 'kurrentd']) {
      const path = join(folder, program)
      const runs = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (runs) return { kind: 'program', path }
    }
  }
  const { getContainerRuntimeClient } = await import('testcontainers')
  return getContainerRuntimeClient().then(
    () => ({ kind: 'container' }) as const,
    () => null,
  )
}

/**
 * Starts a server that is the caller's alone, and empty. One that was given by address is shared and cannot be killed.
 * @param options.keepsData false: in memory, quicker; default true.
 */
export async function startEventStore(options: { keepsData?: boolean } = {}): Promise<EventStoreServer> {
  const source = await findEventStore()
  if (!source) throw new Error('no EventStoreDB server was found')
  if (source.kind === 'given') {
    const no = () =>
      Promise.reject(new Error('a server given by TEST_EVENTSTORE_URL is not the tests’ to kill'))
    return { url: source.url, kill: no, restart: no, stop: () => Promise.resolve() }
  }
  return source.kind === 'program' ? startProgram(source.path, options.keepsData ?? true) : startContainer()
}

async function startProgram(path: string, keepsData: boolean): Promise<EventStoreServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-eventstore-'))
  const [port, replicationPort] = await Promise.all([freePort(), freePort()])
  let child: ChildProcess | undefined
  const start = async () => {
    child = spawn(
      path,
      [
        ...['--insecure', '--run-projections=None', '--enable-atom-pub-over-http=false'],
        ...['--node-ip', '127.0.0.1', '--node-port', String(port)],
        ...['--replication-ip', '127.0.0.1', '--replication-port', String(replicationPort)],
        ...['--log', join(folder, 'log'), ...(keepsData ? ['--db', join(folder, 'db')] : ['--mem-db'])],
      ],
      { stdio: 'ignore', env: { ...process.env, EVENTSTORE_TELEMETRY_OPTOUT: 'true' } },
    )
    running.add(child)
    await ready(port, child)
  }
  const kill = async () => {
    const dying = child
    child = undefined
    if (!dying) return
    running.delete(dying)
    const gone = new Promise((resolve) => dying.once('exit', resolve))
    if (dying.exitCode !== null || dying.signalCode !== null) return
    dying.kill('SIGKILL')
    await gone
  }
  try {
    await start()
  } catch (error) {
    await kill()
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    kill,
    restart: start,
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

// a test file that fails half way leaves no server behind
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function startContainer(): Promise<EventStoreServer> {
  const { GenericContainer, Wait } = await import('testcontainers')
  const port = await freePort()
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts({ container: 2113, host: port })
    .withEnvironment({ EVENTSTORE_INSECURE: 'true', EVENTSTORE_RUN_PROJECTIONS: 'None' })
    .withWaitStrategy(Wait.forHttp('/health/live', 2113).forStatusCode(204))
    .start()
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    kill: () => container.stop({ timeout: 0, remove: false }).then(() => undefined),
    restart: () => container.restart(),
    stop: () => container.stop({ timeout: 0 }).then(() => undefined),
  }
}

/** Waits until the server leads, and so takes appends. */
async function ready(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS
  while (child.exitCode === null && performance.now() < deadline) {
    const leads = await fetch(`http://127.0.0.1:${port}/gossip`)
      .then(async (answer) => /"state":\s*"Leader"/.test(await answer.text()))
      .catch(() => false)
    if (leads) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`the EventStoreDB server did not become ready (exit code ${child.exitCode})`)
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

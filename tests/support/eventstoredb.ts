import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServer, type ServerSource } from './find-server.ts'

/** An EventStoreDB server with a log of its own. */
export interface EventStoreServer {
  readonly url: string
  /** kill -9. */
  kill(): Promise<void>
  /** Starts it again after {@link kill} or {@link end}, at the same address and with what was stored. */
  restart(): Promise<void>
  /** SIGTERM, and waits until it is gone. */
  end(): Promise<void>
  /** SIGSTOP: it keeps its connections and does nothing more. Only a program can be frozen. */
  freeze(): void
  /** Lets a frozen server go on. */
  thaw(): void
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

const IMAGE = 'eventstore/eventstore:24.10'
/** Below those that systems give to connections. */
const SERVER_PORTS = [12_000, 32_000] as const
const READY_LIMIT_MS = 120_000

/**
 * Where tests get a server from: the address in TEST_EVENTSTORE_URL, the program `eventstored` or `kurrentd` on the
 * PATH, a container where Docker answers. @returns null when there is none of them: such suites are skipped by name.
 */
export function findEventStore(): Promise<ServerSource | null> {
  found ??= findServer('TEST_EVENTSTORE_URL', ['eventstored', 'kurrentd'])
  return found
}
let found: Promise<ServerSource | null> | undefined

/**
 * Starts a server that is the caller's alone, and empty. One that was given by address is shared and cannot be killed.
 * @param options.keepsData false: in memory, quicker; default true.
 */
export async function startEventStore(options: { keepsData?: boolean } = {}): Promise<EventStoreServer> {
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
  return source.kind === 'program' ? startProgram(source.path, options.keepsData ?? true) : startContainer()
}

async function startProgram(path: string, keepsData: boolean): Promise<EventStoreServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-eventstore-'))
  const [port, replicationPort] = await Promise.all([freePort(), freePort()])
  const server = serverProcess(path, [
    ...['--insecure', '--run-projections=None', '--enable-atom-pub-over-http=false'],
    ...['--node-ip', '127.0.0.1', '--node-port', String(port)],
    ...['--replication-ip', '127.0.0.1', '--replication-port', String(replicationPort)],
    ...['--log', join(folder, 'log'), ...(keepsData ? ['--db', join(folder, 'db')] : ['--mem-db'])],
  ])
  const start = async () => {
    await server.start(() => leads(`http://127.0.0.1:${port}/gossip`))
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
    restart: start,
    async stop() {
      await server.kill()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A process of the server's program, not yet started. */
export interface ServerProcess extends Pick<EventStoreServer, 'kill' | 'end' | 'freeze' | 'thaw'> {
  /** Starts it and waits until `ready` says so. @throws Error when it ends, or after a minute. */
  start(ready: () => Promise<boolean>): Promise<void>
  /** Whether it runs. */
  isRunning(): boolean
}

/**
 * @param args settings of the server's command line.
 * @param env settings that it takes from the environment only.
 */
export function serverProcess(
  path: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ServerProcess {
  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals) => {
    const dying = child
    child = undefined
    if (!dying) return
    running.delete(dying)
    const gone = new Promise((resolve) => dying.once('exit', resolve))
    if (dying.exitCode !== null || dying.signalCode !== null) return
    dying.kill(signal)
    await gone
  }
  return {
    async start(ready) {
      const started = spawn(path, args, {
        stdio: 'ignore',
        env: { ...process.env, EVENTSTORE_TELEMETRY_OPTOUT: 'true', ...env },
      })
      child = started
      running.add(started)
      const deadline = performance.now() + READY_LIMIT_MS
      while (started.exitCode === null && performance.now() < deadline) {
        if (await ready()) return
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      throw new Error(`the EventStoreDB server did not become ready (exit code ${started.exitCode})`)
    },
    isRunning: () => child?.exitCode === null && child.signalCode === null,
    kill: () => end('SIGKILL'),
    end: () => end('SIGTERM'),
    freeze: () => {
      child?.kill('SIGSTOP')
      if (child?.pid !== undefined) untilStopped(child.pid)
    },
    thaw: () => void child?.kill('SIGCONT'),
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
  return fetch(gossip).then(
    async (answer) => /"state":\s*"Leader"/.test(await answer.text()),
    () => false,
  )
}

/**
 * A port that is free, and stays so for whoever starts or restarts a server on it: the system gives ports of this range
 * to nobody who asks for just any.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...SERVER_PORTS)
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}

/** Waits until every thread has stopped, where that can be seen: one that runs on could still answer. */
function untilStopped(pid: number): void {
  const threads = `/proc/${pid}/task`
  if (!existsSync(threads)) return
  const isStopped = (thread: string) => {
    try {
      return /\) T /.test(readFileSync(`${threads}/${thread}/stat`, 'utf8'))
    } catch {
      // it has just ended
      return true
    }
  }
  const deadline = performance.now() + 5_000
  while (!readdirSync(threads).every(isStopped) && performance.now() < deadline);
}

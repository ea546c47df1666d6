import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ended, hasEnded, running } from './servers.ts'

const READY_LIMIT_MS = 180_000
/** For one look whether it is ready: one that hangs must not hide that the server has died. */
const LOOK_LIMIT_MS = 2_000
const LOOK_MS = 50

/** An engine beside PostgreSQL, over loopback. */
export interface Engine {
  readonly url: string
  stop(): Promise<void>
}

/**
 * The server at TEST_EVENTSTORE_URL, which has to be empty; else the program `eventstored` or `kurrentd` on the PATH,
 * started durable as in production, on a temporary directory.
 * @returns null when there is neither.
 */
export async function startEventStore(): Promise<Engine | null> {
  const given = process.env.TEST_EVENTSTORE_URL
  if (given) return { url: given, stop: () => Promise.resolve() }
  const program = findProgram('eventstored', 'kurrentd')
  if (program === null) return null
  const [port, replicationPort] = await Promise.all([freePort(), freePort()])
  return startProgram(
    program,
    (folder) => [
      ...['--insecure', '--run-projections=None', '--db', join(folder, 'db'), '--log', join(folder, 'log')],
      ...['--node-ip', '127.0.0.1', '--node-port', String(port)],
      // a disk that others use as well may be slow for a moment
      ...['--write-timeout-ms', '--prepare-timeout-ms', '--commit-timeout-ms'].flatMap((name) => [
        name,
        '30000',
      ]),
      ...['--replication-ip', '127.0.0.1', '--replication-port', String(replicationPort)],
    ],
    `esdb://127.0.0.1:${port}?tls=false`,
    () => leads(port),
  )
}

/** The NATS server at TEST_NATS_URL, else the program `nats-server` on the PATH. @returns null when there is neither. */
export async function startNats(): Promise<Engine | null> {
  const given = process.env.TEST_NATS_URL
  if (given) return { url: given, stop: () => Promise.resolve() }
  const program = findProgram('nats-server')
  if (program === null) return null
  const port = await freePort()
  return startProgram(
    program,
    (folder) => ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', String(port)],
    `nats://127.0.0.1:${port}`,
    () => greets(port),
  )
}

function findProgram(...names: readonly string[]): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function startProgram(
  program: string,
  args: (folder: string) => readonly string[],
  url: string,
  isReady: () => Promise<boolean>,
): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-bench-engine-'))
  const child = spawn(program, args(folder), {
    stdio: 'ignore',
    env: {
      ...process.env,
      EVENTSTORE_TELEMETRY_OPTOUT: 'true',
      // on few cores EventStoreDB would make threads one by one, and answer nobody for seconds after its start
      DOTNET_ThreadPool_ForceMinWorkerThreads: '0x20',
    },
  })
  const gone = ended(child)
  const engine: Engine = {
    url,
    async stop() {
      running.delete(engine)
      // what it holds is thrown away: an orderly end would only take seconds
      child.kill('SIGKILL')
      await gone
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  running.add(engine)
  try {
    await untilReady(child, gone, isReady)
  } catch (error) {
    await engine.stop()
    throw error
  }
  return engine
}

/** @throws Error as soon as the server has ended, however it did. */
async function untilReady(
  child: ChildProcess,
  gone: Promise<string>,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS
  while (!hasEnded(child) && performance.now() < deadline) {
    if (await isReady()) return
    await delay(LOOK_MS)
  }
  const why = hasEnded(child) ? await gone : `was not ready after ${READY_LIMIT_MS / 1000} s`
  throw new Error(`${child.spawnfile} ${why}`)
}

/** Whether EventStoreDB leads, and so takes appends. */
function leads(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/gossip`, { signal: AbortSignal.timeout(LOOK_LIMIT_MS) })
    .then(async (answer) => /"state":\s*"Leader"/.test(await answer.text()))
    .catch(() => false)
}

/** Whether NATS greets, which it does when everything in it is ready. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1').setTimeout(LOOK_LIMIT_MS)
    const is = (answer: boolean) => () => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', is(true)).once('error', is(false)).once('close', is(false)).once('timeout', is(false))
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

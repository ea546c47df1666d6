import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EVENTSTOREDB_ENVIRONMENT } from '../tests/support/server-process.ts'
import { running } from './servers.ts'

const READY_LIMIT_MS = 180_000
const LOOK_MS = 50

/** An EventStoreDB server over loopback. */
export interface EventStoreServer {
  readonly url: string
  stop(): Promise<void>
}

/**
 * The server at TEST_EVENTSTORE_URL, which has to be empty; else the program `eventstored` or `kurrentd` on the PATH,
 * started durable as in production, on a temporary directory.
 * @returns null when there is neither.
 */
export async function startEventStore(): Promise<EventStoreServer | null> {
  const given = process.env.TEST_EVENTSTORE_URL
  if (given) return { url: given, stop: () => Promise.resolve() }
  const program = findProgram()
  return program === null ? null : startProgram(program)
}

function findProgram(): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const paths = folders.flatMap((folder) => ['eventstored', 'kurrentd'].map((name) => join(folder, name)))
  return paths.find(isExecutable) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function startProgram(program: string): Promise<EventStoreServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-bench-eventstore-'))
  const [port, replicationPort] = await Promise.all([freePort(), freePort()])
  const child = spawn(
    program,
    [
      ...['--insecure', '--run-projections=None', '--db', join(folder, 'db'), '--log', join(folder, 'log')],
      ...['--node-ip', '127.0.0.1', '--node-port', String(port)],
      // a disk that others use as well may be slow for a moment
      ...['--write-timeout-ms', '--prepare-timeout-ms', '--commit-timeout-ms'].flatMap((name) => [
        name,
        '30000',
      ]),
      ...['--replication-ip', '127.0.0.1', '--replication-port', String(replicationPort)],
    ],
    { stdio: 'ignore', env: { ...process.env, ...EVENTSTOREDB_ENVIRONMENT } },
  )
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const server: EventStoreServer = {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    async stop() {
      running.delete(server)
      // what it holds is thrown away: an orderly end would only take seconds
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  running.add(server)
  try {
    await untilLeading(port, child)
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

/** Waits until the server leads, and so takes appends. */
async function untilLeading(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS
  while (child.exitCode === null && performance.now() < deadline) {
    const leads = await fetch(`http://127.0.0.1:${port}/gossip`)
      .then(async (answer) => /"state":\s*"Leader"/.test(await answer.text()))
      .catch(() => false)
    if (leads) return
    await delay(LOOK_MS)
  }
  throw new Error(`The EventStoreDB server did not become ready (exit code ${child.exitCode})`)
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

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findEventStore } from './eventstoredb.ts'

/** A server whose files are at hand. */
export interface EventStoreNode {
  readonly port: number
  readonly url: string
  /** Ends it at once; its database stays. */
  stop(): Promise<void>
}

/** The server's program on this machine; null where there is none: such tests are skipped by name. */
export async function eventStoreProgram(): Promise<string | null> {
  const source = await findEventStore()
  return source?.kind === 'program' ? source.path : null
}

/**
 * Starts a server on a database directory of the caller's, which is made when it is not there, and waits until it
 * leads.
 * @param options.port where an earlier one listened, whose place this one takes.
 * @param options.env settings on top of an insecure single node's, `EVENTSTORE_…`.
 */
export async function startEventStoreOn(
  database: string,
  options: { port?: number; env?: Readonly<Record<string, string>> } = {},
): Promise<EventStoreNode> {
  const path = await eventStoreProgram()
  if (path === null) throw new Error('no program of EventStoreDB was found')
  const port = options.port ?? (await freePort())
  const logs = await mkdtemp(join(tmpdir(), 'compstream-eventstore-logs-'))
  const env = {
    PATH: process.env.PATH,
    EVENTSTORE_TELEMETRY_OPTOUT: 'true',
    EVENTSTORE_INSECURE: 'true',
    EVENTSTORE_RUN_PROJECTIONS: 'None',
    EVENTSTORE_ENABLE_ATOM_PUB_OVER_HTTP: 'false',
    EVENTSTORE_NODE_IP: '127.0.0.1',
    EVENTSTORE_NODE_PORT: String(port),
    EVENTSTORE_REPLICATION_IP: '127.0.0.1',
    EVENTSTORE_REPLICATION_PORT: String(await freePort()),
    ...options.env,
    EVENTSTORE_DB: database,
    EVENTSTORE_LOG: logs,
  }
  const child = spawn(path, [], { stdio: 'ignore', env })
  running.add(child)
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  const stop = async () => {
    running.delete(child)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await exited
    await rm(logs, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await leads(child, port, env.EVENTSTORE_INSECURE === 'true')
  } catch (error) {
    await stop()
    throw error
  }
  return { port, url: `esdb://127.0.0.1:${port}?tls=false`, stop }
}

// a test file that fails half way leaves no server behind
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function leads(child: ChildProcess, port: number, insecure: boolean): Promise<void> {
  const deadline = performance.now() + 90_000
  while (child.exitCode === null && performance.now() < deadline) {
    const gossip = await fetchText(`${insecure ? 'http' : 'https'}://127.0.0.1:${port}/gossip`)
    if (/"state":\s*"Leader"/.test(gossip)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`the EventStoreDB server did not become ready (exit code ${child.exitCode})`)
}

async function fetchText(url: string): Promise<string> {
  if (url.startsWith('http:')) {
    return fetch(url).then(
      (answer) => answer.text(),
      () => '',
    )
  }
  const { get } = await import('node:https')
  return new Promise((resolve) => {
    // what answers here was started here
    get(url, { rejectUnauthorized: false }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part) => parts.push(part)).on('end', () => resolve(Buffer.concat(parts).toString()))
    }).on('error', () => resolve(''))
  })
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

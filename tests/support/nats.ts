import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findServer } from './find-server.ts'

/** A NATS server with JetStream. */
export interface NatsServer {
  readonly url: string
  /** Null where the server is not this test's own: it cannot be killed and keeps what others put into it. */
  readonly own: {
    /** kill -9; resolves when it is gone. */
    kill(): Promise<void>
    /** Starts it again on the same port, with its data unless told otherwise. */
    restart(options?: { emptied?: boolean }): Promise<void>
  } | null
  stop(): Promise<void>
}

/**
 * Where tests get NATS from: the address in TEST_NATS_URL, else the program `nats-server`, else a container.
 * Null: there is none, and suites that need one are skipped by name.
 */
export const natsSource = await findServer('TEST_NATS_URL', ['nats-server'])
/** Only a program of its own can be killed and restarted on the same port. */
export const natsCanBeKilled = natsSource?.kind === 'program'

/** Starts a server for one test file, or connects to the given one. */
export async function startNats(): Promise<NatsServer> {
  if (natsSource === null) throw new Error('There is no NATS server for tests')
  switch (natsSource.kind) {
    case 'given':
      return { url: natsSource.url, own: null, stop: async () => undefined }
    case 'program':
      return startProgram(natsSource.path)
    case 'container':
      return startContainer()
  }
}

async function startContainer(): Promise<NatsServer> {
  const { GenericContainer } = await import('testcontainers')
  const container = await new GenericContainer('nats:2.10')
    .withCommand(['-js'])
    .withExposedPorts(4222)
    .start()
  return {
    url: `nats://${container.getHost()}:${container.getMappedPort(4222)}`,
    own: null,
    stop: async () => void (await container.stop()),
  }
}

async function startProgram(path: string): Promise<NatsServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-nats-'))
  let server = await launch(path, folder, -1)
  const { port } = server
  const end = async (signal: NodeJS.Signals) => {
    const { child } = server
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await exited
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    own: {
      kill: () => end('SIGKILL'),
      async restart({ emptied = false } = {}) {
        await end('SIGKILL')
        if (emptied) await rm(folder, { recursive: true, force: true })
        server = await launch(path, folder, port)
      },
    },
    async stop() {
      await end('SIGTERM')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** @param port -1 picks a free one. */
async function launch(
  path: string,
  folder: string,
  port: number,
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(path, ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  const lines: string[] = []
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`nats-server ended with ${code}:\n${lines.join('\n')}`)))
    createInterface({ input: child.stderr! }).on('line', (line) => {
      lines.push(line)
      const listening = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(line)
      if (listening) port = Number(listening[1])
      if (line.includes('Server is ready')) resolve({ child, port })
    })
  })
}

// a test file that fails half way leaves no server behind
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'

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
export const natsSource = await findSource()
/** Only a program of its own can be killed and restarted on the same port. */
export const natsCanBeKilled = natsSource === 'program'

/** Starts a server for one test file, or connects to the given one. */
export async function startNats(): Promise<NatsServer> {
  switch (natsSource) {
    case 'address':
      return { url: process.env.TEST_NATS_URL!, own: null, stop: async () => undefined }
    case 'program':
      return startProgram()
    case 'container':
      return startContainer()
    case null:
      throw new Error('There is no NATS server for tests')
  }
}

async function findSource(): Promise<'address' | 'program' | 'container' | null> {
  if (process.env.TEST_NATS_URL) return 'address'
  if (programPath() !== null) return 'program'
  return (await dockerAnswers()) ? 'container' : null
}

function programPath(): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'nats-server')
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // not here
    }
  }
  return null
}

async function dockerAnswers(): Promise<boolean> {
  const { DOCKER_HOST: given } = process.env
  const target = given?.startsWith('tcp://')
    ? { host: new URL(given).hostname, port: Number(new URL(given).port) }
    : { path: given?.replace(/^unix:\/\//, '') ?? '/var/run/docker.sock' }
  return new Promise((resolve) => {
    const socket = connect({ ...target, timeout: 1_000 })
    const done = (answers: boolean) => {
      socket.destroy()
      resolve(answers)
    }
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
    socket.once('timeout', () => done(false))
  })
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

async function startProgram(): Promise<NatsServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-nats-'))
  let running = await launch(folder, -1)
  const { port } = running
  const end = async (signal: NodeJS.Signals) => {
    const { child } = running
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
        running = await launch(folder, port)
      },
    },
    async stop() {
      await end('SIGTERM')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** @param port -1 picks a free one. */
async function launch(folder: string, port: number): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(programPath()!, ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
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

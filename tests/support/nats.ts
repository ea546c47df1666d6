import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServer } from './find-server.ts'
import { freePort, serverProcess } from './server-process.ts'

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

/** A program with settings of its own, in the server's own format. */
export async function startNatsWith(settings: string): Promise<NatsServer> {
  if (natsSource?.kind !== 'program') throw new Error('There is no program nats-server for tests')
  return startProgram(natsSource.path, settings)
}

async function startProgram(path: string, settings?: string): Promise<NatsServer> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-nats-'))
  const port = await freePort()
  const options = ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', String(port)]
  if (settings !== undefined) {
    await writeFile(join(folder, 'settings.conf'), settings)
    options.push('-c', join(folder, 'settings.conf'))
  }
  const server = serverProcess(path, options)
  const start = () => server.start(() => accepts(port))
  await start()
  return {
    url: `nats://127.0.0.1:${port}`,
    own: {
      kill: server.kill,
      async restart({ emptied = false } = {}) {
        await server.kill()
        if (emptied) await rm(folder, { recursive: true, force: true })
        await start()
      },
    },
    async stop() {
      await server.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Whether a server greets on a port, which it does when everything in it is ready. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const is = (answer: boolean) => () => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', is(true)).once('error', is(false)).once('close', is(false))
  })
}

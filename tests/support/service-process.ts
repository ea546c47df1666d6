import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endPreviousServer } from '../../infrastructure/embedded-postgres/processes.ts'
import { describeHosts } from './described-hosts.ts'
import { copyPreparedData } from './prepared-data.ts'
import { PATIENT } from './technical-deadlines.ts'
import { receiverSettings } from './webhook-receiver.ts'

/** Where a service is, and what it is asked with. */
export interface ServiceAddresses {
  readonly mcpUrl: string
  readonly coreUrl: string
  readonly paymentsUrl: string
  readonly portalUrl: string
  readonly opsUrl: string
  readonly operatorToken: string
  readonly dataDir: string
  /** Superuser url of the database. */
  readonly databaseUrl: string
}

/** A service started as its users start it: the built program in processes of its own. */
export interface RunningService extends ServiceAddresses {
  /** The process that has the hosts. */
  readonly process: ChildProcess
  /** Every process, the one that has the hosts first. */
  readonly processes: readonly RunningService[]
  /** Everything the processes wrote to stdout and stderr so far, by line. */
  readonly output: readonly string[]
  /** SIGTERM; resolves with the exit code, of several processes the first that is not 0. The data stays. */
  end(): Promise<number | null>
  /** kill -9 of all processes of the service; resolves when they are gone. The data stays. */
  kill(): Promise<void>
  /** Throws it away: kill -9, also of its embedded server. Removes the data unless its directory was given. */
  stop(): Promise<void>
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly dataDir?: string
  readonly timeoutMs?: number
  readonly release?: string
  /** What its data directory is a copy of where that has no cluster yet; default: the service makes its own. */
  readonly preparedDir?: string
}

/**
 * Starts a process for each of some roles on one data directory, and waits until all are ready.
 * @param roles the one that answers requests first.
 */
export async function startProcesses(
  roles: readonly string[],
  options: StartOptions & { readonly dataDir: string },
): Promise<RunningService> {
  const output: string[] = []
  const starting = roles.map((role) =>
    startProcess({ ...options, env: { ROLES: role, ...options.env } }, output),
  )
  const started = await Promise.allSettled(starting)
  const processes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = started.find((one) => one.status === 'rejected')
  if (failed) {
    await Promise.all(processes.map((one) => one.kill()))
    throw failed.reason
  }
  const [first, ...others] = processes as [RunningService, ...RunningService[]]
  return {
    ...first,
    processes,
    output,
    async end() {
      // whoever answers may still wait for what the others do
      const codes = [await first.end(), ...(await Promise.all(others.map((one) => one.end())))]
      return codes.find((code) => code !== 0) ?? 0
    },
    kill: async () => void (await Promise.all(processes.map((one) => one.kill()))),
    stop: async () => void (await Promise.all(processes.map((one) => one.stop()))),
  }
}

/** What `npm start` gives to Node.js: its flags, and the program. */
async function startArguments(): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').slice(2)
}

/**
 * Starts one process as `npm start` does, on free ports and waits for its ready line. Addresses of hosts that it does not
 * serve are undefined.
 * @param output gets every line that the process writes.
 */
export async function startProcess(
  options: StartOptions = {},
  output: string[] = [],
): Promise<RunningService> {
  const ownsData = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'compstream-')))
  if (options.preparedDir !== undefined) await copyPreparedData(options.preparedDir, dataDir)
  const child = spawn(process.execPath, await startArguments(), {
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      MCP_PORT: '0',
      CORE_PORT: '0',
      PAYMENTS_PORT: '0',
      PORTAL_PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: dataDir,
      CLOCK: 'virtual',
      RATE_LIMIT_RPS: '0',
      // the process that starts shared services runs no tests
      TECHNICAL_DEADLINE_SCALE: process.env.TECHNICAL_DEADLINE_SCALE ?? PATIENT,
      ...receiverSettings(),
      ...options.env,
    },
    ...(options.release === undefined ? {} : { cwd: options.release }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  const stop = async () => {
    await kill()
    if (options.env?.DATABASE_URL === undefined) await endEmbeddedServer(dataDir)
    if (ownsData) await rm(dataDir, { recursive: true, force: true })
  }
  const becoming = new Promise<Record<string, string>>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`The service did not become ready:\n${output.slice(-20).join('\n')}`))
    }, options.timeoutMs ?? 150_000)
    createInterface({ input: child.stderr! }).on('line', (line) => output.push(line))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      output.push(line)
      if (!line.includes('"ready"')) return
      clearTimeout(timer)
      resolve(JSON.parse(line))
    })
    child.once('exit', (code) => {
      clearTimeout(timer)
      reject(new Error(`The service ended with code ${code}:\n${output.slice(-20).join('\n')}`))
    })
  })
  const ready = await becoming.catch(async (error) => {
    // where it was refused, another one may run on the data
    if (ownsData || isRunning()) await stop()
    throw error
  })
  const operatorToken =
    options.env?.OPERATOR_TOKEN ?? (await readFile(join(dataDir, 'operator-token'), 'utf8')).trim()
  const service: RunningService = {
    mcpUrl: ready.mcp!,
    coreUrl: ready.core!,
    paymentsUrl: ready.payments!,
    portalUrl: ready.portal!,
    opsUrl: ready.ops!,
    operatorToken,
    dataDir,
    databaseUrl: options.env?.DATABASE_URL ?? (await embeddedDatabaseUrl(dataDir)),
    process: child,
    get processes() {
      return [service]
    },
    output,
    end() {
      if (isRunning()) child.kill('SIGTERM')
      return exited
    },
    kill,
    stop,
  }
  describeHosts(service, options.release === undefined)
  return service
}

/** Superuser url of the embedded server that runs on a data directory. */
async function embeddedDatabaseUrl(dataDir: string): Promise<string> {
  const password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim()
  const port = (await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[3]
  return `postgresql://compstream:${encodeURIComponent(password)}@127.0.0.1:${port}/compstream`
}

/** Nobody else ends it where the system does not end it with the service. */
async function endEmbeddedServer(dataDir: string): Promise<void> {
  const cluster = join(dataDir, 'postgres')
  if (existsSync(cluster)) await endPreviousServer(cluster, () => undefined)
}

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { startEmbeddedPostgres } from '../infrastructure/embedded-postgres/embedded-postgres.ts'

/** Whether a process has ended, or never began. */
export function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null
}

/** Resolves with how a process ended, when it does or has not even begun. */
export function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `ended with code ${code}` : `was ended by ${signal}`),
    )
  })
}

/** What runs beside this process and has to end with it. */
export const running = new Set<{ stop(): Promise<void> }>()

/** Ends everything that was started here, the youngest first: for a bench that is interrupted. */
export async function stopEverything(): Promise<void> {
  for (const one of [...running].reverse()) await one.stop()
}

/** The one database server that ours and the peers' work runs on. */
export interface BenchServer {
  readonly version: string
  readonly fsync: string
  /** Makes an empty database, whose name begins with the given one. @returns its url. */
  createDatabase(name: string): Promise<string>
  /** Of the database that was made last under a name: whether commits of sessions that are opened from now on wait for the disk (default) or not. */
  setSynchronousCommit(name: string, value: 'on' | 'off'): Promise<void>
  stop(): Promise<void>
}

/** Starts the PostgreSQL server that ships with the service, durable as in production, on a temporary directory. */
export async function startBenchServer(): Promise<BenchServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-'))
  const server = await startEmbeddedPostgres({ dataDir, durable: true })
  const owner = new pg.Client(server.url)
  await owner.connect()
  const { rows } = await owner.query<{ version: string; fsync: string }>(
    "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync",
  )
  /** What databases are really called, by the names that were wanted last. */
  const databases = new Map<string, string>()
  const bench: BenchServer = {
    ...rows[0]!,
    async createDatabase(wanted) {
      const name = `${wanted}_${databases.size}_${randomBytes(4).toString('hex')}`
      databases.set(wanted, name)
      await owner.query(`CREATE DATABASE ${owner.escapeIdentifier(name)}`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      return url.toString()
    },
    async setSynchronousCommit(name, value) {
      await owner.query(
        `ALTER DATABASE ${owner.escapeIdentifier(databases.get(name)!)} SET synchronous_commit = ${value}`,
      )
    },
    async stop() {
      running.delete(bench)
      await owner.end()
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
  running.add(bench)
  return bench
}

const READY_LIMIT_MS = 180_000

/** A process of ours that said it is ready, and how long that took. */
export interface StartedProcess<Ready> {
  readonly ready: Ready
  readonly readyAfterMs: number
  readonly child: ChildProcess
  /** SIGTERM; resolves when the process is gone. */
  stop(): Promise<void>
}

/** Starts a Node program and waits for the first JSON line on its stdout that `isReady` takes. */
export async function startProcess<Ready>(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  isReady: (line: unknown) => line is Ready,
  cwd = '.',
): Promise<StartedProcess<Ready>> {
  const started = performance.now()
  const child = spawn(process.execPath, [...args], {
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line))
  const gone = ended(child)
  const program = {
    async stop() {
      running.delete(program)
      child.kill('SIGTERM')
      await gone
    },
  }
  running.add(program)
  const ready = await new Promise<Ready>((resolveReady, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (lines.push(line) > 50) lines.shift()
      const parsed = jsonOf(line)
      if (!isReady(parsed)) return
      clearTimeout(limit)
      resolveReady(parsed)
    })
    const limit = setTimeout(() => {
      child.kill('SIGKILL')
      reject(
        new Error(`${args.join(' ')} was not ready after ${READY_LIMIT_MS / 1000} s:\n${lines.join('\n')}`),
      )
    }, READY_LIMIT_MS)
    gone.then((how) => {
      clearTimeout(limit)
      reject(new Error(`${args.join(' ')} ${how}:\n${lines.join('\n')}`))
    })
  })
  return { ready, readyAfterMs: performance.now() - started, child, stop: program.stop }
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

/** Addresses of the service's ready line. */
export interface ServiceAddresses {
  readonly mcp: string
  readonly core: string
  readonly payments: string
  readonly ops: string
}

export const OPERATOR_TOKEN = 'bench-operator-token'

/** The checkout whose service is started: this one, or a built one that this is measured against. */
let checkout = '.'

/**
 * Runs a measurement whose services are those of another checkout.
 * @param dir of the checkout, which is built.
 * @returns null when it started none.
 */
export async function withServiceOf<Result>(dir: string, run: () => Promise<Result>): Promise<Result | null> {
  checkout = dir
  startedServices = 0
  try {
    const result = await run()
    return startedServices === 0 ? null : result
  } finally {
    checkout = '.'
  }
}
let startedServices = 0

/** What `npm start` gives to Node.js: its flags, and the program. */
async function startArguments(): Promise<string[]> {
  const text = await readFile(join(checkout, 'package.json'), 'utf8')
  const { scripts } = JSON.parse(text) as { scripts: { start: string } }
  return scripts.start.split(' ').slice(2)
}

/**
 * Starts the service as it is run: by the command of `npm start` in a process of its own, system clock, without rate limits.
 * @param env `DATABASE_URL` for a given server; `DATA_DIR` in any case.
 */
export async function startService(
  env: { readonly DATA_DIR: string } & Readonly<Record<string, string>>,
): Promise<StartedProcess<ServiceAddresses>> {
  startedServices += 1
  const ports = ['MCP_PORT', 'CORE_PORT', 'PAYMENTS_PORT', 'PORTAL_PORT', 'OPS_PORT']
  return startProcess(
    await startArguments(),
    {
      HOST: '127.0.0.1',
      ...Object.fromEntries(ports.map((port) => [port, '0'])),
      CLOCK: 'system',
      RATE_LIMIT_RPS: '0',
      OPERATOR_TOKEN,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ...env,
    },
    (line): line is ServiceAddresses =>
      // only the role api has a core API
      typeof line === 'object' && line !== null && 'ops' in line,
    resolve(checkout),
  )
}

/** An employer with a policy, API clients for it and an agent of it, made through the operator API. */
export interface Participants {
  readonly tenantId: string
  readonly employerId: string
  readonly carrierId: string
  readonly policyId: string
  readonly fein: string
  readonly policyNumber: string
  readonly clientHeaders: Readonly<Record<string, string>>
  readonly agentHeaders: Readonly<Record<string, string>>
  /** Of the payments API. */
  readonly partnerHeaders: Readonly<Record<string, string>>
}

export async function seedParticipants({ ops, mcp }: ServiceAddresses): Promise<Participants> {
  const create = async (url: string, body: object): Promise<Record<string, string>> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { data?: Record<string, string> }
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(answer)}`)
    return answer.data ?? (answer as Record<string, string>)
  }
  const operator = (path: string, body: object) => create(`${ops}/ops/v1/${path}`, body)
  const fein = '12-3456789'
  const { tenant_id } = await operator('tenants', { name: 'Bench' })
  const { carrier_id } = await operator('carriers', { tenant_id, name: 'Bench Mutual' })
  const { employer_id } = await operator('employers', { tenant_id, legal_name: 'Bench Builders LLC', fein })
  const terms = JSON.parse(await readFile('examples/policy.json', 'utf8')) as { policy_number: string }
  const policy = await operator('policies', {
    ...terms,
    employer_id,
    carrier_id,
    expiration_date: '2099-12-31',
  })
  const clientOf = async (product: string) => {
    const client = await operator('api-clients', {
      tenant_id,
      name: 'Bench client',
      environment: 'live',
      products: [product],
    })
    return { 'x-client-id': client.client_id!, 'x-client-secret': client.client_secret! }
  }
  const agent = await create(`${mcp}/api/v1/agents`, {
    agent_name: 'Bench agent',
    entity_type: 'employer',
    entity_id: employer_id,
    sandbox: false,
    created_by: 'bench',
  })
  return {
    tenantId: tenant_id!,
    employerId: employer_id!,
    carrierId: carrier_id!,
    policyId: policy.policy_id!,
    fein,
    policyNumber: terms.policy_number,
    clientHeaders: await clientOf('payroll'),
    agentHeaders: { authorization: `Bearer ${agent.api_key}` },
    partnerHeaders: await clientOf('payments'),
  }
}

/** Memory of a process in bytes: resident now, and at its highest since {@link resetPeakMemory}. */
export async function memoryOf(pid: number): Promise<{ resident: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
  return { resident: kibibytes('VmRSS') * 1024, peak: kibibytes('VmHWM') * 1024 }
}

/** Clock ticks of the kernel in a second. */
const TICKS = 100

/** Processor time of a process so far, in seconds. */
export async function processorTimeOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // user and system time, behind the name, which may hold anything
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) / TICKS
}

/** Starts the peak of {@link memoryOf} anew. */
export async function resetPeakMemory(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5')
}

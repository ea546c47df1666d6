import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { chooseAccount, lastError, run, type ServerAccount } from './account.ts'
import { binariesDraftPrefix, prepareBinaries, removeDrafts } from './binaries.ts'
import { EmbeddedPostgresError, ensureDataDirectory, pathError } from './data-directory-lock.ts'
import { endPreviousServer, errorCode, readPostmasterFile, signal } from './processes.ts'

export { EmbeddedPostgresError, lockDataDirectory } from './data-directory-lock.ts'

export interface EmbeddedPostgres {
  /** superuser connection url of a database that exists: postgresql://compstream:<password>@127.0.0.1:<port>/compstream */
  readonly url: string
  readonly dataDir: string
  /** fast shutdown, waits for the server's exit (bounded to about 30 s, then it is forced); idempotent, never rejects */
  stop(): Promise<void>
  /** resolves with a one-line reason when the server process ends without stop() having been called */
  readonly unexpectedExit: Promise<string>
}

export interface EmbeddedPostgresOptions {
  /** the service's data directory; created when missing */
  readonly dataDir: string
  /** receives the server's own log line by line, never statements or values */
  readonly log?: (line: string) => void
  /** default true; false turns fsync off, for tests only: commits then survive a kill -9, but no power failure */
  readonly durable?: boolean
  /** Sessions at the most, default 120: several processes on one server, as tests have them, may need more. */
  readonly maxConnections?: number
}

const role = 'compstream'
const database = 'compstream'
const initPrefix = 'postgres.init-'
const startAttempts = 5
const fastShutdownMs = 15_000
const immediateShutdownMs = 10_000
// long enough for the replay of max_wal_size on a slow disk
const readyTimeoutMs = 300_000

interface RunningServer {
  readonly child: ChildProcess
  readonly port: number
  /** resolves when the process has ended; says how */
  readonly exited: Promise<string>
  readonly recentLines: readonly string[]
  hasExited(): boolean
}

/**
 * Starts the native PostgreSQL server that ships with the service on `<dataDir>/postgres`, creating the cluster and
 * the database on the first start and cleaning up after a killed predecessor. The caller holds the data directory's
 * lock (`lockDataDirectory`). Resolves when the database accepts connections: about 1 s cold, 0.2 s warm.
 * @throws EmbeddedPostgresError with one line that says what is wrong.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const log = options.log ?? (() => undefined)
  const { durable = true, maxConnections = 120 } = options
  await ensureDataDirectory(dataDir)
  try {
    return await start(dataDir, { durable, maxConnections }, log)
  } catch (error) {
    throw pathError(dataDir, error)
  }
}

type Tuning = Required<Pick<EmbeddedPostgresOptions, 'durable' | 'maxConnections'>>

async function start(
  dataDir: string,
  tuning: Tuning,
  log: (line: string) => void,
): Promise<EmbeddedPostgres> {
  const clusterDir = join(dataDir, 'postgres')
  await removeDrafts(dataDir, [initPrefix, binariesDraftPrefix])
  const account = await chooseAccount(dataDir, await prepareBinaries(dataDir))
  const known = await readPassword(dataDir)
  const password = known ?? randomBytes(24).toString('hex')
  const isNew = !(await isCluster(clusterDir))
  if (!isNew) {
    await checkVersion(clusterDir, account)
    await checkOwnership(clusterDir, account)
    await clearPrevious(clusterDir, log)
    if (known === null) {
      // the file comes second: interrupted in between, the next start finds it missing again
      await resetPassword(clusterDir, account, password)
      await savePassword(dataDir, password)
    }
  } else {
    if (known === null) await savePassword(dataDir, password)
    await createCluster(dataDir, clusterDir, account, password, tuning.durable)
  }
  for (let attempt = 1; ; attempt += 1) {
    const server = await launch(clusterDir, account, tuning, log)
    const failure = await becomeReady(server, clusterDir, password, isNew)
    if (failure === null) return handle(server, dataDir, password)
    const output = server.recentLines.join('\n')
    // the port was taken between choosing and binding, or a backend of a dead postmaster is still on its way out
    const isPassing =
      /could not bind|could not create any TCP|pre-existing shared memory|lock file .* exists/i
    if (attempt === startAttempts || !isPassing.test(output)) {
      throw new EmbeddedPostgresError(`PostgreSQL on ${clusterDir} did not start: ${failure}`)
    }
    await clearPrevious(clusterDir, log)
    await delay(100 * attempt)
  }
}

function serverSettings(port: number, { durable, maxConnections }: Tuning): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: maxConnections,
    shared_buffers: '128MB',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // without replicas the log needs no more than recovery does, and commits get smaller
    wal_level: 'minimal',
    max_wal_senders: 0,
    max_logical_replication_workers: 0,
    wal_buffers: '16MB',
    min_wal_size: '256MB',
    max_wal_size: '2GB',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: 0.9,
    fsync: durable ? 'on' : 'off',
    full_page_writes: durable ? 'on' : 'off',
    // on in tests too: without it even a killed process loses acknowledged commits
    synchronous_commit: 'on',
    // sessions that commit at the same time share one flush: PostgreSQL groups them without a delay
    commit_delay: 0,
    logging_collector: 'off',
    log_destination: 'stderr',
    log_line_prefix: '%b: ',
    log_statement: 'none',
    log_min_messages: 'warning',
    log_min_error_statement: 'panic',
    log_parameter_max_length: 0,
    log_parameter_max_length_on_error: 0,
    log_min_duration_statement: -1,
    log_checkpoints: 'off',
    log_autovacuum_min_duration: -1,
    // the detail of a violated constraint quotes the row
    log_error_verbosity: 'terse',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

async function isCluster(clusterDir: string): Promise<boolean> {
  let names: string[]
  try {
    names = await readdir(clusterDir)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw pathError(clusterDir, error)
  }
  if (names.includes('PG_VERSION')) return true
  if (names.length === 0) return false
  throw new EmbeddedPostgresError(
    `${clusterDir} holds files but no PostgreSQL cluster: move it away or set another DATA_DIR`,
  )
}

async function checkVersion(clusterDir: string, account: ServerAccount): Promise<void> {
  const found = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim()
  const major = /\(PostgreSQL\) (\d+)/.exec(account.versionText)?.[1]
  if (found === major) return
  throw new EmbeddedPostgresError(
    `${clusterDir} was made by PostgreSQL ${found}, this service ships PostgreSQL ${major}: ` +
      'restore a backup into a new DATA_DIR, or run the service version that made it',
  )
}

async function checkOwnership(clusterDir: string, account: ServerAccount): Promise<void> {
  const { uid, mode } = await stat(clusterDir)
  const wanted = account.owner?.uid ?? process.getuid?.() ?? uid
  if (uid !== wanted) {
    if (!account.owner) {
      throw new EmbeddedPostgresError(
        `${clusterDir} belongs to user id ${uid}, the service runs as ${wanted}: start it as the user who made it`,
      )
    }
    await chownTree(clusterDir, account.owner)
  }
  // PostgreSQL refuses a directory others can look into
  if ((mode & 0o077) !== 0) await chmod(clusterDir, 0o700)
}

async function chownTree(root: string, owner: { readonly uid: number; readonly gid: number }): Promise<void> {
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    await lchown(join(entry.parentPath, entry.name), owner.uid, owner.gid)
  }
  // the top last, so that an interrupted run is noticed and repeated
  await chown(root, owner.uid, owner.gid)
}

async function readPassword(dataDir: string): Promise<string | null> {
  try {
    return (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim() || null
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

async function savePassword(dataDir: string, value: string): Promise<void> {
  const path = join(dataDir, 'postgres-password')
  const draft = `${path}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${value}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function createCluster(
  dataDir: string,
  clusterDir: string,
  account: ServerAccount,
  password: string,
  durable: boolean,
): Promise<void> {
  // made aside and renamed when complete: an interrupted initdb leaves nothing that looks like a cluster
  const workDir = await mkdtemp(join(dataDir, initPrefix))
  try {
    const draft = join(workDir, 'cluster')
    const passwordPath = join(workDir, 'password')
    await mkdir(draft, { mode: 0o700 })
    const passwordFile = await open(passwordPath, 'wx', 0o600)
    await passwordFile.writeFile(`${password}\n`)
    await passwordFile.close()
    if (account.owner) {
      const { uid, gid } = account.owner
      for (const path of [passwordPath, draft, workDir]) await chown(path, uid, gid)
    }
    const result = await run(account.spawn, account.binaries.initdb, [
      '-D',
      draft,
      `--username=${role}`,
      `--pwfile=${passwordPath}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=libc',
      '--no-instructions',
      // a later start does not flush these files, so skipping it here would cost durability
      ...(durable ? [] : ['--no-sync']),
    ])
    if (result.code !== 0) {
      throw new EmbeddedPostgresError(
        `PostgreSQL could not create a cluster in ${dataDir}: ${lastError(result)}`,
      )
    }
    await rename(draft, clusterDir)
    if (durable) await syncDirectory(dataDir)
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}

async function resetPassword(clusterDir: string, account: ServerAccount, password: string): Promise<void> {
  const statement = `ALTER ROLE ${role} PASSWORD '${password}'\n`
  const args = ['--single', '-D', clusterDir, '-c', 'log_min_error_statement=panic', 'postgres']
  const result = await run(account.spawn, account.binaries.postgres, args, statement)
  if (result.code !== 0 || /ERROR|FATAL/.test(result.stderr)) {
    throw new EmbeddedPostgresError(
      `the file postgres-password beside ${clusterDir} is missing and no new password could be set: ${lastError(result)}`,
    )
  }
}

async function clearPrevious(clusterDir: string, log: (line: string) => void): Promise<void> {
  if (!(await endPreviousServer(clusterDir, log))) {
    throw new EmbeddedPostgresError(
      `PostgreSQL processes of an earlier run still use ${clusterDir}: end them first`,
    )
  }
  // whoever has that pid now, it is no server of this cluster
  await rm(join(clusterDir, 'postmaster.pid'), { force: true })
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done, fail) => {
    probe.once('error', fail)
    probe.listen(0, '127.0.0.1', done)
  })
  const address = probe.address()
  await new Promise((done) => probe.close(done))
  if (address === null || typeof address === 'string')
    throw new EmbeddedPostgresError('no free port on 127.0.0.1')
  return address.port
}

async function launch(
  clusterDir: string,
  account: ServerAccount,
  tuning: Tuning,
  log: (line: string) => void,
): Promise<RunningServer> {
  const port = await freePort()
  const recentLines: string[] = []
  const child = account.spawn(
    account.binaries.postgres,
    ['-D', clusterDir, ...serverSettings(port, tuning)],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      // its own process group: Ctrl-C in a terminal must reach the service only, which stops the server last
      detached: true,
    },
  )
  let ended = false
  const exited = new Promise<string>((done) => {
    child.once('error', (error) => {
      ended = true
      done(error.message)
    })
    child.once('exit', (code, name) => {
      ended = true
      const how = name ? `was ended by ${name}` : `ended with exit code ${code}`
      const report = () => {
        const last = recentLines.findLast((line) => /\b(FATAL|PANIC)\b/.test(line))
        done(last ? `${how} (${last})` : how)
      }
      // orphaned backends may keep the pipe open, then the last words are not waited for
      const timer = setTimeout(report, 200)
      child.once('close', () => {
        clearTimeout(timer)
        report()
      })
    })
  })
  if (child.stderr) {
    let dropping = false
    createInterface({ input: child.stderr }).on('line', (line) => {
      // the client gets its errors itself, and their text can quote values; a tab continues the line before
      if (!line.startsWith('\t')) dropping = line.startsWith('client backend: ERROR:')
      if (dropping) return
      recentLines.push(line)
      if (recentLines.length > 20) recentLines.shift()
      log(line)
    })
  }
  return { child, port, exited, recentLines, hasExited: () => ended }
}

/** Null when the database accepts connections, otherwise why it never will; the process has ended then. */
async function becomeReady(
  server: RunningServer,
  clusterDir: string,
  password: string,
  isNew: boolean,
): Promise<string | null> {
  const deadline = Date.now() + readyTimeoutMs
  let reason = `not ready within ${readyTimeoutMs / 1000} s`
  while (!server.hasExited() && Date.now() < deadline) {
    // the status file spares refused connections, each of which the server would log
    const status = await readPostmasterFile(clusterDir)
    if (status !== null && status.pid === server.child.pid && status.status === 'ready') {
      const problem = await openDatabase(server.port, password, isNew)
      if (problem === null) return null
      if (!problem.isPassing) {
        reason = problem.message
        break
      }
    }
    await delay(5)
  }
  if (server.hasExited()) return server.exited
  await shutDown(server)
  return reason
}

async function openDatabase(
  port: number,
  password: string,
  isNew: boolean,
): Promise<{ readonly message: string; readonly isPassing: boolean } | null> {
  try {
    if (!isNew) {
      try {
        await query(port, password, database)
        return null
      } catch (error) {
        // a first start that ended between initdb and here is completed
        if (errorCode(error) !== '3D000') throw error
      }
    }
    await query(port, password, 'postgres', `create database ${database}`)
    return null
  } catch (error) {
    // somebody else's attempt that succeeded is as good
    if (errorCode(error) === '42P04') return null
    const passing = ['ECONNREFUSED', 'ECONNRESET', '57P03', '55006']
    const message = error instanceof Error ? error.message : String(error)
    return { message, isPassing: passing.includes(errorCode(error) ?? '') }
  }
}

async function query(port: number, password: string, name: string, text?: string): Promise<void> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: role,
    password,
    database: name,
    // explicit, because the service's PG* variables would otherwise apply here
    ssl: false,
    options: '',
    connectionTimeoutMillis: 10_000,
  })
  // a connection that breaks later must not end the process
  client.on('error', () => undefined)
  try {
    await client.connect()
    if (text !== undefined) await client.query(text)
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function shutDown(server: RunningServer): Promise<void> {
  const steps = [
    ['SIGINT', fastShutdownMs],
    ['SIGQUIT', immediateShutdownMs],
    ['SIGKILL', immediateShutdownMs],
  ] as const
  for (const [name, patience] of steps) {
    if (server.hasExited() || server.child.pid === undefined) break
    signal(server.child.pid, name)
    const waiting = new AbortController()
    const timeout = delay(patience, undefined, { signal: waiting.signal }).catch(() => undefined)
    await Promise.race([server.exited, timeout])
    waiting.abort()
  }
}

function handle(server: RunningServer, dataDir: string, password: string): EmbeddedPostgres {
  let stopping: Promise<void> | null = null
  const unexpectedExit = new Promise<string>((done) => {
    void server.exited.then((how) => {
      if (stopping === null) done(`the PostgreSQL server ${how}`)
    })
  })
  return {
    url: `postgresql://${role}:${password}@127.0.0.1:${server.port}/${database}`,
    dataDir,
    unexpectedExit,
    stop() {
      stopping ??= shutDown(server)
      return stopping
    },
  }
}

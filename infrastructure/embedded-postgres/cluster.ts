import { randomBytes } from 'node:crypto'
import { chmod, chown, lchown, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../error-code.ts'
import { createPrivate, readPrivate, syncDirectory } from '../private-files.ts'
import { lastError, run, type ServerAccount } from './account.ts'
import { EmbeddedPostgresError, pathError } from './data-directory-lock.ts'
import { endPreviousServer } from './processes.ts'

/** The superuser and the database that a cluster is made with. */
export const ROLE = 'compstream'
export const DATABASE = 'compstream'

/** Beginning of the names of unfinished clusters below the data directory. */
export const clusterDraftPrefix = 'postgres.init-'

/** The directory of a cluster, and the account that runs its programs. */
interface Cluster {
  readonly dataDir: string
  /** `<dataDir>/postgres` */
  readonly clusterDir: string
  readonly account: ServerAccount
  readonly durable: boolean
}

/**
 * Makes sure that there is a cluster that no server runs on, with its database and the password of its superuser.
 * @returns the password.
 * @throws EmbeddedPostgresError with one line when what is there cannot be used.
 */
export async function prepareCluster(cluster: Cluster, log: (line: string) => void): Promise<string> {
  const { dataDir, clusterDir, account } = cluster
  const passwordFile = join(dataDir, 'postgres-password')
  const known = (await readPrivate(passwordFile)) || null
  const password = known ?? randomBytes(24).toString('hex')
  const setPassword = `ALTER ROLE ${ROLE} PASSWORD '${password}'`
  if (await isCluster(clusterDir)) {
    await checkVersion(clusterDir, account)
    await checkOwnership(clusterDir, account)
    await clearPrevious(clusterDir, log)
    if (known === null) await runSingleUser(cluster, clusterDir, [setPassword])
  } else {
    await createCluster(cluster, [`CREATE DATABASE ${DATABASE}`, setPassword])
  }
  // interrupted before this, the next start finds the file missing and sets another password
  if (known !== null) return password
  await rm(passwordFile, { force: true })
  return createPrivate(passwordFile, password)
}

/** Ends what an earlier service left running. @throws EmbeddedPostgresError */
export async function clearPrevious(clusterDir: string, log: (line: string) => void): Promise<void> {
  if (!(await endPreviousServer(clusterDir, log))) {
    throw new EmbeddedPostgresError(
      `PostgreSQL processes of an earlier run still use ${clusterDir}: end them first`,
    )
  }
  // the process with that pid is no server of this cluster
  await rm(join(clusterDir, 'postmaster.pid'), { force: true })
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

/** Made aside and renamed when complete: what was interrupted leaves nothing that looks like a cluster. */
async function createCluster(cluster: Cluster, statements: readonly string[]): Promise<void> {
  const { dataDir, clusterDir, account, durable } = cluster
  const workDir = await mkdtemp(join(dataDir, clusterDraftPrefix))
  try {
    const draft = join(workDir, 'cluster')
    await mkdir(draft, { mode: 0o700 })
    if (account.owner) {
      for (const path of [draft, workDir]) await chown(path, account.owner.uid, account.owner.gid)
    }
    const result = await run(account.spawn, account.binaries.initdb, [
      ...['-D', draft, `--username=${ROLE}`, '--auth-host=scram-sha-256', '--auth-local=reject'],
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=libc', '--no-instructions'],
      // a later start does not flush these files, so skipping it here would cost durability
      ...(durable ? [] : ['--no-sync']),
    ])
    if (result.code !== 0) {
      throw new EmbeddedPostgresError(
        `PostgreSQL could not create a cluster in ${dataDir}: ${lastError(result)}`,
      )
    }
    await runSingleUser(cluster, draft, statements)
    await rename(draft, clusterDir)
    if (durable) await syncDirectory(dataDir)
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}

/** Runs statements on a cluster without a server, as its superuser, which needs no password there. */
async function runSingleUser(
  { account, durable }: Cluster,
  clusterDir: string,
  statements: readonly string[],
): Promise<void> {
  const settings = ['log_min_error_statement=panic', ...(durable ? [] : ['fsync=off'])]
  const args = ['--single', '-D', clusterDir, ...settings.flatMap((one) => ['-c', one]), 'postgres']
  const input = statements.map((statement) => `${statement}\n`).join('')
  const result = await run(account.spawn, account.binaries.postgres, args, input)
  if (result.code !== 0 || /ERROR|FATAL/.test(result.stderr)) {
    throw new EmbeddedPostgresError(`PostgreSQL could not set up ${clusterDir}: ${lastError(result)}`)
  }
}

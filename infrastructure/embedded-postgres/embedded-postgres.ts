import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { chooseAccount } from './account.ts'
import { binariesDraftPrefix, findBinaries, removeDrafts } from './binaries.ts'
import { clearPrevious, clusterDraftPrefix, DATABASE, prepareCluster, ROLE } from './cluster.ts'
import { EmbeddedPostgresError, ensureDataDirectory, pathError } from './data-directory-lock.ts'
import { launch, type ServerTuning } from './server.ts'

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

interface EmbeddedPostgresOptions {
  /** the service's data directory; created when missing */
  readonly dataDir: string
  /** receives the server's own log line by line, never statements or values */
  readonly log?: (line: string) => void
  /** default true; false turns fsync off, for tests only: commits then survive a kill -9, but no power failure */
  readonly durable?: boolean
  /** Sessions at the most, default 120: several processes on one server, as tests have them, may need more. */
  readonly maxConnections?: number
}

const START_ATTEMPTS = 5

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

async function start(
  dataDir: string,
  tuning: ServerTuning,
  log: (line: string) => void,
): Promise<EmbeddedPostgres> {
  const clusterDir = join(dataDir, 'postgres')
  await removeDrafts(dataDir, [clusterDraftPrefix, binariesDraftPrefix])
  const account = await chooseAccount(dataDir, await findBinaries(dataDir))
  const password = await prepareCluster({ dataDir, clusterDir, account, durable: tuning.durable }, log)
  for (let attempt = 1; ; attempt += 1) {
    const server = await launch(clusterDir, account, tuning, log)
    const failure = await server.ready()
    if (failure === null) {
      let stopping: Promise<void> | undefined
      return {
        url: `postgresql://${ROLE}:${password}@127.0.0.1:${server.port}/${DATABASE}`,
        dataDir,
        unexpectedExit: new Promise((done) => {
          void server.exited.then((how) => {
            if (!stopping) done(`the PostgreSQL server ${how}`)
          })
        }),
        stop() {
          stopping ??= server.stop()
          return stopping
        },
      }
    }
    // the port was taken between choosing and binding, or a backend of a dead postmaster is still on its way out
    const isPassing =
      /could not bind|could not create any TCP|pre-existing shared memory|lock file .* exists/i
    if (attempt === START_ATTEMPTS || !isPassing.test(server.recentLines.join('\n'))) {
      throw new EmbeddedPostgresError(`PostgreSQL on ${clusterDir} did not start: ${failure}`)
    }
    await clearPrevious(clusterDir, log)
    await delay(100 * attempt)
  }
}

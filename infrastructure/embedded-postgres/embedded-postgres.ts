import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { chooseAccount } from './account.ts'
import { binariesDraftPrefix, findBinaries, removeDrafts } from './binaries.ts'
import { clearPrevious, clusterDraftPrefix, DATABASE, prepareCluster, ROLE } from './cluster.ts'
import { EmbeddedPostgresError, lockDataDirectory, pathError } from './data-directory-lock.ts'
import { launch, type Server, type ServerTuning } from './server.ts'

export { EmbeddedPostgresError } from './data-directory-lock.ts'

export interface EmbeddedPostgres {
  /** superuser connection url of a database that exists: postgresql://compstream:<password>@127.0.0.1:<port>/compstream */
  readonly url: string
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
 * the database on the first start and cleaning up after a killed predecessor. Holds the data directory's lock until it
 * is stopped. Resolves when the database accepts connections: about 1 s cold, 0.2 s warm.
 * @throws EmbeddedPostgresError with one line that says what is wrong, or which process uses the directory.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const log = options.log ?? (() => undefined)
  const { durable = true, maxConnections = 120 } = options
  const lock = await lockDataDirectory(dataDir)
  try {
    const { server, password } = await start(dataDir, { durable, maxConnections }, log)
    let stopping: Promise<void> | undefined
    return {
      url: `postgresql://${ROLE}:${password}@127.0.0.1:${server.port}/${DATABASE}`,
      unexpectedExit: new Promise((done) => {
        void server.exited.then((how) => {
          if (!stopping) done(`the PostgreSQL server ${how}`)
        })
      }),
      stop() {
        // a lock that stays behind is taken over
        stopping ??= server.stop().then(() => lock.release().catch(() => undefined))
        return stopping
      },
    }
  } catch (error) {
    await lock.release()
    throw pathError(dataDir, error)
  }
}

async function start(
  dataDir: string,
  tuning: ServerTuning,
  log: (line: string) => void,
): Promise<{ readonly server: Server; readonly password: string }> {
  const clusterDir = join(dataDir, 'postgres')
  await removeDrafts(dataDir, [clusterDraftPrefix, binariesDraftPrefix])
  const account = await chooseAccount(dataDir, await findBinaries(dataDir))
  const password = await prepareCluster({ dataDir, clusterDir, account, durable: tuning.durable }, log)
  for (let attempt = 1; ; attempt += 1) {
    const server = await launch(clusterDir, account, tuning, log)
    const failure = await server.ready()
    if (failure === null) return { server, password }
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

import type { EventLog } from '../../application/ports/event-log.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import {
  type Database,
  type DatabaseLog,
  type OnStatement,
  openDatabase,
} from '../../infrastructure/database/database.ts'
import { migrate } from '../../infrastructure/database/migrate.ts'
import { startEmbeddedPostgres } from '../../infrastructure/embedded-postgres/embedded-postgres.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import type { LogEngine } from '../../infrastructure/installation/log-pairing.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'

/** The database that holds the read models, and the event log unless EventStoreDB does, ready to use. */
interface Storage {
  readonly url: string
  readonly database: Database
  /** Resolves with the reason when the embedded server ended by itself; never with a given one. */
  readonly failure: Promise<string>
  close(): Promise<void>
}

/**
 * Starts the embedded server, or takes the database that is given, and brings it up to date.
 * @param onStatement hears of prepared statements.
 * @throws EmbeddedPostgresError, DatabaseUnavailable with one clear line.
 */
export async function openStorage(
  config: Config,
  logger: Logger,
  onStatement: OnStatement,
): Promise<Storage> {
  const log = asText(logger, 'database')
  const open = async (url: string, failure: Promise<string>): Promise<Storage> => {
    await migrate({ url, log })
    const database = await openDatabase({ url, log, onStatement })
    return { url, database, failure, close: () => database.close() }
  }
  if (config.databaseUrl !== null) return open(config.databaseUrl, new Promise(() => undefined))
  const server = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    log: (line) => {
      if (isOrdinary(line)) logger.debug('database server', { server_line: line })
      else logger.warn('database server', { server_line: line })
    },
  })
  try {
    const storage = await open(server.url, server.unexpectedExit)
    return {
      ...storage,
      async close() {
        await storage.close()
        await server.stop()
      },
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** Which engine holds the event log. */
export function logEngineOf(config: Pick<Config, 'eventStoreUrl'>): LogEngine {
  return config.eventStoreUrl === null ? 'postgresql' : 'eventstoredb'
}

/**
 * Opens the event log in the engine that is set.
 * @param onAppend hears of every stored batch: how many events, and the milliseconds that it took.
 * @param reconnected told each time that the engine was away and is there again.
 * @throws EventStoreUnavailable, DatabaseUnavailable with one clear line.
 */
export async function openEventLog(
  config: Pick<Config, 'eventStoreUrl' | 'databaseUrl'>,
  database: Database,
  logger: Logger,
  onAppend: (events: number, ms: number) => void,
  reconnected: () => void,
): Promise<EventLog> {
  if (config.eventStoreUrl === null) {
    // an embedded database is this process's own
    const isExclusive = config.databaseUrl === null
    return openPostgresEventLog({
      database,
      log: asText(logger, 'database'),
      isExclusive,
      onAppend,
      reconnected,
    })
  }
  // loading the client takes a start half a second
  const { openEventStoreEventLog } = await import(
    '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
  )
  return openEventStoreEventLog({
    url: config.eventStoreUrl,
    log: asText(logger, 'event log'),
    onAppend,
    reconnected,
  })
}

/** What happens in the ordinary course is LOG to the server, but for sessions that its stop ends. */
function isOrdinary(line: string): boolean {
  return line.includes(': LOG:') || line.endsWith('terminating connection due to administrator command')
}

/** What the database and the log report carries no data: it is logged as text, with what it is about. */
function asText(logger: Logger, part: 'database' | 'event log'): DatabaseLog {
  const textOf = (fields: { readonly migration?: unknown; readonly reason?: unknown }, message: string) => ({
    text: [message, fields.migration ?? fields.reason].filter((one) => typeof one === 'string').join(': '),
  })
  return {
    info: (fields, message) => logger.info(part, textOf(fields, message)),
    warn: (fields, message) => logger.warn(part, textOf(fields, message)),
  }
}

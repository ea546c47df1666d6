import type { EventLog } from '../../application/ports/event-log.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { eventStoreOf } from './installation.ts'

/**
 * Opens the log that belongs to a database, as one more process would: in the engine of the installation that the
 * suites run on.
 * @param databaseUrl the url that `database` was opened with.
 * @param eventStoreUrl where the log is, when another process has started its server.
 */
export async function openTestLog(
  database: Database,
  databaseUrl: string,
  eventStoreUrl?: string,
): Promise<EventLog> {
  const url = eventStoreUrl ?? (await eventStoreOf(databaseUrl))
  return url === null ? openPostgresEventLog({ database }) : openEventStoreEventLog({ url })
}

import { type EventLog, LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { readPage } from '../../infrastructure/event-store/postgres/event-queries.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { eventStoreOf } from './installation.ts'

/**
 * Opens the log that belongs to a database, as one more process would: in the engine of the installation that the
 * suites run on.
 * @param databaseUrl the url that `database` was opened with.
 */
export async function openTestLog(database: Database, databaseUrl: string): Promise<EventLog> {
  const url = await eventStoreOf(databaseUrl)
  return url === null
    ? openPostgresEventLog({ database, isExclusive: false })
    : openEventStoreEventLog({ url })
}

/** Everything in the log that belongs to a database, also beside a service that shares it with nobody. */
export async function readTestLog(database: Database, databaseUrl: string): Promise<StoredEvent[]> {
  const url = await eventStoreOf(databaseUrl)
  const log = url === null ? null : await openEventStoreEventLog({ url })
  const events: StoredEvent[] = []
  for (let after = LOG_START; ; ) {
    const options = { after, maxCount: 1_000 }
    const page = await (log ? log.readAll(options) : readPage(database.pool, options))
    events.push(...page.events)
    after = page.checkpoint
    if (page.atHead) break
  }
  await log?.close()
  return events
}

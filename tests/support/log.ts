import { type EventLog, LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { readPage } from '../../infrastructure/event-store/postgres/event-queries.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { eventStoreOf } from './installation.ts'

/** What stands beside an event that no command wrote, as the registry reads it. */
export const EVENT_METADATA = {
  tenant_id: null,
  environment: null,
  actor: { type: 'system', id: 'test' },
  correlation_id: 'c',
  causation_id: 'c',
  recorded_at: '2026-01-01T00:00:00.000Z',
  schema_version: 1,
} as const

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

/** Revision of the last event of a stream, -1 when it has none. */
export async function revisionOf(log: Pick<EventLog, 'readStream'>, stream: string): Promise<number> {
  return (await log.readStream(stream, { direction: 'backwards', maxCount: 1 }))[0]?.revision ?? -1
}

/** Everything in the log that belongs to a database, also beside a service that shares it with nobody. */
export async function readTestLog(database: Database, databaseUrl: string): Promise<StoredEvent[]> {
  const events: StoredEvent[] = []
  for await (const event of storedEvents(database, await eventStoreOf(databaseUrl))) events.push(event)
  return events
}

/** The same, one event after the other. @param eventStoreUrl the server that holds the log; null: the database does. */
export async function* storedEvents(
  database: Database,
  eventStoreUrl: string | null,
): AsyncIterable<StoredEvent> {
  const log = eventStoreUrl === null ? null : await openEventStoreEventLog({ url: eventStoreUrl })
  try {
    for (let after = LOG_START, atHead = false; !atHead; ) {
      const options = { after, maxCount: 1_000 }
      const page = await (log ? log.readAll(options) : readPage(database.pool, options))
      yield* page.events
      after = page.checkpoint
      atHead = page.atHead
    }
  } finally {
    await log?.close()
  }
}

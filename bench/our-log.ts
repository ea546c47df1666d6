import { randomUUID } from 'node:crypto'
import { CommandHandler } from '../application/commands/command-handler.ts'
import { chainHash, NO_PREDECESSOR, withHash } from '../application/commands/hash-chain.ts'
import type { EventLog, EventToAppend } from '../application/ports/event-log.ts'
import { type Database, openDatabase } from '../infrastructure/database/database.ts'
import { migrate } from '../infrastructure/database/migrate.ts'
import { openEventStoreEventLog } from '../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openPostgresEventLog } from '../infrastructure/event-store/postgres/postgres-event-log.ts'
import type { EventRow } from './peers/plain-postgres.ts'
import { hoursEvent, idOf, METADATA, registry, type Timesheet, timesheet } from './timesheets.ts'

// All that the measurements know of the event log's port, of how events are encoded and of how streams are folded.

/** Where the log is: in PostgreSQL, or in EventStoreDB with its read models in PostgreSQL. */
export interface LogPlace {
  readonly url: string
  readonly eventStoreUrl?: string
}

/** Our event log as the bench uses it. */
export interface OurLog {
  readonly log: EventLog
  readonly database: Database
  /**
   * Appends events of a timesheet, encoded as every command's events are.
   * @param revision that the stream is expected at, -1 (default) for a new one.
   */
  append(timesheetId: string, count: number, revision?: number): Promise<void>
  /** Reads, decodes and folds a whole stream of so many events, nothing cached. */
  load(timesheetId: string, events: number): Promise<Timesheet>
  close(): Promise<void>
}

/**
 * Our event log on a database of the server, or in EventStoreDB and what belongs to it on that database.
 * @param options.isExclusive whether no other process shares the log in PostgreSQL, as in the installation of one
 *   process; default false.
 */
export async function openOurLog(
  { url, eventStoreUrl }: LogPlace,
  { isExclusive = false }: { readonly isExclusive?: boolean } = {},
): Promise<OurLog> {
  await migrate({ url })
  const database = await openDatabase({ url })
  const log =
    eventStoreUrl === undefined
      ? await openPostgresEventLog({ database, isExclusive })
      : await openEventStoreEventLog({ url: eventStoreUrl })
  // loadAt keeps nothing, so that a handler used for nothing else reads every time
  const handler = new CommandHandler(log, registry, { kind: 'system', now: () => 0 })
  return {
    log,
    database,
    async append(timesheetId, count, revision = -1) {
      const events = Array.from({ length: count }, (_, n) => encoded(timesheetId, revision + 1 + n))
      await log.append(`timesheet-${timesheetId}`, revision, events)
    },
    async load(timesheetId, events) {
      return (await handler.loadAt(timesheet, timesheetId, events - 1)).state
    },
    async close() {
      await log.close()
      await database.close()
    },
  }
}

function encoded(timesheetId: string, entry: number): EventToAppend {
  return registry.encode(hoursEvent(timesheetId, entry), METADATA)
}

/** Rows as our log would store them: each the first event of its stream, at positions from `first` on. */
export function eventRows(first: number, count: number): EventRow[] {
  return Array.from({ length: count }, (_, n) => {
    const position = first + n
    const id = idOf(`plain ${position}`)
    const stream = `timesheet-${id}`
    const event = encoded(id, 0)
    const eventId = randomUUID()
    const metadata = withHash(event.metadata, chainHash(NO_PREDECESSOR, stream, 0, { ...event, eventId }))
    return [String(position), 0, eventId, stream, event.type, event.data, metadata]
  })
}

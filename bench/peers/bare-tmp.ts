import { EventStoreDBClient, jsonEvent, NO_STREAM, START } from '@eventstore/db-client'
import { hoursEvent, METADATA } from '../timesheets-tmp.ts'

/** The same work by EventStoreDB's own client, written as its documentation shows. */
export interface BareEventStore {
  /**
   * Appends events of a timesheet.
   * @param revision that the stream is expected at, -1 for a new one.
   */
  append(timesheetId: string, count: number, revision?: number): Promise<void>
  /** Reads the log from its start by a subscription that does nothing, until so many events have come. */
  readLog(events: number): Promise<void>
  close(): Promise<void>
}

/** For a server that many write to at once; the client's 10 s may not do on a busy machine. */
const PATIENCE_MS = 60_000
/** As many bytes as our events carry beside. */
const METADATA_AS_STORED = { ...METADATA, schema_version: 1, hash: '0'.repeat(64) }

export function openBareEventStore(url: string): BareEventStore {
  const client = EventStoreDBClient.connectionString(url)
  return {
    async append(timesheetId, count, revision = -1) {
      const events = Array.from({ length: count }, (_, entry) => {
        const { type, data } = hoursEvent(timesheetId, revision + 1 + entry)
        return jsonEvent({ type, data, metadata: METADATA_AS_STORED })
      })
      await client.appendToStream(`timesheet-${timesheetId}`, events, {
        expectedRevision: revision < 0 ? NO_STREAM : BigInt(revision),
        deadline: PATIENCE_MS,
      })
    },
    readLog(events) {
      let count = 0
      const subscription = client.subscribeToAll({ fromPosition: START })
      return new Promise((resolve, reject) => {
        subscription.on('error', reject)
        subscription.on('data', ({ event }) => {
          if (!event || event.type.startsWith('$')) return
          count += 1
          if (count === events) subscription.unsubscribe().then(resolve, reject)
        })
      })
    },
    close: () => client.dispose(),
  }
}

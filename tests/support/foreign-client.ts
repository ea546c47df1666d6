import { ANY, binaryEvent, EventStoreDBClient } from '@eventstore/db-client'
import { openDatabase } from '../../infrastructure/database/database.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { eventStoreOf } from './installation.ts'
import { revisionOf } from './log.ts'

/** An event of another program: its texts are stored as they are. */
export interface ForeignEvent {
  readonly type: string
  readonly data: string
  /** On PostgreSQL a JSON object; EventStoreDB takes anything. */
  readonly metadata: string
}

/** Whether another program can store events here that are no JSON. */
export const canStoreGarbage = process.env.TEST_INSTALLATION === 'eventstoredb-nats'

/** Appends to a stream as another program does that knows nothing of the service but where its log is. */
export async function appendForeign(
  databaseUrl: string,
  stream: string,
  ...events: readonly ForeignEvent[]
): Promise<void> {
  const url = await eventStoreOf(databaseUrl)
  if (url !== null) {
    const client = EventStoreDBClient.connectionString(url)
    try {
      const written = events.map(({ type, data, metadata }) =>
        binaryEvent({ type, data: Buffer.from(data), metadata: Buffer.from(metadata) }),
      )
      await client.appendToStream(stream, written, { expectedRevision: ANY })
    } finally {
      await client.dispose()
    }
    return
  }
  const database = await openDatabase({ url: databaseUrl })
  const log = await openPostgresEventLog({ database })
  try {
    await log.append(stream, await revisionOf(log, stream), events)
  } finally {
    await log.close()
    await database.close()
  }
}

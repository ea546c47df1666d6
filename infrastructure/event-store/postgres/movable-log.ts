import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import { type MovableLog, MoveInterrupted } from '../../../application/ports/movable-log.ts'
import {
  DatabaseUnavailable,
  isConnectionLoss,
  oneLine,
  STATEMENT_LIMIT_MS,
} from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { EncodedEvents } from './batch.ts'
import { LOG_SESSION, readEventsAt, readHead, readPage } from './event-queries.ts'
import { WriterSession } from './writer-session.ts'

/** Sessions of a process that was killed are gone by then. */
const WAIT_MS = 3_000

/**
 * Opens the log of a database to be moved. As long as it is open no service can append to it, and none can start.
 * @param database with the log's schema; stays open.
 * @throws DatabaseUnavailable, also while a service runs on the log.
 */
export async function openMovablePostgresLog(database: Database): Promise<MovableLog> {
  const session = new WriterSession({ database, isExclusive: true, lockWaitMs: technicalDeadline(WAIT_MS) })
  await session.client()
  const readers = database.openPool({
    purpose: 'event log',
    poolSize: 2,
    statementMs: STATEMENT_LIMIT_MS.log,
    settings: LOG_SESSION,
  })
  return {
    name: `PostgreSQL at ${database.name}`,
    readPage: (options) => orInterrupted(() => readPage(readers, options)),
    eventsAt: (places) => orInterrupted(() => readEventsAt(readers, places)),
    findCut: async () => null,
    isGapless: true,
    head: () => orInterrupted(() => readHead(readers)),
    // one transaction: all of them or, of a stream that has gone on, none
    write: (events) =>
      orInterrupted(async () => {
        const encoded = new EncodedEvents()
        for (const event of events) encoded.add(event)
        const { refused } = await encoded.insert(await session.client(), null)
        const [stream] = refused
        if (stream !== undefined) throw new Error(`An event of stream ${stream} does not follow its last one`)
      }),
    async close() {
      await session.close()
      await readers.end()
    },
  }
}

async function orInterrupted<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isConnectionLoss(error)) throw new MoveInterrupted(oneLine(error))
    const { code } = error as { code?: string }
    if (code === undefined) throw error
    // the server's own text may quote values
    throw new DatabaseUnavailable('the event log', `an event was refused: ${oneLine(error)} (${code})`)
  }
}

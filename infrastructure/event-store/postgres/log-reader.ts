import type { EventLog } from '../../../application/ports/event-log.ts'
import { type Database, STATEMENT_LIMIT_MS } from '../../database/database.ts'
import { LOG_SESSION, readPages, readStream } from './event-queries.ts'

/**
 * The log of a database up to a position, for a reader that is no process of its own: it takes no lock, and does not
 * follow.
 */
export function openPostgresLogReader(
  database: Database,
  upTo: bigint,
): Pick<EventLog, 'subscribe' | 'readStream' | 'isExclusive' | 'close'> {
  const readers = database.openPool({
    purpose: 'event log',
    poolSize: 1,
    statementMs: STATEMENT_LIMIT_MS.log,
    settings: LOG_SESSION,
  })
  return {
    isExclusive: false,
    subscribe: (options) => readPages(readers, options.after, upTo, options),
    readStream: (stream, { from = 0, maxCount = 1000 } = {}) =>
      readStream(readers, stream, { from, maxCount, direction: 'forwards' }),
    close: () => readers.end(),
  }
}

import type { Pool } from 'pg'
import { type EventLog, LOG_START } from '../../application/ports/event-log.ts'

export type LogEngine = 'postgresql' | 'eventstoredb'

const NAMES: Readonly<Record<LogEngine, string>> = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' }

interface Binding {
  engine: LogEngine
  first_event_id: string | null
  first_position: string | null
}

/** The checkpoints of this database stand in another event log; the message is one clear line. */
export class OtherEventLog extends Error {
  override readonly name = 'OtherEventLog'
}

/** The checkpoints of this database lie behind the end of its log; the message is one clear line. */
export class LogTooShort extends Error {
  override readonly name = 'LogTooShort'
}

/**
 * Makes sure that the checkpoints of a database stand in this log: positions of one log mean nothing in another. A
 * log is known by its first event and where that stands, so that it may move with its server, or come from a backup;
 * but not from one that ends before a checkpoint, for what is appended there next would never be read.
 * The first caller with a log binds the database to it.
 * @throws OtherEventLog, LogTooShort
 */
export async function bindToLog(pool: Pool, engine: LogEngine, log: EventLog): Promise<void> {
  const { events } = await log.readAll({ after: LOG_START, maxCount: 1 })
  const first = events[0]
  const here = [engine, first?.eventId ?? null, first?.position.toString() ?? null] as const
  // what was bound to an empty log may be bound to any
  await pool.query(
    `INSERT INTO runtime.log_binding (engine, first_event_id, first_position) VALUES ($1, $2, $3)
     ON CONFLICT (one) DO UPDATE SET engine = excluded.engine, first_event_id = excluded.first_event_id,
         first_position = excluded.first_position
       WHERE log_binding.first_event_id IS NULL`,
    [...here],
  )
  const { rows } = await pool.query<Binding>(
    'SELECT engine, first_event_id, first_position FROM runtime.log_binding',
  )
  const bound = rows[0]!
  if (bound.engine === engine && bound.first_event_id === here[1] && bound.first_position === here[2]) {
    const tooShort = await findLogTooShort(pool, log)
    if (tooShort !== null) throw new LogTooShort(tooShort)
    return
  }
  throw new OtherEventLog(
    bound.engine === engine
      ? `EVENTSTORE_URL, DATABASE_URL: the read models of this database follow another log in ${NAMES[engine]}`
      : `EVENTSTORE_URL: the read models of this database follow the log in ${NAMES[bound.engine]}; ` +
          'move it with "compstream events copy", or take an empty database',
  )
}

/** What is wrong when the log ends before a checkpoint of this database, in one clear line; null when it does not. */
export async function findLogTooShort(pool: Pool, log: Pick<EventLog, 'head'>): Promise<string | null> {
  // in this order: meanwhile other processes move on, the log before its checkpoints
  const { rows } = await pool.query<{ reached: string }>(
    `SELECT greatest((SELECT max(position) FROM runtime.projections),
                     (SELECT max(position) FROM runtime.process_managers), 0) AS reached`,
  )
  const reached = BigInt(rows[0]!.reached)
  const head = await log.head()
  if (head >= reached) return null
  return (
    `the event log ends at position ${head}, and this database has read it up to ${reached}: it was restored from an ` +
    'older backup than the database; restore both, or take an empty database and the keys'
  )
}

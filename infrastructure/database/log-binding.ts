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

/**
 * Makes sure that the checkpoints of a database stand in this log: positions of one log mean nothing in another. A
 * log is known by its first event and where that stands, so that it may move with its server, or come from a backup.
 * The first caller with a log binds the database to it.
 * @throws OtherEventLog
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
  if (bound.engine === engine && bound.first_event_id === here[1] && bound.first_position === here[2]) return
  throw new OtherEventLog(
    bound.engine === engine
      ? `EVENTSTORE_URL, DATABASE_URL: the read models of this database follow another log in ${NAMES[engine]}`
      : `EVENTSTORE_URL: the read models of this database follow the log in ${NAMES[bound.engine]}; ` +
          'move it with "compstream events copy", or take an empty database',
  )
}

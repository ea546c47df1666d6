import type { ClientBase, Pool } from 'pg'
import { type EventLog, LOG_START } from '../../application/ports/event-log.ts'
import type { LogIdentity } from '../../application/ports/moved-database.ts'
import { findLogTooShort } from './log-memory.ts'

export type LogEngine = 'postgresql' | 'eventstoredb'

const NAMES: Readonly<Record<LogEngine, string>> = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' }

/** The log that the checkpoints of a database stand in. */
export interface LogPairing extends LogIdentity {
  readonly engine: LogEngine
}

interface StoredPairing extends LogPairing {
  /**
   * Where the installation was moved to from this database; null while it is this one, {@link UNFINISHED} while a move
   * to this one has not ended.
   */
  readonly movedTo: string | null
}
/** See {@link StoredPairing.movedTo}. */
export const UNFINISHED = ''

/** The checkpoints of this database stand in another event log; the message is one clear line. */
export class OtherEventLog extends Error {
  override readonly name = 'OtherEventLog'
}

/** The log ends before a checkpoint of this database, and cannot be taken up as it is; the message is one clear line. */
export class LogTooShort extends Error {
  override readonly name = 'LogTooShort'
}

/**
 * Makes sure that the checkpoints of a database stand in this log: positions of one log mean nothing in another. A
 * log is known by its first event and where that stands, so that it may move with its server, or come from a backup.
 * Changes nothing.
 * @throws OtherEventLog, LogTooShort
 */
export async function refuseOtherLog(pool: Pool, engine: LogEngine, log: EventLog): Promise<void> {
  const paired = await readPairing(pool)
  if (paired?.movedTo === UNFINISHED) {
    throw new OtherEventLog(
      'a move of an installation to this database has not ended: repeat it with "compstream events copy"',
    )
  }
  if (paired?.movedTo) {
    throw new OtherEventLog(
      `the installation of this database was moved to ${paired.movedTo}: start it there, or move it back with ` +
        '"compstream events copy"',
    )
  }
  if (paired && !isSameLog(paired, await pairingOf(engine, log))) {
    throw new OtherEventLog(refusal(engine, paired.engine))
  }
  const tooShort = paired ? null : await findLogTooShort(pool, log)
  if (tooShort !== null)
    throw new LogTooShort(`${tooShort}: restore both, or take an empty database and the keys`)
}

/**
 * Pairs a database with a log that has its first event, after {@link refuseOtherLog}; the first caller's log counts.
 * @throws OtherEventLog, LogTooShort
 */
export async function rememberLog(pool: Pool, engine: LogEngine, log: EventLog): Promise<void> {
  const pairing = await pairingOf(engine, log)
  if (pairing) await pool.query(`${INSERT} WHERE log_binding.first_event_id IS NULL`, valuesOf(pairing, null))
  await refuseOtherLog(pool, engine, log)
}

function refusal(engine: LogEngine, paired: LogEngine): string {
  return paired === engine
    ? `EVENTSTORE_URL, DATABASE_URL: the read models of this database follow another log in ${NAMES[engine]}`
    : `EVENTSTORE_URL: the read models of this database follow the log in ${NAMES[paired]}; ` +
        'move it with "compstream events copy", or take the database that belongs to this log'
}

/** @returns null when the database was never paired with a log that held events. */
export async function readPairing(db: Pick<Pool | ClientBase, 'query'>): Promise<StoredPairing | null> {
  const { rows } = await db.query<{
    engine: LogEngine
    first_event_id: string
    first_position: string
    moved_to: string | null
  }>(
    `SELECT engine, first_event_id, first_position, moved_to FROM runtime.log_binding
     WHERE first_event_id IS NOT NULL`,
  )
  const [row] = rows
  if (!row) return null
  const { engine, first_event_id: firstEventId, first_position: position, moved_to: movedTo } = row
  return { engine, firstEventId, firstPosition: BigInt(position), movedTo }
}

/** Pairs a database with a log, whatever it was paired with. @param movedTo see {@link readPairing}. */
export async function storePairing(
  client: Pick<ClientBase, 'query'>,
  pairing: LogPairing,
  movedTo: string | null,
): Promise<void> {
  await client.query(INSERT, valuesOf(pairing, movedTo))
  await client.query('DELETE FROM runtime.log_marks')
}

/** Marks a database as one that the installation has left. @param movedTo where it is now; null: here. */
export async function markAsMoved(
  db: Pick<Pool | ClientBase, 'query'>,
  movedTo: string | null,
): Promise<void> {
  await db.query('UPDATE runtime.log_binding SET moved_to = $1', [movedTo])
}

const INSERT = `
  INSERT INTO runtime.log_binding (engine, first_event_id, first_position, moved_to) VALUES ($1, $2, $3, $4)
  ON CONFLICT (one) DO UPDATE SET engine = excluded.engine, first_event_id = excluded.first_event_id,
    first_position = excluded.first_position, moved_to = excluded.moved_to`

function valuesOf({ engine, firstEventId, firstPosition }: LogPairing, movedTo: string | null) {
  return [engine, firstEventId, firstPosition.toString(), movedTo]
}

/** Whether two pairings name the same log; none names none. */
export function isSameLog(one: LogPairing | null, other: LogPairing | null): boolean {
  return (
    one !== null &&
    one.engine === other?.engine &&
    one.firstEventId === other.firstEventId &&
    one.firstPosition === other.firstPosition
  )
}

/** @returns null while the log is empty. */
async function pairingOf(engine: LogEngine, log: EventLog): Promise<LogPairing | null> {
  const { events } = await log.readAll({ after: LOG_START, maxCount: 1 })
  const [first] = events
  return first ? { engine, firstEventId: first.eventId, firstPosition: first.position } : null
}

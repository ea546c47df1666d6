import type { ClientBase, Pool } from 'pg'
import { type EventLog, LOG_START } from '../../application/ports/event-log.ts'
import type { LogIdentity } from '../../application/ports/moved-database.ts'

export type LogEngine = 'postgresql' | 'eventstoredb'

const NAMES: Readonly<Record<LogEngine, string>> = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' }

/** The log that the checkpoints of a database stand in. */
interface LogPairing extends LogIdentity {
  readonly engine: LogEngine
}

interface StoredPairing extends LogPairing {
  /** Where the installation was moved to from this database; null while it is this one. */
  readonly movedTo: string | null
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
 * but not from one that ends before a checkpoint, for what is appended there next would never be read. Changes nothing.
 * @throws OtherEventLog, LogTooShort
 */
export async function refuseOtherLog(pool: Pool, engine: LogEngine, log: EventLog): Promise<void> {
  const paired = await readPairing(pool)
  if (paired?.movedTo) {
    throw new OtherEventLog(
      `the installation of this database was moved to ${paired.movedTo}: start it there, or move it back with ` +
        '"compstream events copy"',
    )
  }
  if (paired && paired.firstEventId === null) {
    // paired by an earlier release while the log was empty: what was read by now was read in its engine
    if (paired.engine !== engine && (await reachedBy(pool)) > LOG_START) {
      throw new OtherEventLog(refusal(engine, paired.engine))
    }
  } else if (paired) {
    const here = await beginningOf(engine, log)
    if (
      paired.engine !== engine ||
      paired.firstEventId !== here.firstEventId ||
      paired.firstPosition !== here.firstPosition
    ) {
      throw new OtherEventLog(refusal(engine, paired.engine))
    }
  }
  const tooShort = await findLogTooShort(pool, log)
  if (tooShort !== null) throw new LogTooShort(tooShort)
}

/**
 * Pairs a database with a log that has its first event; the first caller's log counts.
 * @throws OtherEventLog, LogTooShort
 */
export async function rememberLog(pool: Pool, engine: LogEngine, log: EventLog): Promise<void> {
  await refuseOtherLog(pool, engine, log)
  await pool.query(
    `${INSERT} WHERE log_binding.first_event_id IS NULL`,
    valuesOf(await beginningOf(engine, log)),
  )
  await refuseOtherLog(pool, engine, log)
}

function refusal(engine: LogEngine, paired: LogEngine): string {
  return paired === engine
    ? `EVENTSTORE_URL, DATABASE_URL: the read models of this database follow another log in ${NAMES[engine]}`
    : `EVENTSTORE_URL: the read models of this database follow the log in ${NAMES[paired]}; ` +
        'move it with "compstream events copy", or take the database that belongs to this log'
}

/** The furthest position that anything in this database has read up to. */
async function reachedBy(pool: Pool): Promise<bigint> {
  const { rows } = await pool.query<{ reached: string }>(
    `SELECT greatest((SELECT max(position) FROM runtime.projections),
                     (SELECT max(position) FROM runtime.process_managers), 0) AS reached`,
  )
  return BigInt(rows[0]!.reached)
}

/** What is wrong when the log ends before a checkpoint of this database, in one clear line; null when it does not. */
export async function findLogTooShort(pool: Pool, log: Pick<EventLog, 'head'>): Promise<string | null> {
  // in this order: meanwhile other processes move on, the log before its checkpoints
  const reached = await reachedBy(pool)
  const head = await log.head()
  if (head >= reached) return null
  return (
    `the event log ends at position ${head}, and this database has read it up to ${reached}: it was restored from an ` +
    'older backup than the database; restore both, or take an empty database and the keys'
  )
}

/** @returns null when the database was never paired. */
export async function readPairing(db: Pick<Pool | ClientBase, 'query'>): Promise<StoredPairing | null> {
  const { rows } = await db.query<{
    engine: LogEngine
    first_event_id: string | null
    first_position: string | null
    moved_to: string | null
  }>('SELECT engine, first_event_id, first_position, moved_to FROM runtime.log_binding')
  const [row] = rows
  if (!row) return null
  const { engine, first_event_id: firstEventId, first_position: position, moved_to: movedTo } = row
  return { engine, firstEventId, firstPosition: position === null ? null : BigInt(position), movedTo }
}

/** Binds a database to a log, whatever it was paired to. */
export async function storePairing(client: Pick<ClientBase, 'query'>, pairing: LogPairing): Promise<void> {
  await client.query(INSERT, valuesOf(pairing))
}

const INSERT = `
  INSERT INTO runtime.log_binding (engine, first_event_id, first_position) VALUES ($1, $2, $3)
  ON CONFLICT (one) DO UPDATE SET engine = excluded.engine, first_event_id = excluded.first_event_id,
    first_position = excluded.first_position, moved_to = NULL`

function valuesOf({ engine, firstEventId, firstPosition }: LogPairing): (string | null)[] {
  return [engine, firstEventId, firstPosition?.toString() ?? null]
}

/** What a log is known by. */
async function beginningOf(engine: LogEngine, log: EventLog): Promise<LogPairing> {
  const { events } = await log.readAll({ after: LOG_START, maxCount: 1 })
  return { engine, firstEventId: events[0]?.eventId ?? null, firstPosition: events[0]?.position ?? null }
}

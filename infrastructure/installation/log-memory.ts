import type { ClientBase, Pool } from 'pg'
import { type EventLog, type LogMark, LogWentBack } from '../../application/ports/event-log.ts'
import type { LogMemory, RememberedMark } from '../../application/ports/log-memory.ts'

/** What is remembered lies denser towards the end: of so many positions before it, one in each stretch that is longer by this. */
const LONGER_BY = 1.25

/** What an installation remembers of its log, in the table `runtime.log_marks` and in its checkpoints. */
export class PostgresLogMemory implements LogMemory {
  readonly #db: Pick<Pool | ClientBase, 'query'>
  #remembered: LogMark | null = null

  constructor(db: Pick<Pool | ClientBase, 'query'>) {
    this.#db = db
  }

  async recall(): Promise<{ marks: readonly RememberedMark[]; reached: bigint }> {
    const { rows } = await this.#db.query<{ position: string; event_id: string; events: string | null }>(
      'SELECT position, event_id, events FROM runtime.log_marks ORDER BY position',
    )
    const marks = rows.map(({ position, event_id, events }) => ({
      position: BigInt(position),
      eventId: event_id,
      events: events === null ? null : Number(events),
    }))
    return { marks, reached: await reachedBy(this.#db) }
  }

  async remember({ position, eventId, events }: RememberedMark): Promise<void> {
    if (events === null && this.#remembered?.position === position) return
    await this.#db.query(
      `INSERT INTO runtime.log_marks AS stored (position, event_id, events) VALUES ($1, $2, $3)
       ON CONFLICT (position, event_id) DO UPDATE SET events = COALESCE(excluded.events, stored.events)`,
      [String(position), eventId, events],
    )
    this.#remembered = { position, eventId }
    await this.#db.query(
      `DELETE FROM runtime.log_marks WHERE position < $1
         AND position IS DISTINCT FROM (SELECT max(position) FROM runtime.log_marks WHERE events IS NOT NULL)
         AND position NOT IN (SELECT min(position) FROM runtime.log_marks WHERE position <= $1
                               GROUP BY floor(ln($1 - position + 1) / ln(${LONGER_BY})))`,
      [String(position)],
    )
  }

  /**
   * Remembers what this process has read last, and compares that and what others read with the log.
   * @returns what is wrong, in one clear line; null when nothing is.
   */
  async findLogWentBack(
    log: Pick<EventLog, 'idAt' | 'head' | 'findCut'> & { last: LogMark | null },
  ): Promise<string | null> {
    const { last } = log
    if (last) await this.remember({ ...last, events: null })
    const { rows } = await this.#db.query<{ position: string; event_id: string }>(
      'SELECT position, event_id FROM runtime.log_marks ORDER BY position DESC LIMIT 1',
    )
    const newest = rows.map(({ position, event_id }) => ({ position: BigInt(position), eventId: event_id }))
    for (const mark of last ? [last, ...newest] : newest) {
      if ((await log.idAt(mark.position)) !== mark.eventId) {
        return new LogWentBack(mark, await log.findCut().catch(() => null)).message
      }
    }
    return findLogTooShort(this.#db, log)
  }
}

/** The furthest position that anything in this database has read up to. */
async function reachedBy(db: Pick<Pool | ClientBase, 'query'>): Promise<bigint> {
  const { rows } = await db.query<{ reached: string }>(
    `SELECT greatest((SELECT max(position) FROM runtime.projections),
                     (SELECT max(position) FROM runtime.process_managers), 0) AS reached`,
  )
  return BigInt(rows[0]!.reached)
}

/** What is wrong when the log ends before a checkpoint of this database, in one clear line; null when it does not. */
export async function findLogTooShort(
  db: Pick<Pool | ClientBase, 'query'>,
  log: Pick<EventLog, 'head'>,
): Promise<string | null> {
  // in this order: meanwhile other processes move on, the log before its checkpoints
  const reached = await reachedBy(db)
  const head = await log.head()
  if (head >= reached) return null
  return `The event log went back: it ends at position ${head}, and this database has read it up to ${reached}`
}

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import {
  type DatabaseLog,
  DatabaseUnavailable,
  KEEPALIVES,
  STATEMENT_LIMIT_MS,
} from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { SupervisedSession } from '../../database/supervised-session.ts'
import { LOG_SESSION } from './event-queries.ts'

/** Held by every session that may append: shared, or exclusively by the only one. */
const WRITER_LOCK = '7305420017320845002'
const LOCK_TIMED_OUT = '55P03'

const SETTINGS = {
  ...LOG_SESSION,
  // the statement that takes the append lock must see what was committed before it got it
  default_transaction_isolation: 'read committed',
  ...KEEPALIVES,
}

interface WriterSessionOptions {
  readonly database: Database
  readonly log?: DatabaseLog
  /** Shares the log with no other session. */
  readonly isExclusive: boolean
  /** Told when a connection that was lost is there again. */
  readonly reconnected?: (() => void) | undefined
  /** How long to wait for sessions that do not let this one in, in milliseconds. */
  readonly lockWaitMs: number
}

/**
 * The one connection through which a process appends. It holds the writer lock as long as it lives, so whoever can
 * append holds the lock, and the end of the session gives it back together with whatever was uncommitted.
 */
export class WriterSession extends SupervisedSession {
  /** Unique to this writer. */
  readonly id = randomUUID()
  readonly isExclusive: boolean
  /**
   * Something may have been stored that this process does not know of: its connection was lost, or an append was given
   * up that may still come through. Once true it stays true.
   */
  inDoubt = false

  constructor({ database, log, isExclusive, lockWaitMs, reconnected }: WriterSessionOptions) {
    super({
      name: 'the event log',
      connect: (onLost) =>
        database.connect({
          purpose: 'event log writer',
          statementMs: STATEMENT_LIMIT_MS.append,
          settings: SETTINGS,
          onLost,
        }),
      prepare: (client) => takeLock(client, database.name, isExclusive, lockWaitMs),
      // an append tells sooner, and may take longer than a sign of life
      hasHeartbeat: false,
      lost: (error) => {
        this.inDoubt = true
        log?.warn({ reason: error.message }, 'the connection that appends to the event log was lost')
      },
      reconnected,
    })
    this.isExclusive = isExclusive
  }
}

/** Waits for the lock: sessions of a process that has just ended may take a moment to go. */
async function takeLock(
  client: pg.Client,
  database: string,
  isExclusive: boolean,
  waitMs: number,
): Promise<void> {
  await client.query(`SET lock_timeout = ${waitMs}`)
  try {
    await client.query(`SELECT pg_advisory_lock${isExclusive ? '' : '_shared'}(${WRITER_LOCK})`)
    await client.query('RESET lock_timeout')
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_TIMED_OUT) throw error
    throw new DatabaseUnavailable(
      database,
      isExclusive
        ? `the event log is in use (${await describeHolder(client)}): stop every service on it first`
        : `the event log is held by a process that shares it with nobody (${await describeHolder(client)})`,
    )
  }
}

/** Which session holds the writer lock, for the operator. */
async function describeHolder(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number }>(
    `SELECT pid FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND ((classid::bigint << 32) | objid::bigint) = ${WRITER_LOCK}`,
  )
  return rows[0] ? `database session ${rows[0].pid}` : 'it has just gone, start again'
}

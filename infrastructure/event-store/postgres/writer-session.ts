import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import {
  type DatabaseLog,
  DatabaseUnavailable,
  endClient,
  KEEPALIVES,
  STATEMENT_LIMIT_MS,
} from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { retryPause } from '../retry.ts'
import { LOG_SESSION } from './event-queries.ts'

/** Held by every session that may append: shared, or exclusively by one that shares the log with nobody. */
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
  readonly reconnected?: () => void
  /** How long to wait for sessions that do not let this one in, in milliseconds. */
  readonly lockWaitMs: number
}

/**
 * The one connection through which a process appends. It holds the writer lock as long as it lives, so whoever can
 * append holds the lock, and the end of the session gives it back together with whatever was uncommitted. A connection
 * that was lost is replaced at once.
 */
export class WriterSession {
  /** Unique to this writer. */
  readonly id = randomUUID()
  readonly isExclusive: boolean
  readonly #database: Database
  readonly #log: DatabaseLog | undefined
  readonly #lockWaitMs: number
  readonly #reconnected: (() => void) | undefined
  readonly #closing = new AbortController()
  #inDoubt = false
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined

  constructor({ database, log, isExclusive, lockWaitMs, reconnected }: WriterSessionOptions) {
    this.#database = database
    this.#log = log
    this.isExclusive = isExclusive
    this.#lockWaitMs = lockWaitMs
    this.#reconnected = reconnected
  }

  /**
   * Something may have been stored that this process does not know of: its connection was lost, or an append was given
   * up that may still come through. Once true it stays true.
   */
  get inDoubt(): boolean {
    return this.#inDoubt
  }

  doubt(): void {
    this.#inDoubt = true
  }

  /** The connection, holding the lock, while there is one. */
  get connected(): pg.Client | undefined {
    return this.#client
  }

  /**
   * The connection, holding the lock. While there is none it tries to connect once.
   * @throws DatabaseUnavailable, also when another session does not let this one in.
   */
  async client(): Promise<pg.Client> {
    if (this.#client) return this.#client
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** Aborts when it is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Gives the connection up: nobody knows what becomes of what was sent on it. */
  cut(): void {
    if (this.#client) this.#lost(this.#client, new Error('no answer'))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const client = this.#client
    this.#client = undefined
    if (client) await endClient(client)
  }

  async #connect(): Promise<pg.Client> {
    let lost: Error | undefined
    let opened: pg.Client | undefined
    const client = await this.#database.connect({
      purpose: 'event log writer',
      statementMs: STATEMENT_LIMIT_MS.append,
      settings: SETTINGS,
      onLost: (error) => {
        lost = error
        if (opened) this.#lost(opened, error)
      },
    })
    opened = client
    try {
      await this.#takeLock(client)
      if (this.#closing.signal.aborted) throw new DatabaseUnavailable('the event log', 'it is closed')
      // its end may be told together with the last answer
      if (lost) throw lost
      this.#client = client
      return client
    } catch (error) {
      await endClient(client)
      throw error
    }
  }

  /** Waits for the lock: sessions of a process that has just ended may take a moment to go. */
  async #takeLock(client: pg.Client): Promise<void> {
    await client.query(`SET lock_timeout = ${this.#lockWaitMs}`)
    try {
      await client.query(`SELECT pg_advisory_lock${this.isExclusive ? '' : '_shared'}(${WRITER_LOCK})`)
      await client.query('RESET lock_timeout')
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_TIMED_OUT) throw error
      throw new DatabaseUnavailable(
        this.#database.name,
        this.isExclusive
          ? `the event log is in use (${await describeHolder(client)}): stop every service on it first`
          : `the event log is held by a process that shares it with nobody (${await describeHolder(client)})`,
      )
    }
  }

  #lost(client: pg.Client, error: Error): void {
    if (client !== this.#client) return
    this.#client = undefined
    this.#inDoubt = true
    // with a query under way this cuts the connection, which is what rejects that query
    void endClient(client)
    if (this.#closing.signal.aborted) return
    this.#log?.warn({ reason: error.message }, 'the connection that appends to the event log was lost')
    void this.#reconnect()
  }

  /** Does not wait for the next append: the lock is what keeps others out. */
  async #reconnect(): Promise<void> {
    for (let attempt = 0; !this.#client && !this.#closing.signal.aborted; attempt += 1) {
      await this.client().catch(() => retryPause(attempt, this.closing))
    }
    this.#reconnected?.()
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

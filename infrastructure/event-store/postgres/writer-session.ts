import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import {
  type DatabaseLog,
  DatabaseUnavailable,
  endClient,
  STATEMENT_LIMIT_MS,
} from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { LOG_SESSION } from './event-queries.ts'

/** Serializes appends: held by a transaction from before it assigns positions until its commit. */
export const APPEND_LOCK = '7305420017320845001'
/** Held by the session that appends: exclusively by a sole writer, shared by several. */
const WRITER_LOCK = '7305420017320845002'
const JOIN_CHANNEL = 'event_log_join'

/** A writer that answers nothing for so long no longer counts as alive; the server gives it up only later. */
const SILENCE_LIMIT_MS = 15_000
const HEARTBEAT_MS = 1_000
const JOIN_REPEAT_MS = 500
const LONGEST_BACKOFF_MS = 1_000

const SETTINGS = {
  ...LOG_SESSION,
  // a process that stopped inside a transaction must not hold up the other writers
  idle_in_transaction_session_timeout: '10s',
  // a machine that vanished gives its locks back, but not before its process knows that it may have
  tcp_keepalives_idle: '15',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '30s',
}

/**
 * The one connection through which a process appends. It holds the writer lock as long as it lives, so whoever can
 * append holds the lock, and the end of the session gives it back together with whatever was uncommitted.
 *
 * The first process takes the lock exclusively and is the log's sole writer. Another one asks by notification and
 * waits for a shared lock; the sole writer then stops being one for ever, and only after that swaps its lock for a
 * shared one. What a sole writer knows about the log can therefore not be outdated.
 */
export class WriterSession {
  readonly #database: Database
  readonly #log: DatabaseLog
  readonly #joinTimeoutMs: number
  readonly #alone: boolean
  readonly #id = randomUUID()
  readonly #closing = new AbortController()
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined
  #sole = false
  #aliveAt = 0
  #heartbeat: NodeJS.Timeout | undefined
  #stopListening: () => void = () => undefined

  /**
   * @param joinTimeoutMs how long to wait for the sole writer to make room.
   * @param options.alone holds the lock exclusively for as long as it lives, or not at all; makes room for nobody.
   */
  constructor(
    database: Database,
    log: DatabaseLog,
    joinTimeoutMs: number,
    options: { alone?: boolean } = {},
  ) {
    this.#database = database
    this.#joinTimeoutMs = joinTimeoutMs
    this.#alone = options.alone ?? false
    this.#log = log
  }

  /** Connects and takes the lock. @throws DatabaseUnavailable, also when the sole writer does not make room. */
  async open(): Promise<void> {
    // before the lock is taken, so that no request to join can be missed
    this.#stopListening = await this.#database.listen(JOIN_CHANNEL, (payload) => {
      if (payload !== null && payload !== this.#id) this.makeRoom('another process joined')
    })
    try {
      await this.#connect(true)
    } catch (error) {
      this.#stopListening()
      throw error
    }
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Unique to this writer. */
  get id(): string {
    return this.#id
  }

  /** True while no other session can hold the writer lock. Once false it stays false. */
  get sole(): boolean {
    if (this.#sole && this.#silent) this.#sole = false
    return this.#sole
  }

  /** The connection, holding the lock, while there is one. */
  get connected(): pg.Client | undefined {
    return this.#client
  }

  /** The connection, holding the lock. While there is none it tries to reconnect once, see {@link retryPause}. */
  async client(): Promise<pg.Client> {
    if (this.#client) return this.#client
    this.#connecting ??= this.#connect(false).finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** Notes that the server answered. */
  alive(): void {
    this.#aliveAt = performance.now()
  }

  /** Waits before the next attempt to reconnect. */
  async retryPause(attempt: number): Promise<void> {
    const pause = Math.min(20 * 2 ** attempt, LONGEST_BACKOFF_MS)
    await delay(pause, undefined, { signal: this.#closing.signal }).catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#heartbeat)
    this.#stopListening()
    const client = this.#client
    this.#client = undefined
    this.#sole = false
    if (client) await endClient(client)
  }

  get #silent(): boolean {
    return performance.now() - this.#aliveAt > SILENCE_LIMIT_MS
  }

  async #connect(first: boolean): Promise<pg.Client> {
    let current: pg.Client | undefined
    const client = await this.#database.connect({
      purpose: 'event log writer',
      statementMs: STATEMENT_LIMIT_MS.append,
      settings: SETTINGS,
      onLost: (error) => current && this.#lost(current, error),
    })
    try {
      // only the first session may be the sole writer: a later one cannot know what happened in between
      const sole = first && (await tryExclusive(client))
      if (this.#alone && !sole) await this.#waitUntilAlone(client)
      else if (!sole) await this.#join(client)
      if (this.#closing.signal.aborted) throw new Error('the event log is closed')
      current = client
      this.#client = client
      this.#sole = sole
      this.alive()
      return client
    } catch (error) {
      await endClient(client)
      throw error
    }
  }

  /** Waits for the exclusive lock: sessions of a process that has just ended may take a moment to go. */
  async #waitUntilAlone(client: pg.Client): Promise<void> {
    await client.query(`SET lock_timeout = ${this.#joinTimeoutMs}`)
    try {
      await client.query(`SELECT pg_advisory_lock(${WRITER_LOCK})`)
      await client.query('RESET lock_timeout')
    } catch (error) {
      if ((error as { code?: string }).code !== '55P03') throw error
      throw new DatabaseUnavailable(
        this.#database.name,
        `the event log is in use (${await describeHolder(client)}): stop every service on it first`,
      )
    }
  }

  /** Waits for the shared lock; the request is repeated, because notifications reach only who listens just then. */
  async #join(client: pg.Client): Promise<void> {
    const deadline = performance.now() + this.#joinTimeoutMs
    await client.query(`SET lock_timeout = ${JOIN_REPEAT_MS}`)
    for (;;) {
      await client.query('SELECT pg_notify($1, $2)', [JOIN_CHANNEL, this.#id])
      try {
        await client.query(`SELECT pg_advisory_lock_shared(${WRITER_LOCK})`)
        await client.query('RESET lock_timeout')
        return
      } catch (error) {
        if ((error as { code?: string }).code !== '55P03') throw error
        if (performance.now() > deadline || this.#closing.signal.aborted) {
          throw new DatabaseUnavailable(
            'the event log',
            `its sole writer does not make room for another process (${await describeHolder(client)})`,
          )
        }
      }
    }
  }

  /** Stops being the sole writer at once, then lets others in; appends already sent come before that in the queue. */
  makeRoom(why: string): void {
    if (!this.#sole || this.#alone) return
    this.#sole = false
    this.#log.info({ why }, 'no longer the sole writer of the event log')
    const client = this.#client
    client
      ?.query(`SELECT pg_advisory_lock_shared(${WRITER_LOCK}); SELECT pg_advisory_unlock(${WRITER_LOCK})`)
      .catch((error: Error) => this.#lost(client, error))
  }

  #lost(client: pg.Client, error: Error): void {
    if (client !== this.#client) return
    this.#client = undefined
    this.#sole = false
    if (!this.#closing.signal.aborted) {
      this.#log.warn({ reason: error.message }, 'the connection that appends to the event log was lost')
    }
    // with a query under way this cuts the connection, which is what rejects that query
    void endClient(client)
  }

  #beat(): void {
    const client = this.#client
    // lost connections come back without waiting for the next append: a lock holder is what others look for
    if (!client) {
      void this.client().catch(() => undefined)
      return
    }
    if (this.#silent) {
      this.#lost(client, new Error('no answer'))
      return
    }
    if (performance.now() - this.#aliveAt < HEARTBEAT_MS / 2) return
    client.query('SELECT 1').then(
      () => this.alive(),
      () => undefined,
    )
  }
}

async function tryExclusive(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(
    `SELECT pg_try_advisory_lock(${WRITER_LOCK}) AS taken`,
  )
  return rows[0]!.taken
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

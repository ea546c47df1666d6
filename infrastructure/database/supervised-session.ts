import type pg from 'pg'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { backOff } from '../../application/followers/backoff.ts'
import { DatabaseUnavailable, endClient, ended } from './connection.ts'

const HEARTBEAT_MS = 15_000
/** How long an answer to one is waited for. */
const HEARTBEAT_LIMIT_MS = 5_000
const RECONNECTING = { firstMs: 50, mostMs: 1_000 }

interface Parts {
  /** The database, for messages. */
  readonly name: string
  readonly connect: (onLost: (error: Error) => void) => Promise<pg.Client>
  /** Prepares a connection before its first use. */
  readonly prepare: (client: pg.Client) => Promise<void>
  /** Whether it is asked for signs of life: one whose other end vanished without a word is found out. */
  readonly hasHeartbeat: boolean
  readonly lost?: (error: Error) => void
  /** Told when a connection that was lost is there again. */
  readonly reconnected?: (() => void) | undefined
}

/** A session of its own at the database. A connection that was lost is replaced for ever, with growing pauses. */
export class SupervisedSession {
  readonly #parts: Parts
  readonly #closing = new AbortController()
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined
  #preparing: pg.Client | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The connection while there is one. */
  get connected(): pg.Client | undefined {
    return this.#client
  }

  /** Aborts when it is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** The connection. While there is none it tries to connect once. @throws DatabaseUnavailable, what `prepare` throws. */
  async client(): Promise<pg.Client> {
    if (this.#client) return this.#client
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** Gives the connection up: the outcome of what was sent on it is unknown. */
  cut(): void {
    if (this.#client) this.#lose(this.#client, new Error('no answer'))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#heartbeat)
    const client = this.#client ?? this.#preparing
    this.#client = undefined
    if (client) await endClient(client)
    if (this.#connecting) await ended(this.#connecting)
  }

  async #connect(): Promise<pg.Client> {
    const { name, connect, prepare, hasHeartbeat } = this.#parts
    const isClosed = new DatabaseUnavailable(name, 'the session is closed')
    if (this.closing.aborted) throw isClosed
    let lost: Error | undefined
    let opened: pg.Client | undefined
    const client = await connect((error) => {
      lost = error
      if (opened) this.#lose(opened, error)
    })
    opened = client
    this.#preparing = client
    try {
      if (!this.closing.aborted) await prepare(client)
      if (this.closing.aborted) throw isClosed
      // its end may be told together with the last answer
      if (lost) throw lost
    } catch (error) {
      await endClient(client)
      throw error
    } finally {
      this.#preparing = undefined
    }
    this.#client = client
    if (hasHeartbeat) this.#heartbeat = setInterval(() => this.#beat(client), HEARTBEAT_MS).unref()
    return client
  }

  #beat(client: pg.Client): void {
    let isAnswered = false
    const answered = () => {
      isAnswered = true
      clearTimeout(limit)
    }
    const limit = setTimeout(
      // an answer that came while this process stood still is read first
      () => setImmediate(() => isAnswered || this.#lose(client, new Error('no answer'))),
      technicalDeadline(HEARTBEAT_LIMIT_MS),
    )
    client.query({ text: 'SELECT 1', query_timeout: HEARTBEAT_MS } as pg.QueryConfig).then(answered, answered)
  }

  #lose(client: pg.Client, error: Error): void {
    if (client !== this.#client) return
    this.#client = undefined
    clearInterval(this.#heartbeat)
    // with a query under way this cuts the connection, which is what rejects that query
    void endClient(client)
    this.#parts.lost?.(error)
    void this.#reconnect()
  }

  /** Waits for no user of the connection: it shows others that this process is alive. */
  async #reconnect(): Promise<void> {
    for (let attempt = 1; !this.#client && !this.closing.aborted; attempt += 1) {
      await this.client().catch(() => backOff(attempt, RECONNECTING, this.closing))
    }
    if (this.#client) this.#parts.reconnected?.()
  }
}

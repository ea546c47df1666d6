import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type DatabaseLog, endClient } from './connection.ts'

type Handler = (payload: string | null) => void

const HEARTBEAT_MS = 15_000
const HEARTBEAT_LIMIT_MS = 5_000
const LONGEST_BACKOFF_MS = 5_000

/** One connection that listens on all channels asked for, connects when first needed and reconnects for ever. */
export class Listener {
  readonly #connect: (onLost: (error: Error) => void) => Promise<pg.Client>
  readonly #log: DatabaseLog
  readonly #handlers = new Map<string, Set<Handler>>()
  readonly #stopping = new AbortController()
  #client: pg.Client | undefined
  #connecting: Promise<void> | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor(connect: (onLost: (error: Error) => void) => Promise<pg.Client>, log: DatabaseLog) {
    this.#connect = connect
    this.#log = log
  }

  async listen(channel: string, handler: Handler): Promise<() => void> {
    let handlers = this.#handlers.get(channel)
    if (!handlers) {
      handlers = new Set()
      this.#handlers.set(channel, handlers)
    }
    handlers.add(handler)
    if (this.#client) await this.#client.query(`LISTEN ${this.#client.escapeIdentifier(channel)}`)
    else {
      this.#connecting ??= this.#open(null)
      await this.#connecting
    }
    return () => {
      // LISTEN stays: a channel without handlers costs nothing
      this.#handlers.get(channel)?.delete(handler)
    }
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#heartbeat)
    const client = this.#client
    this.#client = undefined
    if (client) await endClient(client)
  }

  /** The first connection must succeed; a lost one is replaced with growing pauses. */
  async #open(lost: Error | null): Promise<void> {
    if (lost) this.#log.warn({ reason: lost.message }, 'the listening database connection was lost')
    for (let attempt = 0; !this.#stopping.signal.aborted; attempt += 1) {
      try {
        if (lost)
          await delay(Math.min(50 * 2 ** attempt, LONGEST_BACKOFF_MS), null, {
            signal: this.#stopping.signal,
          })
        await this.#listenAll()
        return
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        if (!lost) {
          this.#connecting = undefined
          throw error
        }
      }
    }
  }

  async #listenAll(): Promise<void> {
    let current: pg.Client | undefined
    let early: Error | undefined
    const client = await this.#connect((error) => {
      early = error
      if (current && current === this.#client) this.#reopen(error)
    })
    client.on('notification', ({ channel, payload }) => this.#deliver(channel, payload ?? ''))
    try {
      for (const channel of this.#handlers.keys())
        await client.query(`LISTEN ${client.escapeIdentifier(channel)}`)
    } catch (error) {
      await endClient(client)
      throw error
    }
    if (early) throw early
    if (this.#stopping.signal.aborted) {
      await endClient(client)
      return
    }
    current = client
    this.#client = client
    this.#connecting = undefined
    this.#beat(client)
    for (const channel of this.#handlers.keys()) this.#deliver(channel, null)
  }

  #reopen(error: Error): void {
    this.#client = undefined
    clearInterval(this.#heartbeat)
    if (this.#stopping.signal.aborted) return
    this.#connecting ??= this.#open(error)
  }

  /** A connection whose other end vanished without a word is found out. */
  #beat(client: pg.Client): void {
    clearInterval(this.#heartbeat)
    this.#heartbeat = setInterval(() => {
      const limit = setTimeout(() => {
        if (client === this.#client) this.#reopen(new Error('no answer'))
        void endClient(client)
      }, HEARTBEAT_LIMIT_MS)
      client.query('SELECT 1').then(
        () => clearTimeout(limit),
        () => clearTimeout(limit),
      )
    }, HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  #deliver(channel: string, payload: string | null): void {
    for (const handler of this.#handlers.get(channel) ?? []) handler(payload)
  }
}

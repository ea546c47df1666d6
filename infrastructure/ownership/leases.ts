import type { Pool } from 'pg'
import type { Lease, Leases } from '../../application/ports/leases.ts'
import type { Database } from '../database/database.ts'
import { Gathered } from '../gathered.ts'
import { Heartbeat } from './heartbeat.ts'
import { isGone, openOwnerSession } from './owner-session.ts'

/** SQL that is true when an owner may take a lease. */
const isFree = (lease: string, owner: string) => `
  (${lease}.expires_at <= clock_timestamp() OR ${lease}.owner = ${owner}
    OR ${isGone(`${lease}.owner`)} AND NOT ${isGone(owner)})`

/**
 * Leases in the table `runtime.leases`: each lasts until it is given back, or its owner is gone (see owner-session.ts).
 * Owners of an earlier release renew the expiry of theirs.
 */
export class PostgresLeaseStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * Takes those of the named leases that are free, already this owner's, or of an owner that is gone, each under a new
   * epoch. @returns their epochs by name.
   */
  async acquire(owner: string, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#epochs({
      name: 'leases/acquire',
      // what is not free is left out before it is locked
      text: `INSERT INTO runtime.leases AS held (name, owner, epoch, expires_at)
             SELECT name, $1, 1, 'infinity' FROM unnest($2::text[]) AS wanted (name)
             WHERE NOT EXISTS (SELECT 1 FROM runtime.leases AS kept
                               WHERE kept.name = wanted.name AND NOT ${isFree('kept', '$1')})
             ORDER BY name COLLATE "C"
             ON CONFLICT (name) DO UPDATE
               SET owner = excluded.owner, epoch = held.epoch + 1, expires_at = excluded.expires_at
               WHERE ${isFree('held', 'excluded.owner')}
             RETURNING name, epoch`,
      values: [owner, names],
    })
  }

  /** Keeps an owner alive for so many milliseconds. @returns the epochs of all its leases by name. */
  async renew(owner: string, ttlMs: number): Promise<ReadonlyMap<string, number>> {
    return this.#epochs({
      name: 'leases/renew',
      text: `WITH renewed AS (
               UPDATE runtime.sessions SET alive_until = clock_timestamp() + $2 * interval '1 millisecond'
               WHERE owner = $1)
             SELECT name, epoch FROM runtime.leases WHERE owner = $1`,
      values: [owner, ttlMs],
    })
  }

  /** Gives a lease back; nothing happens when it is no longer this owner's under that epoch. */
  async release(name: string, owner: string, epoch: number): Promise<void> {
    // the row stays without an owner, so that epochs go on growing
    await this.#pool.query({
      name: 'leases/release',
      text: `UPDATE runtime.leases SET owner = '', expires_at = clock_timestamp()
             WHERE name = $1 AND owner = $2 AND epoch = $3`,
      values: [name, owner, epoch],
    })
  }

  /** Names of the leases that somebody holds now, with their owners. */
  async holders(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const result = await this.#pool.query<{ name: string; owner: string }>({
      name: 'leases/holders',
      text: `SELECT name, owner FROM runtime.leases
             WHERE name = ANY($1) AND expires_at > clock_timestamp() AND NOT ${isGone('leases.owner')}`,
      values: [names],
    })
    return new Map(result.rows.map((row) => [row.name, row.owner]))
  }

  async #epochs(query: { name: string; text: string; values: unknown[] }) {
    const { rows } = await this.#pool.query<{ name: string; epoch: string }>(query)
    return new Map(rows.map(({ name, epoch }) => [name, Number(epoch)]))
  }
}

interface Held {
  readonly name: string
  readonly epoch: number
  readonly lost: AbortController
}

/** The leases of one process. They last as long as its session, which is renewed for all of them at once. */
export class HeldLeases implements Leases {
  readonly owner: string
  readonly #store: PostgresLeaseStore
  readonly #session: { close(): Promise<void> }
  readonly #heartbeat: Heartbeat
  readonly #asked: Gathered<string, ReadonlyMap<string, number>>
  readonly #asking = new Set<string>()
  readonly #held = new Set<Held>()
  readonly #onLapse: (() => void)[] = []

  private constructor(
    store: PostgresLeaseStore,
    session: { close(): Promise<void> },
    { owner, ttlMs }: { owner: string; ttlMs: number },
  ) {
    this.#store = store
    this.#session = session
    this.owner = owner
    this.#asked = new Gathered((names) => store.acquire(owner, names), 'ordered')
    this.#heartbeat = new Heartbeat(
      ttlMs,
      async () => this.#keep([...this.#held], await store.renew(owner, ttlMs)),
      () => {
        for (const held of this.#held) this.#lose(held)
        for (const lapsed of this.#onLapse) lapsed()
      },
    )
  }

  /**
   * Opens the session of a process, and keeps it alive until it is closed.
   * @param options.owner unique per start of a process, not per machine.
   * @param options.ttlMs real milliseconds without renewal after which others may take over, default 10 s.
   * @throws DatabaseUnavailable
   */
  static async open(
    database: Pick<Database, 'connect' | 'name' | 'pool' | 'leases'>,
    { owner, ttlMs = 10_000 }: { owner: string; ttlMs?: number },
  ): Promise<HeldLeases> {
    const session = await openOwnerSession(database, owner, ttlMs)
    return new HeldLeases(new PostgresLeaseStore(database.leases), session, { owner, ttlMs })
  }

  async acquire(name: string): Promise<Lease | null> {
    this.#asking.add(name)
    try {
      const epoch = (await this.#asked.ask(name)).get(name)
      if (epoch === undefined) return null
      const held: Held = { name, epoch, lost: new AbortController() }
      this.#held.add(held)
      return {
        name,
        epoch,
        lost: held.lost.signal,
        release: async () => {
          this.#lose(held)
          await this.#store.release(name, this.owner, epoch)
        },
      }
    } finally {
      this.#asking.delete(name)
    }
  }

  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#store.holders(names)
  }

  onLapse(lapsed: () => void): void {
    this.#onLapse.push(lapsed)
  }

  /** Ends the session: others take over at once what is still held. */
  async close(): Promise<void> {
    this.#heartbeat.stop()
    await this.#session.close()
  }

  /** Compares what was held before the question with what the store says; gives back what nobody here holds any more. */
  async #keep(held: readonly Held[], stored: ReadonlyMap<string, number>): Promise<void> {
    for (const one of held) if (stored.get(one.name) !== one.epoch) this.#lose(one)
    for (const [name, epoch] of stored) {
      const isKnown = this.#asking.has(name) || [...this.#held].some((one) => one.name === name)
      if (!isKnown) await this.#store.release(name, this.owner, epoch)
    }
  }

  #lose(held: Held): void {
    this.#held.delete(held)
    held.lost.abort()
  }
}

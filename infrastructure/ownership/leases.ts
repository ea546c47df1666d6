import type { Pool } from 'pg'
import { Heartbeat } from '../../application/followers/heartbeat.ts'
import type { Lease, LeaseStore, Leases } from '../../application/ports/leases.ts'
import { isGone } from './owner-session.ts'

/** Leases in the table `runtime.leases`, timed by the database's clock; see owner-session.ts for owners that are gone. */
export class PostgresLeaseStore implements LeaseStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async acquire(name: string, owner: string, ttlMs: number): Promise<{ epoch: number } | null> {
    const result = await this.#pool.query<{ epoch: string }>({
      name: 'leases/acquire',
      text: `INSERT INTO runtime.leases AS held (name, owner, epoch, expires_at)
             VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
             ON CONFLICT (name) DO UPDATE
               SET owner = excluded.owner, epoch = held.epoch + 1, expires_at = excluded.expires_at
               WHERE held.expires_at <= clock_timestamp() OR held.owner = excluded.owner
                 OR ${isGone('held.owner')} AND NOT ${isGone('excluded.owner')}
             RETURNING epoch`,
      values: [name, owner, ttlMs],
    })
    const row = result.rows[0]
    return row ? { epoch: Number(row.epoch) } : null
  }

  async renewAll(
    owner: string,
    names: readonly string[],
    ttlMs: number,
  ): Promise<ReadonlyMap<string, number>> {
    const result = await this.#pool.query<{ name: string; epoch: string }>({
      name: 'leases/renew-all',
      text: `UPDATE runtime.leases SET expires_at = clock_timestamp() + $3 * interval '1 millisecond'
             WHERE owner = $1 AND name = ANY($2) RETURNING name, epoch`,
      values: [owner, names, ttlMs],
    })
    return new Map(result.rows.map((row) => [row.name, Number(row.epoch)]))
  }

  async release(name: string, owner: string, epoch: number): Promise<void> {
    // the row stays with nobody as owner, so that epochs go on growing
    await this.#pool.query({
      name: 'leases/release',
      text: `UPDATE runtime.leases SET owner = '', expires_at = clock_timestamp()
             WHERE name = $1 AND owner = $2 AND epoch = $3`,
      values: [name, owner, epoch],
    })
  }

  async holders(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const result = await this.#pool.query<{ name: string; owner: string }>({
      name: 'leases/holders',
      text: `SELECT name, owner FROM runtime.leases
             WHERE name = ANY($1) AND owner <> '' AND expires_at > clock_timestamp()
               AND NOT ${isGone('leases.owner')}`,
      values: [names],
    })
    return new Map(result.rows.map((row) => [row.name, row.owner]))
  }
}

interface Held {
  readonly name: string
  readonly epoch: number
  readonly lost: AbortController
}

/** The leases of one process, renewed together: see {@link Heartbeat} for when one counts as lost. */
export class HeldLeases implements Leases {
  readonly owner: string
  readonly #store: LeaseStore
  readonly #ttlMs: number
  readonly #heartbeat: Heartbeat<Held>

  /**
   * @param options.owner unique per start of a process, not per machine.
   * @param options.ttlMs real milliseconds without renewal after which others may take over, default 10 s.
   */
  constructor(store: LeaseStore, { owner, ttlMs = 10_000 }: { owner: string; ttlMs?: number }) {
    this.#store = store
    this.owner = owner
    this.#ttlMs = ttlMs
    this.#heartbeat = new Heartbeat<Held>({
      ttlMs,
      renew: async (all) => {
        const names = all.map(({ name }) => name)
        const mine = await store.renewAll(owner, names, ttlMs)
        return ({ name, epoch }) => mine.get(name) === epoch
      },
      lost: ({ lost }) => lost.abort(),
    })
  }

  async acquire(name: string): Promise<Lease | null> {
    const askedAt = performance.now()
    const acquired = await this.#store.acquire(name, this.owner, this.#ttlMs)
    if (!acquired) return null
    const { epoch } = acquired
    const held: Held = { name, epoch, lost: new AbortController() }
    this.#heartbeat.keep(held, askedAt)
    return {
      name,
      epoch,
      lost: held.lost.signal,
      release: async () => {
        this.#heartbeat.drop(held)
        held.lost.abort()
        await this.#store.release(name, this.owner, epoch)
      },
    }
  }

  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#store.holders(names)
  }
}

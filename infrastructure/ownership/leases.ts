import type { Pool } from 'pg'
import type { Lease, LeaseStore, Leases } from '../../application/ports/leases.ts'
import { isGone } from './owner-session.ts'

/** Leases in the table `runtime.leases`, timed by the database's clock; see owner-session.ts for owners that are gone. */
export class PostgresLeaseStore implements LeaseStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async acquire(
    name: string,
    owner: string,
    ttlMs: number,
    options: { takeOver?: boolean } = {},
  ): Promise<{ epoch: number } | null> {
    const result = await this.#pool.query<{ epoch: string }>({
      name: 'leases/acquire',
      text: `INSERT INTO runtime.leases AS held (name, owner, epoch, expires_at)
             VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
             ON CONFLICT (name) DO UPDATE
               SET owner = excluded.owner, epoch = held.epoch + 1, expires_at = excluded.expires_at
               WHERE held.expires_at <= clock_timestamp() OR held.owner = excluded.owner OR $4
                 OR ${isGone('held.owner')} AND NOT ${isGone('excluded.owner')}
             RETURNING epoch`,
      values: [name, owner, ttlMs, options.takeOver ?? false],
    })
    const row = result.rows[0]
    return row ? { epoch: Number(row.epoch) } : null
  }

  async renew(name: string, owner: string, epoch: number, ttlMs: number): Promise<boolean> {
    const result = await this.#pool.query({
      name: 'leases/renew',
      text: `UPDATE runtime.leases SET expires_at = clock_timestamp() + $4 * interval '1 millisecond'
             WHERE name = $1 AND owner = $2 AND epoch = $3`,
      values: [name, owner, epoch, ttlMs],
    })
    return result.rowCount === 1
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
  readonly epoch: number
  readonly lost: AbortController
}

/**
 * The leases of one process. One timer renews them all in one statement; a lease that the store no
 * longer shows as this owner's, or that could not be renewed for its whole time to live, is lost.
 */
export class HeldLeases implements Leases {
  readonly owner: string
  readonly #store: LeaseStore
  readonly #ttlMs: number
  readonly #held = new Map<string, Held>()
  #timer: NodeJS.Timeout | null = null
  #renewing = false
  #renewedAt = 0

  /**
   * @param options.owner unique per start of a process, not per machine.
   * @param options.ttlMs real milliseconds without renewal after which others may take over, default 10 s.
   */
  constructor(store: LeaseStore, options: { owner: string; ttlMs?: number }) {
    this.#store = store
    this.owner = options.owner
    this.#ttlMs = options.ttlMs ?? 10_000
  }

  async acquire(name: string, options: { takeOver?: boolean } = {}): Promise<Lease | null> {
    const askedAt = performance.now()
    const acquired = await this.#store.acquire(name, this.owner, this.#ttlMs, options)
    if (!acquired) return null
    this.#held.get(name)?.lost.abort()
    const held: Held = { epoch: acquired.epoch, lost: new AbortController() }
    if (this.#held.size === 0) this.#renewedAt = askedAt
    this.#held.set(name, held)
    this.#timer ??= this.#start()
    return {
      name,
      epoch: held.epoch,
      lost: held.lost.signal,
      release: async () => {
        if (this.#held.get(name) === held) this.#held.delete(name)
        this.#stopWhenIdle()
        held.lost.abort()
        await this.#store.release(name, this.owner, held.epoch)
      },
    }
  }

  holders(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#store.holders(names)
  }

  #start(): NodeJS.Timeout {
    const timer = setInterval(() => void this.#beat(), this.#ttlMs / 4)
    timer.unref()
    return timer
  }

  async #beat(): Promise<void> {
    if (performance.now() - this.#renewedAt > this.#ttlMs) this.#lose([...this.#held.keys()])
    if (this.#renewing || this.#held.size === 0) return
    this.#renewing = true
    try {
      const before = new Map(this.#held)
      const askedAt = performance.now()
      const mine = await this.#store.renewAll(this.owner, [...before.keys()], this.#ttlMs)
      this.#renewedAt = askedAt
      this.#lose(
        [...before]
          .filter(([name, held]) => mine.get(name) !== held.epoch && this.#held.get(name) === held)
          .map(([name]) => name),
      )
    } catch {
      // the database is away: the leases run out by themselves when it stays away
    } finally {
      this.#renewing = false
    }
  }

  #lose(names: readonly string[]): void {
    for (const name of names) {
      this.#held.get(name)?.lost.abort()
      this.#held.delete(name)
    }
    this.#stopWhenIdle()
  }

  #stopWhenIdle(): void {
    if (this.#held.size > 0 || !this.#timer) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

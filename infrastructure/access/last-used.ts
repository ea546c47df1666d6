import type pg from 'pg'
import type { LastUsed } from '../../application/ports/last-used.ts'

/** Milliseconds between writes: at most four a second, however busy the service is. */
const WRITE_INTERVAL_MS = 250

const WRITE = `
  INSERT INTO runtime.last_used AS present (credential_id, at_ms)
  SELECT credential_id, at_ms FROM unnest($1::text[], $2::bigint[]) AS used (credential_id, at_ms)
  ON CONFLICT (credential_id) DO UPDATE SET at_ms = excluded.at_ms WHERE present.at_ms < excluded.at_ms`

/** Last uses in PostgreSQL, collected in memory and written in the background, many in one statement. */
export class PostgresLastUsed implements LastUsed {
  readonly #pool: pg.Pool
  readonly #onError: (error: unknown) => void
  /** Noted and not yet known to be written. */
  readonly #unwritten = new Map<string, number>()
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> = Promise.resolve()
  #closed = false

  /** @param onError hears of a failed write; its uses are written with the next one. */
  constructor(pool: pg.Pool, onError: (error: unknown) => void = () => undefined) {
    this.#pool = pool
    this.#onError = onError
  }

  touch(credentialId: string, epochMs: number): void {
    const noted = this.#unwritten.get(credentialId)
    if (noted === undefined || noted < epochMs) this.#unwritten.set(credentialId, epochMs)
    this.#schedule()
  }

  async of(credentialIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const used = new Map<string, number>()
    if (credentialIds.length === 0) return used
    // noted before the table is read: a write that ends meanwhile takes its uses out of memory
    const noted = credentialIds.map((id) => [id, this.#unwritten.get(id)] as const)
    const { rows } = await this.#pool.query<{ id: string; at: number }>({
      name: 'last-used/of',
      text: `SELECT credential_id AS id, at_ms::float8 AS at FROM runtime.last_used
             WHERE credential_id = ANY ($1::text[])`,
      values: [credentialIds],
    })
    for (const { id, at } of rows) used.set(id, at)
    for (const [id, at] of noted) {
      if (at !== undefined && at > (used.get(id) ?? Number.NEGATIVE_INFINITY)) used.set(id, at)
    }
    return used
  }

  /** Writes what is noted. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  /** Writes what is noted and stops; to be called before the pool ends. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    await this.flush()
  }

  #schedule(): void {
    if (this.#timer || this.#closed) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.flush()
    }, WRITE_INTERVAL_MS)
    this.#timer.unref()
  }

  async #write(): Promise<void> {
    const uses = [...this.#unwritten].sort(([left], [right]) => (left < right ? -1 : 1))
    if (uses.length === 0) return
    try {
      await this.#pool.query({
        name: 'last-used/write',
        text: WRITE,
        values: [uses.map(([id]) => id), uses.map(([, at]) => at)],
      })
      for (const [id, at] of uses) if (this.#unwritten.get(id) === at) this.#unwritten.delete(id)
    } catch (error) {
      this.#onError(error)
      this.#schedule()
    }
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { FaultMode, FaultPoint, Faults } from '../../application/ports/faults.ts'
import type { Notices } from '../../application/ports/notices.ts'

/** How often whoever waits for a hold to be cleared looks by itself, in milliseconds. */
const LOOK_AGAIN_MS = 250

/**
 * Faults of all processes that share a database, in the table `runtime.faults`. A `hold` stands until
 * it is cleared or replaced, however often it is met; the other modes are used up. Every use asks
 * the database, unless this process is alone and knows.
 */
export class PostgresFaults implements Faults {
  readonly #pool: Pool
  readonly #notices: Notices
  readonly #isAlone: () => boolean
  /** What is set, as far as this process knows; the truth while it is alone. */
  readonly #known = new Map<FaultPoint, FaultMode>()

  private constructor(pool: Pool, notices: Notices, isAlone: () => boolean) {
    this.#pool = pool
    this.#notices = notices
    this.#isAlone = isAlone
  }

  /**
   * @param isAlone true while it is certain that no other process shares the database; may turn false at any time,
   *   never back. A process that starts alone clears what another one left behind.
   */
  static async open(pool: Pool, notices: Notices, isAlone: () => boolean): Promise<PostgresFaults> {
    if (isAlone()) await pool.query('DELETE FROM runtime.faults')
    return new PostgresFaults(pool, notices, isAlone)
  }

  async inject(point: FaultPoint, mode: FaultMode, times: number): Promise<void> {
    if (times > 0) {
      await this.#pool.query({
        name: 'faults/inject',
        text: `INSERT INTO runtime.faults (point, mode, times) VALUES ($1, $2, $3)
               ON CONFLICT (point) DO UPDATE SET mode = excluded.mode, times = excluded.times`,
        values: [point, mode, times],
      })
      this.#known.set(point, mode)
    } else {
      await this.#pool.query({
        name: 'faults/clear',
        text: 'DELETE FROM runtime.faults WHERE point = $1',
        values: [point],
      })
      this.#known.delete(point)
    }
    // what was held may go on
    this.#notices.wake('work')
  }

  async take(point: FaultPoint, modes: readonly FaultMode[]): Promise<FaultMode | null> {
    if (this.#isAlone() && !modes.includes(this.#known.get(point)!)) return null
    if (modes.includes('hold') && (await this.holding(point))) return 'hold'
    // used up, the row stays with nothing left: who comes second counts on from what the first left
    const result = await this.#pool.query<{ mode: FaultMode; times: number }>({
      name: 'faults/take',
      text: `UPDATE runtime.faults SET times = times - 1
             WHERE point = $1 AND mode = ANY($2) AND mode <> 'hold' AND times > 0 RETURNING mode, times`,
      values: [point, modes],
    })
    const taken = result.rows[0]
    if (!taken) return null
    if (taken.times === 0) this.#known.delete(point)
    return taken.mode
  }

  async holds(): Promise<readonly FaultPoint[]> {
    if (this.#isAlone()) return [...this.#known].flatMap(([point, mode]) => (mode === 'hold' ? [point] : []))
    const result = await this.#pool.query<{ point: FaultPoint }>({
      name: 'faults/holds',
      text: `SELECT point FROM runtime.faults WHERE mode = 'hold'`,
    })
    return result.rows.map((row) => row.point)
  }

  async holding(point: FaultPoint): Promise<boolean> {
    return (await this.holds()).includes(point)
  }

  /** @throws the signal's reason when it aborts first. */
  async released(point: FaultPoint, signal?: AbortSignal): Promise<void> {
    while (await this.holding(point)) {
      signal?.throwIfAborted()
      const woken = new AbortController()
      const wake = () => woken.abort()
      const stopListening = this.#notices.onWake('work', wake)
      signal?.addEventListener('abort', wake, { once: true })
      await delay(LOOK_AGAIN_MS, null, { signal: woken.signal }).catch(() => undefined)
      signal?.removeEventListener('abort', wake)
      stopListening()
      signal?.throwIfAborted()
    }
  }
}

import type { ClientBase } from 'pg'
import type { FaultMode, FaultPoint, Faults } from '../../application/ports/faults.ts'
import type { Notices } from '../../application/ports/notices.ts'
import type { Database } from '../database/database.ts'

/**
 * Faults of all processes that share a database, in the table `runtime.faults`. A `hold` stands until
 * it is cleared or replaced, however often it is met; the other modes are used up. Every use asks
 * the database, unless this process is alone and knows.
 */
export class PostgresFaults implements Faults {
  readonly #database: Pick<Database, 'pool' | 'transaction'>
  readonly #notices: Notices
  readonly #isAlone: () => boolean
  /** What is set, as far as this process knows; the truth while it is alone. */
  readonly #known = new Map<FaultPoint, FaultMode>()

  private constructor(
    database: Pick<Database, 'pool' | 'transaction'>,
    notices: Notices,
    isAlone: () => boolean,
  ) {
    this.#database = database
    this.#notices = notices
    this.#isAlone = isAlone
  }

  /**
   * @param isAlone true while it is certain that no other process shares the database; may turn false at any time,
   *   never back. A process that starts alone clears what another one left behind.
   */
  static async open(
    database: Pick<Database, 'pool' | 'transaction'>,
    notices: Notices,
    isAlone: () => boolean,
  ): Promise<PostgresFaults> {
    if (isAlone()) await PostgresFaults.clear(database)
    return new PostgresFaults(database, notices, isAlone)
  }

  /** Clears what was set in an earlier time. */
  static async clear(database: Pick<Database, 'transaction'>): Promise<void> {
    await database.transaction(async (client) => {
      await client.query('DELETE FROM runtime.faults')
      await release(client, null)
    })
  }

  async inject(point: FaultPoint, mode: FaultMode, times: number): Promise<void> {
    await this.#database.transaction(async (client) => {
      if (times > 0) {
        await client.query(
          `INSERT INTO runtime.faults (point, mode, times) VALUES ($1, $2, $3)
           ON CONFLICT (point) DO UPDATE SET mode = excluded.mode, times = excluded.times`,
          [point, mode, times],
        )
      } else await client.query('DELETE FROM runtime.faults WHERE point = $1', [point])
      // after that: a process that was about to hold its work has done so, or finds the hold cleared
      if (times === 0 || mode !== 'hold') await release(client, point)
    })
    if (times > 0) this.#known.set(point, mode)
    else this.#known.delete(point)
    this.#notices.wake('work')
  }

  async take(point: FaultPoint, modes: readonly FaultMode[]): Promise<FaultMode | null> {
    if (this.#isAlone() && !modes.includes(this.#known.get(point)!)) return null
    if (modes.includes('hold') && (await this.holding(point))) return 'hold'
    // used up, the row stays with 0: the next one counts on from there
    const result = await this.#database.pool.query<{ mode: FaultMode; times: number }>({
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

  async holding(point: FaultPoint): Promise<boolean> {
    if (this.#isAlone()) return this.#known.get(point) === 'hold'
    const result = await this.#database.pool.query({
      name: 'faults/holding',
      text: `SELECT FROM runtime.faults WHERE point = $1 AND mode = 'hold'`,
      values: [point],
    })
    return result.rowCount === 1
  }
}

/** Work held at a point, or at any, is due. */
async function release(client: ClientBase, point: FaultPoint | null): Promise<void> {
  await client.query(
    `UPDATE runtime.work SET state = 'due', held_at = NULL
     WHERE state = 'held' AND ($1::text IS NULL OR held_at = $1)`,
    [point],
  )
}

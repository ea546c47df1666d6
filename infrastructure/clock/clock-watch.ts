import type { Pool } from 'pg'
import { CLOCK_SKEW_LIMIT_MS } from '../../domain/operations/process-clock.ts'

const LOOK_EVERY_MS = 30_000

interface Parts {
  readonly pool: Pool
  /** Told of each measurement, in milliseconds ahead of the database's clock; null where it does not answer. */
  readonly measured: (skewMs: number | null) => void
  /** Told of a clock that differs, until it does not. @returns whether it still does. */
  readonly differs: (skewMs: number) => Promise<boolean>
  readonly failed: (error: unknown) => void
  /** This machine's clock, epoch milliseconds. */
  readonly now?: () => number
}

/** Compares this machine's clock with the database's, which times leases and retries for all processes. */
export class ClockWatch {
  readonly #parts: Parts
  readonly #timer: NodeJS.Timeout
  #differs = false
  #underWay: Promise<void> | null = null

  /** Looks now and every half minute, until {@link stop}. */
  constructor(parts: Parts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.look(), LOOK_EVERY_MS)
    this.#timer.unref()
    void this.look()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Compares them now; a call while a look is under way shares it, so that no late answer overtakes a newer one. */
  look(): Promise<void> {
    this.#underWay ??= this.#look().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  async #look(): Promise<void> {
    const { measured, differs, failed } = this.#parts
    let skew: number | null = null
    try {
      skew = await this.#skew()
      if (this.#differs || Math.abs(skew) > CLOCK_SKEW_LIMIT_MS) this.#differs = await differs(skew)
    } catch (error) {
      failed(error)
    }
    // it was measured, also where nobody could be called
    measured(skew)
  }

  /** The least difference that explains what was seen: an answer that takes long tells nothing of the clocks. */
  async #skew(): Promise<number> {
    const { pool, now = Date.now } = this.#parts
    const before = now()
    const { rows } = await pool.query<{ ms: string }>(
      'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms',
    )
    const theirs = Number(rows[0]!.ms)
    return Math.max(0, before - theirs) + Math.min(0, now() - theirs)
  }
}

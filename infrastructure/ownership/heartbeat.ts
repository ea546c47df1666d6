import { setImmediate as turn } from 'node:timers/promises'

/**
 * Keeps one lease alive: renews it every quarter of its time to live. What the lease still covers is for the store to say,
 * also when its answer comes late: this process may have stood still, or the store, and nobody may have taken anything.
 * Time decides only where a question that was asked after the time ran out stays without an answer.
 */
export class Heartbeat {
  readonly #ttlMs: number
  readonly #renew: () => Promise<void>
  readonly #lapsed: () => void
  readonly #timer: NodeJS.Timeout
  /** When the last renewal that was answered was asked for; null since the lease lapsed. */
  #renewedAt: number | null = performance.now()
  #askedAt: number | null = null

  /**
   * @param ttlMs real milliseconds that the lease lasts without being renewed.
   * @param lapsed hears that others may take the lease for lapsed; must not throw.
   */
  constructor(ttlMs: number, renew: () => Promise<void>, lapsed: () => void) {
    this.#ttlMs = ttlMs
    this.#renew = renew
    this.#lapsed = lapsed
    this.#timer = setInterval(() => void this.#beat(), ttlMs / 4).unref()
  }

  stop(): void {
    this.#renewedAt = null
    clearInterval(this.#timer)
  }

  async #beat(): Promise<void> {
    if (this.#askedAt !== null) {
      // an answer that came while this process stood still is read first
      await turn()
      const now = performance.now()
      if (this.#askedAt !== null) this.#lapseAt(now - this.#askedAt < this.#ttlMs ? this.#askedAt : now)
      return
    }
    const askedAt = performance.now()
    this.#askedAt = askedAt
    try {
      await this.#renew()
      this.#renewedAt = askedAt
    } catch {
      this.#lapseAt(askedAt)
    } finally {
      this.#askedAt = null
    }
    // what has run out meanwhile is asked for once more, at once
    if (this.#hasRunOutAt(performance.now())) await this.#beat()
  }

  #hasRunOutAt(time: number): boolean {
    return this.#renewedAt !== null && time - this.#renewedAt >= this.#ttlMs
  }

  #lapseAt(time: number): void {
    if (!this.#hasRunOutAt(time)) return
    this.#renewedAt = null
    this.#lapsed()
  }
}

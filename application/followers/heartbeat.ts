import { setImmediate as turn } from 'node:timers/promises'

/** What a {@link Heartbeat} keeps. All times are real milliseconds. */
export interface Kept<Held> {
  /** How long what is held lasts without being renewed. */
  readonly ttlMs: number
  /** Renews it all at once. @returns whether something of it still stands, by the store's own account. */
  readonly renew: (held: readonly Held[]) => Promise<(held: Held) => boolean>
  /** Hears what is held no longer, or may not be. Must not throw. */
  readonly lost: (held: Held) => void
}

/**
 * Renews what a process holds until it is given back. What was lost is for the store to say, also when its answer comes
 * late: this process may have stood still, or the store, and nobody may have taken it. Time decides only where a question
 * that was asked after the time ran out stays without an answer. Writes are fenced by what is stored in any case.
 */
export class Heartbeat<Held> {
  readonly #kept: Kept<Held>
  /** When the last renewal of each was asked for. */
  readonly #renewedAt = new Map<Held, number>()
  #askedAt: number | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(kept: Kept<Held>) {
    this.#kept = kept
  }

  /** @param askedAt when it was asked for, by `performance.now()`: it lasts from then on at the least. */
  keep(held: Held, askedAt: number): void {
    this.#renewedAt.set(held, askedAt)
    this.#timer ??= setInterval(() => void this.#beat(), this.#kept.ttlMs / 4).unref()
  }

  /** Renews it no more: it was given back. */
  drop(held: Held): void {
    this.#renewedAt.delete(held)
    if (this.#renewedAt.size === 0) this.stop()
  }

  /** Renews nothing any more. */
  stop(): void {
    this.#renewedAt.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #beat(): Promise<void> {
    const { ttlMs, renew } = this.#kept
    if (this.#askedAt !== null) {
      // an answer that came while this process stood still is read first
      await turn()
      const now = performance.now()
      if (this.#askedAt !== null) this.#loseRunOutAt(now - this.#askedAt < ttlMs ? this.#askedAt : now)
      return
    }
    const all = [...this.#renewedAt.keys()]
    const askedAt = performance.now()
    this.#askedAt = askedAt
    try {
      const stands = await renew(all)
      for (const held of all) {
        if (!this.#renewedAt.has(held)) continue
        if (stands(held)) this.#renewedAt.set(held, askedAt)
        else this.#lose(held)
      }
    } catch {
      this.#loseRunOutAt(askedAt)
    } finally {
      this.#askedAt = null
    }
    // what has run out meanwhile is asked for once more, at once
    if (this.#runOutAt(performance.now()).length > 0) await this.#beat()
  }

  #runOutAt(time: number): readonly Held[] {
    return [...this.#renewedAt].flatMap(([held, at]) => (time - at >= this.#kept.ttlMs ? [held] : []))
  }

  #loseRunOutAt(time: number): void {
    for (const held of this.#runOutAt(time)) this.#lose(held)
  }

  #lose(held: Held): void {
    this.drop(held)
    this.#kept.lost(held)
  }
}

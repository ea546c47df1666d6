/** How old a sample may be, and how many times as long as it took: taking them is a small part of the time. */
const OLDEST_MS = 5_000
const TIMES_AS_LONG = 20

/** Figures that cost something to take: one is taken at a time, for all requests meanwhile. */
export class Sampled<T> {
  readonly #take: () => Promise<T>
  readonly #oldestMs: number
  #taking: Promise<T> | null = null
  #last: { readonly value: T; readonly goodUntil: number } | null = null

  /** @param oldestMs how old a sample may be, real milliseconds, default 5000; one that was taken fast is renewed sooner. */
  constructor(take: () => Promise<T>, oldestMs = OLDEST_MS) {
    this.#take = take
    this.#oldestMs = oldestMs
  }

  /** @throws what taking it failed by. */
  async get(): Promise<T> {
    if (this.#last && performance.now() < this.#last.goodUntil) return this.#last.value
    this.#taking ??= this.#renew().finally(() => {
      this.#taking = null
    })
    return this.#taking
  }

  async #renew(): Promise<T> {
    const begun = performance.now()
    const value = await this.#take()
    const now = performance.now()
    // as old as its first figure
    this.#last = {
      value,
      goodUntil: begun + Math.min(this.#oldestMs, TIMES_AS_LONG * (now - begun)),
    }
    return value
  }
}

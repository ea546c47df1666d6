/** Runs work on the same thing one after the other in this process, so that concurrent requests meet no conflicts. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs when all earlier work on the same key has ended, however it ended. */
  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key)
    const own = before ? before.then(work, work) : work()
    this.#last.set(key, own)
    try {
      return await own
    } finally {
      if (this.#last.get(key) === own) this.#last.delete(key)
    }
  }

  /** Resolves when no turn is under way. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values())
  }
}

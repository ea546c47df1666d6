interface Waiting {
  readonly position: bigint
  readonly resolve: (reached: boolean) => void
}

/** Whoever waits for a projection in this process is woken right after the write it waits for. */
export class Progress {
  #reached: bigint
  #closed = false
  #waiting: Waiting[] = []

  constructor(reached: bigint) {
    this.#reached = reached
  }

  get reached(): bigint {
    return this.#reached
  }

  advance(position: bigint): void {
    if (position <= this.#reached) return
    this.#reached = position
    if (this.#waiting.length === 0) return
    const still: Waiting[] = []
    for (const waiting of this.#waiting) {
      if (waiting.position <= position) waiting.resolve(true)
      else still.push(waiting)
    }
    this.#waiting = still
  }

  /** Ends all waits: the projection is no longer run by this process. */
  close(): void {
    this.#closed = true
    for (const waiting of this.#waiting) waiting.resolve(false)
    this.#waiting = []
  }

  /** @returns false when the time ran out first, or this process no longer runs the projection. */
  waitFor(position: bigint, timeoutMs: number): Promise<boolean> {
    if (position <= this.#reached) return Promise.resolve(true)
    if (this.#closed) return Promise.resolve(false)
    return new Promise((resolve) => {
      const waiting = {
        position,
        resolve: (reached: boolean) => {
          clearTimeout(timer)
          resolve(reached)
        },
      }
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting)
        resolve(false)
      }, timeoutMs)
      this.#waiting.push(waiting)
    })
  }
}

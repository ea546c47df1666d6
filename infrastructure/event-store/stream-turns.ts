/** Appends to one stream take turns, in their order; those to different streams go on at once. */
export class StreamTurns {
  /** For streams at which it is somebody's turn: those behind him. */
  readonly #lines = new Map<string, (() => void)[]>()
  readonly #idle: (() => void)[] = []

  /** Calls `begin` when its turn comes: at once, or when all before it have left. */
  enter(stream: string, begin: () => void): void {
    const line = this.#lines.get(stream)
    if (line) {
      line.push(begin)
      return
    }
    this.#lines.set(stream, [])
    begin()
  }

  /** Ends the turn at a stream. */
  leave(stream: string): void {
    const next = this.#lines.get(stream)?.shift()
    if (next) {
      next()
      return
    }
    this.#lines.delete(stream)
    if (this.#lines.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Resolves when it is nobody's turn. */
  async idle(): Promise<void> {
    if (this.#lines.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }
}

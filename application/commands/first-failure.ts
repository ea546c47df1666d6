/** What goes wrong with one of many: it holds up no other, and is thrown once they are done. */
export class FirstFailure {
  #first: { readonly error: unknown } | null = null

  /** @returns what it came to; null where it went wrong. */
  async unlessFailing<Result>(run: () => Promise<Result>): Promise<Result | null> {
    try {
      return await run()
    } catch (error) {
      this.#first ??= { error }
      return null
    }
  }

  /** @throws what went wrong first, if anything did. */
  throwIfAny(): void {
    if (this.#first !== null) throw this.#first.error
  }
}

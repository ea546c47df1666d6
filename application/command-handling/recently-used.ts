/** A bounded map that forgets what was not used for the longest time. */
export class RecentlyUsed<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #limit: number

  /** @param limit entries at the most. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      // a map iterates in insertion order: inserting again makes it the youngest
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.#limit) this.#entries.delete(this.#entries.keys().next().value as Key)
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }
}

/**
 * A bounded map that keeps what was used lately: at least the last half of its limit, at most the limit.
 * Two halves, of which the older is dropped as a whole: taking single oldest entries out of a large
 * map costs a walk over the places of those taken before.
 */
export class RecentlyUsed<Key, Value> {
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()
  readonly #half: number

  /** @param limit entries at the most. */
  constructor(limit: number) {
    this.#half = Math.ceil(limit / 2)
  }

  get(key: Key): Value | undefined {
    const value = this.#young.get(key)
    if (value !== undefined) return value
    const aged = this.#old.get(key)
    if (aged !== undefined) this.set(key, aged)
    return aged
  }

  set(key: Key, value: Value): void {
    this.#young.set(key, value)
    if (this.#young.size < this.#half) return
    this.#old = this.#young
    this.#young = new Map()
  }

  delete(key: Key): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}

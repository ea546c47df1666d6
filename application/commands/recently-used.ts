/**
 * A bounded map that keeps what was used lately: at least the last half of its limit, and less than one and a half times
 * the limit, since an entry comes in before others go; beside that one entry that weighs more than half of the limit and
 * would push out all others: the last one that was set.
 * Two halves, of which the older is dropped as a whole: taking single oldest entries out of a large
 * map costs a walk over the places of those taken before.
 */
export class RecentlyUsed<Key, Value> {
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()
  #weight = 0
  #heavy: { readonly key: Key; readonly value: Value } | undefined
  readonly #half: number
  readonly #weigh: (value: Value, key: Key) => number

  /**
   * @param limit weight of all entries, about.
   * @param weigh what an entry weighs, always the same; default each 1.
   */
  constructor(limit: number, weigh: (value: Value, key: Key) => number = () => 1) {
    this.#half = Math.ceil(limit / 2)
    this.#weigh = weigh
  }

  get(key: Key): Value | undefined {
    if (this.#heavy?.key === key) return this.#heavy.value
    const value = this.#young.get(key)
    if (value !== undefined) return value
    const aged = this.#old.get(key)
    if (aged !== undefined) this.set(key, aged)
    return aged
  }

  set(key: Key, value: Value): void {
    const weight = this.#weigh(value, key)
    if (weight > this.#half) {
      this.delete(key)
      this.#heavy = { key, value }
      return
    }
    if (this.#heavy?.key === key) this.#heavy = undefined
    this.#forget(key)
    this.#young.set(key, value)
    this.#weight += weight
    if (this.#weight < this.#half) return
    this.#old = this.#young
    this.#young = new Map()
    this.#weight = 0
  }

  delete(key: Key): void {
    if (this.#heavy?.key === key) this.#heavy = undefined
    this.#forget(key)
    this.#old.delete(key)
  }

  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
    this.#heavy = undefined
    this.#weight = 0
  }

  #forget(key: Key): void {
    const value = this.#young.get(key)
    if (value === undefined) return
    this.#young.delete(key)
    this.#weight -= this.#weigh(value, key)
  }
}

import type { SlotsPerKey } from './process-manager.ts'
import type { ClaimedWork, WorkToStore } from './work-store.ts'

/** Work that is done within so many milliseconds is quick. */
const QUICK_MS = 1_000
/** Keys that have grown and have nothing to do are remembered up to this number. */
const REMEMBERED = 1_000

/** What a piece of work is counted by. */
export type Keyed = Pick<WorkToStore, 'concurrencyKey' | 'payload' | 'tenantId'>

/** The slots that the keys of one kind of work have in this process. */
export class KeySlots {
  readonly #declared: SlotsPerKey
  readonly #taken = new Map<string, number>()
  /** Slots of keys that have grown, those that grew last behind. */
  readonly #grown = new Map<string, number>()
  readonly #sharing = new Map<string, number>()
  /** What a key shares with others, while any of its work is known. */
  readonly #shares = new Map<string, readonly string[]>()
  /** Keys whose work has to wait because what they share is full, the one that waits longest first. */
  readonly #waiting = new Map<string, readonly string[]>()
  /** Keys of which something that is due may have been left behind, by claims or as it was stored. */
  readonly #passed = new Set<string>()

  constructor(declared: SlotsPerKey) {
    this.#declared = declared
  }

  /** Takes a slot. @returns whether there was one; else its key waits until what it shares has room. */
  take({ concurrencyKey: key = '', payload, tenantId }: Keyed): boolean {
    const { growth } = this.#declared
    if (growth) {
      const shares = this.#shares.get(key) ?? growth.shared.of(payload, tenantId)
      if (shares.some((shared) => this.#leftOf(shared) <= 0)) {
        if (!this.#waiting.has(key)) this.#waiting.set(key, shares)
        return false
      }
      this.#shares.set(key, shares)
      for (const shared of shares) add(this.#sharing, shared, 1)
    }
    add(this.#taken, key, 1)
    return true
  }

  /** Takes a slot for what no claim has counted. @returns whether there was one. */
  reserve(piece: Keyed): boolean {
    const { concurrencyKey: key = '' } = piece
    if (this.#ownLeft(key) > 0) return this.take(piece)
    this.#passed.add(key)
    return false
  }

  /** What a claim brought that counted `busy`. @param hasSeenAll whether nothing else is due, unless its key got all it might. */
  claimed(claims: readonly ClaimedWork[], busy: ReadonlyMap<string, number>, hasSeenAll: boolean): void {
    const used = new Map(busy)
    for (const { concurrencyKey: key } of claims) used.set(key, (used.get(key) ?? 0) + 1)
    if (hasSeenAll) this.#passed.clear()
    for (const [key, count] of used) {
      if (!hasSeenAll || count >= this.#declared.slots) this.#passed.add(key)
    }
  }

  /**
   * Gives a slot back.
   * @param done whether the work was done; null when nothing can be said of it.
   * @param ms how long it took.
   * @param isAsked whether a claim is under way.
   * @returns how many pieces may wait for that, and for the slot by which its key has grown.
   */
  free({ concurrencyKey: key = '' }: Keyed, done: boolean | null, ms: number, isAsked = true): number {
    add(this.#taken, key, -1)
    for (const shared of this.#shares.get(key) ?? []) add(this.#sharing, shared, -1)
    const grew = done !== null && this.#grow(key, done && ms < QUICK_MS)
    if (!this.#taken.has(key) && !this.#grown.has(key)) this.#shares.delete(key)
    if (!isAsked && this.#waiting.size === 0 && !this.#passed.has(key)) return 0
    return grew ? 2 : 1
  }

  /**
   * What counts against {@link SlotsPerKey.slots} for each key that has not exactly as many left; less than nothing where it
   * has more. What is left of something shared goes to those first who wait for it; a key that is not known yet may take
   * more than that, which {@link take} refuses.
   */
  busy(): ReadonlyMap<string, number> {
    const { slots, growth } = this.#declared
    if (!growth) return new Map(this.#taken)
    const left = new Map<string, number>()
    const leftOf = (shared: string) => left.get(shared) ?? this.#leftOf(shared)
    const busy = new Map<string, number>()
    for (const key of new Set([...this.#waiting.keys(), ...this.#taken.keys(), ...this.#grown.keys()])) {
      const shares = this.#shares.get(key) ?? this.#waiting.get(key) ?? []
      const more = Math.max(0, Math.min(this.#ownLeft(key), ...shares.map(leftOf)))
      // first slots are offered to all keys; the rest goes to keys that have work for it, and others wait
      const first = this.#waiting.has(key)
        ? 0
        : Math.min(slots - (this.#taken.get(key) ?? 0), ...shares.map((shared) => this.#leftOf(shared)))
      busy.set(key, slots - Math.max(more, first))
      if (more === 0) continue
      for (const shared of shares) left.set(shared, leftOf(shared) - more)
      this.#waiting.delete(key)
    }
    return busy
  }

  #ownLeft(key: string): number {
    return Math.max(this.#declared.slots, this.#grown.get(key) ?? 0) - (this.#taken.get(key) ?? 0)
  }

  #leftOf(shared: string): number {
    return this.#declared.growth!.shared.slots - (this.#sharing.get(shared) ?? 0)
  }

  /** @returns whether the key has more slots than before. */
  #grow(key: string, isQuick: boolean): boolean {
    const { slots, growth } = this.#declared
    if (!growth) return false
    const before = this.#grown.get(key) ?? slots
    this.#grown.delete(key)
    const after = isQuick ? Math.min(growth.upTo, before + 1) : Math.floor(before / 2)
    if (after <= slots) return false
    this.#grown.set(key, after)
    if (this.#grown.size > REMEMBERED) {
      const [oldest] = this.#grown.keys()
      this.#grown.delete(oldest!)
      if (!this.#taken.has(oldest!)) this.#shares.delete(oldest!)
    }
    return after > before
  }
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

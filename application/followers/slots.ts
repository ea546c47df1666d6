import { type Keyed, KeySlots } from './key-slots.ts'
import type { WorkKind } from './process-manager.ts'
import type { ClaimedWork, KindToClaim, WorkToStore } from './work-store.ts'

/** The slots of one kind of work in this process: what is taken, and what is to be claimed next. */
export class KindSlots {
  readonly processManager: string
  readonly kind: string
  readonly declared: WorkKind
  #taken = 0
  readonly #keys: KeySlots | null
  /** How many pieces may be due that no claim has looked for. */
  #wanted = 0
  /** What the claim under way asks for; null: none is. */
  #asked: (KindToClaim & { readonly wanted: number }) | null = null
  /** Keys take turns: the last one that had its turn. */
  #lastKey: string | null = null

  constructor(processManager: string, kind: string, declared: WorkKind) {
    this.processManager = processManager
    this.kind = kind
    this.declared = declared
    this.#keys = declared.perKey ? new KeySlots(declared.perKey) : null
  }

  /** Pieces to claim now. */
  get toClaim(): number {
    return Math.min(this.#free, this.#wanted)
  }

  /** Whether it could do more than is known to be there. */
  get isIdle(): boolean {
    return this.#free > this.#wanted
  }

  get #free(): number {
    return this.declared.slots - this.#taken
  }

  /** A piece is due. */
  hinted(): void {
    this.#wanted += 1
  }

  /** Any number of pieces may have become due. */
  polled(): void {
    this.#wanted = Number.POSITIVE_INFINITY
    this.#asked = null
  }

  /** Takes a slot for a piece that is about to be stored. @returns whether there was one that no other piece may wait for. */
  reserve(piece: WorkToStore): boolean {
    if (!this.declared.isBegunAsStored || piece.isLater) return false
    if (this.#free <= 0 || this.#wanted > 0 || this.#asked) return false
    if (this.#keys && !this.#keys.reserve(piece)) return false
    this.#taken += 1
    return true
  }

  /** The reserved slot of a piece is not used. */
  unreserve(piece: WorkToStore): void {
    this.freeKey(piece, null, 0)
    this.released()
  }

  /** What is to be claimed now; {@link claimed} is told what came of it. */
  request(): KindToClaim {
    const { processManager, kind, declared, toClaim: slots } = this
    const { perKey } = declared
    const ofKeys = perKey && { perKey: perKey.slots, busy: this.#keys!.busy(), after: this.#lastKey }
    this.#asked = { processManager, kind, slots, ...ofKeys, wanted: this.#wanted }
    // what is hinted at from now on may be stored too late for this claim
    this.#wanted = 0
    return this.#asked
  }

  /** Takes slots for what a claim brought. @returns the pieces that have one; the others are to be given back. */
  claimed(claims: readonly ClaimedWork[]): readonly ClaimedWork[] {
    const { slots, wanted, busy } = this.#asked!
    this.#asked = null
    const hasSeenAll = claims.length < slots && this.#lastKey === null
    if (busy) this.#keys!.claimed(claims, busy, hasSeenAll)
    const taken = claims.filter((claim) => this.#keys?.take(claim) ?? true)
    this.#taken += taken.length
    if (!hasSeenAll) this.#wanted += wanted - claims.length
    // behind the last key the first one has its turn again
    this.#lastKey = this.declared.perKey && claims.length === slots ? lastOf(claims) : null
    // what was given back has left its slots to others
    this.#wanted += claims.length - taken.length
    return taken
  }

  /** The slot of a piece's key is free. @param isDone null when nothing can be said of it. @param ms how long it was taken. */
  freeKey(piece: Keyed, isDone: boolean | null, ms: number): void {
    // claims have passed by what waits for this key
    if (this.#keys) this.#wanted += this.#keys.free(piece, isDone, ms, this.#asked !== null)
  }

  /** A piece has ended. */
  released(): void {
    this.#taken -= 1
  }
}

function lastOf(claims: readonly ClaimedWork[]): string | null {
  return claims.reduce<string | null>(
    (last, { concurrencyKey }) => (last === null || concurrencyKey > last ? concurrencyKey : last),
    null,
  )
}

/** What a kind of work is known by among those of all process managers. */
export function kindName(processManager: string, kind: string): string {
  return `${processManager}/${kind}`
}

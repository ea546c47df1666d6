import { KeySlots } from './key-slots.ts'
import type { WorkKind } from './process-manager.ts'
import type { ClaimedWork, KindToClaim } from './work-store.ts'

/** The slots of one kind of work in this process: what is taken, and what is to be claimed next. */
export class KindSlots {
  readonly processManager: string
  readonly kind: string
  readonly declared: WorkKind
  #taken = 0
  readonly #keys: KeySlots | null
  /** How many pieces may be due that no claim has looked for. */
  #wanted = 0
  #asked = { slots: 0, wanted: 0 }
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
  }

  /** What is to be claimed now; {@link claimed} is told what came of it. */
  request(): KindToClaim {
    const { processManager, kind, declared, toClaim: slots } = this
    this.#asked = { slots, wanted: this.#wanted }
    // what is hinted at from now on may be stored too late for this claim
    this.#wanted = 0
    const { perKey } = declared
    return perKey
      ? {
          processManager,
          kind,
          slots,
          perKey: perKey.slots,
          busy: this.#keys!.busy(),
          after: this.#lastKey,
        }
      : { processManager, kind, slots }
  }

  /** Takes slots for what a claim brought. @returns the pieces that have one; the others are to be given back. */
  claimed(claims: readonly ClaimedWork[]): readonly ClaimedWork[] {
    const taken = claims.filter((claim) => this.#keys?.take(claim) ?? true)
    this.#taken += taken.length
    const { slots, wanted } = this.#asked
    const hasSeenAll = claims.length < slots && this.#lastKey === null
    if (!hasSeenAll) this.#wanted += wanted - claims.length
    // behind the last key the first one has its turn again
    this.#lastKey = this.declared.perKey && claims.length === slots ? lastOf(claims) : null
    // what was given back has left its slots to others
    this.#wanted += claims.length - taken.length
    return taken
  }

  /** The slot of a piece's key is free. @param isDone null when nothing can be said of it. @param ms how long it was taken. */
  freeKey(claim: ClaimedWork, isDone: boolean | null, ms: number): void {
    // claims have passed by what waits for this key, or what another claim had locked for its own choice
    if (this.#keys) this.#wanted += this.#keys.free(claim, isDone, ms)
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

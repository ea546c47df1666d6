import type { Notices } from '../../application/ports/notices.ts'
import type { GenerationStore } from './store.ts'

/** Between two looks when no notice comes, growing while nothing moves. */
const LOOK_MS = { first: 4, most: 100 }
/** A look that takes longer is waited for no more; another one is made. */
const LOOK_LIMIT_MS = 5_000
/** What a look has at the least, however short the wait. */
const LEAST_MS = 1_000

interface Waiting {
  readonly name: string
  readonly position: bigint
  readonly deadline: number
  readonly timer: NodeJS.Timeout
  readonly resolve: (reached: boolean) => void
  readonly reject: (error: unknown) => void
}

/**
 * How far projections are, for requests that wait for them. Those that run here report it right after each write. For
 * the others, one look at the stored checkpoints serves all requests that wait at the time; notices say when it is worth
 * looking, and without them it is done anyway.
 */
export class ReachedPositions {
  readonly #store: Pick<GenerationStore, 'positions'>
  readonly #notices: Notices | null
  /** Of the projections that run here. */
  readonly #here = new Map<string, bigint>()
  readonly #waiting = new Map<string, Set<Waiting>>()
  #stopListening: (() => void) | null = null
  #looking = false
  #again = false
  #pause: number = LOOK_MS.first
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<GenerationStore, 'positions'>, notices: Notices | null) {
    this.#store = store
    this.#notices = notices
  }

  /** How far a projection is that runs here, else undefined. */
  here(name: string): bigint | undefined {
    return this.#here.get(name)
  }

  /** A projection that runs here has come to a position. */
  reached(name: string, position: bigint): void {
    this.#here.set(name, position)
    this.#notify(name, position)
  }

  /** A projection does not run here any more: others are asked how far it is. */
  released(name: string): void {
    this.#here.delete(name)
    this.#look()
  }

  /**
   * Where the projection runs elsewhere it looks at least once, however little time there is; a look that does not
   * return has a second for that.
   * @returns false when the time ran out first.
   * @throws what the store throws.
   */
  waitFor(name: string, position: bigint, timeoutMs: number): Promise<boolean> {
    const here = this.#here.get(name)
    if (here !== undefined && here >= position) return Promise.resolve(true)
    return new Promise((resolve, reject) => {
      const limitMs = here === undefined ? Math.max(timeoutMs, LEAST_MS) : timeoutMs
      const waiting: Waiting = {
        name,
        position,
        deadline: performance.now() + timeoutMs,
        resolve,
        reject,
        // a store that is silent must not make the wait longer
        timer: setTimeout(() => this.#end(waiting, () => resolve(false)), limitMs),
      }
      this.#waiting.set(name, (this.#waiting.get(name) ?? new Set()).add(waiting))
      if (here !== undefined) return
      this.#pause = LOOK_MS.first
      this.#look()
    })
  }

  /** Names that requests wait for and other processes run. */
  #elsewhere(): string[] {
    return [...this.#waiting.keys()].filter((name) => !this.#here.has(name))
  }

  #look(): void {
    const names = this.#elsewhere()
    if (names.length === 0) return
    this.#stopListening ??= this.#notices?.onWake('position', () => this.#look()) ?? null
    if (this.#looking) {
      this.#again = true
      return
    }
    this.#looking = true
    this.#again = false
    clearTimeout(this.#timer)
    const asked = names.flatMap((name) => [...this.#waiting.get(name)!])
    let isOver = false
    const over = () => {
      clearTimeout(limit)
      if (!isOver) this.#looked()
      isOver = true
    }
    const limit = setTimeout(over, LOOK_LIMIT_MS)
    this.#store.positions(names).then(
      (positions) => {
        for (const [name, position] of positions) this.#notify(name, position)
        const now = performance.now()
        for (const waiting of asked) {
          if (now >= waiting.deadline) this.#end(waiting, () => waiting.resolve(false))
        }
        over()
      },
      (error) => {
        for (const waiting of asked) this.#end(waiting, () => waiting.reject(error))
        over()
      },
    )
  }

  #looked(): void {
    this.#looking = false
    const names = this.#elsewhere()
    if (names.length === 0) {
      this.#stopListening?.()
      this.#stopListening = null
    } else if (this.#again) this.#look()
    else {
      const deadlines = names.flatMap((name) => [...this.#waiting.get(name)!].map(({ deadline }) => deadline))
      const first = Math.min(...deadlines) - performance.now()
      this.#timer = setTimeout(() => this.#look(), Math.max(0, Math.min(this.#pause, first)))
      this.#pause = Math.min(this.#pause * 2, LOOK_MS.most)
    }
  }

  #notify(name: string, position: bigint): void {
    for (const waiting of this.#waiting.get(name) ?? []) {
      if (waiting.position <= position) this.#end(waiting, () => waiting.resolve(true))
    }
  }

  #end(waiting: Waiting, notify: () => void): void {
    clearTimeout(waiting.timer)
    const others = this.#waiting.get(waiting.name)
    others?.delete(waiting)
    if (others?.size === 0) this.#waiting.delete(waiting.name)
    notify()
  }
}

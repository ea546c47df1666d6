import type { Notices } from '../../application/ports/notices.ts'
import type { ProjectionStore } from './projection-store.ts'
import { elapsed } from './real-time.ts'

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
 * Waits for projections that other processes run. One look at the stored checkpoints serves everybody
 * who waits at the time; notices say when it is worth looking, and without them it is done anyway.
 */
export class RemoteProgress {
  readonly #store: Pick<ProjectionStore, 'positions'>
  readonly #notices: Notices | null
  readonly #waiting = new Set<Waiting>()
  #stopListening: (() => void) | null = null
  #looking = false
  #again = false
  #pause: number = LOOK_MS.first
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<ProjectionStore, 'positions'>, notices: Notices | null) {
    this.#store = store
    this.#notices = notices
  }

  /**
   * Looks at least once, however little time there is; a look that does not return has a second for that.
   * @returns false when the time ran out first.
   * @throws what the store throws.
   */
  waitFor(name: string, position: bigint, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        ...{ name, position, deadline: elapsed() + timeoutMs, resolve, reject },
        // a store that is silent must not make the wait longer
        timer: setTimeout(() => this.#end(waiting, () => resolve(false)), Math.max(timeoutMs, LEAST_MS)),
      }
      this.#waiting.add(waiting)
      this.#stopListening ??= this.#notices?.onWake('position', () => this.#look()) ?? null
      this.#pause = LOOK_MS.first
      this.#look()
    })
  }

  #look(): void {
    if (this.#waiting.size === 0) return
    if (this.#looking) {
      this.#again = true
      return
    }
    this.#looking = true
    this.#again = false
    clearTimeout(this.#timer)
    const asked = [...this.#waiting]
    let isOver = false
    const over = () => {
      clearTimeout(limit)
      if (!isOver) this.#looked()
      isOver = true
    }
    const limit = setTimeout(over, LOOK_LIMIT_MS)
    this.#store.positions([...new Set(asked.map(({ name }) => name))]).then(
      (positions) => {
        this.#seen(asked, positions)
        over()
      },
      (error) => {
        for (const waiting of asked) this.#end(waiting, () => waiting.reject(error))
        over()
      },
    )
  }

  #seen(asked: readonly Waiting[], positions: ReadonlyMap<string, bigint>): void {
    const now = elapsed()
    for (const waiting of asked) {
      const reached = positions.get(waiting.name)
      if (reached !== undefined && reached >= waiting.position)
        this.#end(waiting, () => waiting.resolve(true))
      else if (now >= waiting.deadline) this.#end(waiting, () => waiting.resolve(false))
    }
  }

  #looked(): void {
    this.#looking = false
    if (this.#waiting.size === 0) {
      this.#stopListening?.()
      this.#stopListening = null
    } else if (this.#again) this.#look()
    else {
      const first = Math.min(...[...this.#waiting].map(({ deadline }) => deadline)) - elapsed()
      this.#timer = setTimeout(() => this.#look(), Math.max(0, Math.min(this.#pause, first)))
      this.#pause = Math.min(this.#pause * 2, LOOK_MS.most)
    }
  }

  #end(waiting: Waiting, tell: () => void): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
    tell()
  }
}

import { tooManyRequests } from './errors.ts'

/** Large calls of one credential that are at work at once. */
export const MAX_LARGE_CALLS = 4
/** Real milliseconds that a further one waits for its turn. */
const LARGE_CALL_WAIT_MS = 5_000

interface Places {
  taken: number
  /** Called when a place is handed on, the longest waiting first. */
  readonly waiting: (() => void)[]
}

/** Bounds how many large calls of one credential are at work at once. */
export class LargeCalls {
  readonly #limit: number
  readonly #waitMs: number
  readonly #places = new Map<string, Places>()

  /** @param limit per credential; 0 limits nothing. @param waitMs real milliseconds. */
  constructor(limit: number, waitMs = LARGE_CALL_WAIT_MS) {
    this.#limit = limit
    this.#waitMs = waitMs
  }

  /** Takes a place, or waits for one. @throws HttpError 429 when none became free in time. */
  async enter(credential: string): Promise<void> {
    if (this.#limit === 0) return
    let places = this.#places.get(credential)
    if (!places) {
      places = { taken: 0, waiting: [] }
      this.#places.set(credential, places)
    }
    if (places.taken < this.#limit) {
      places.taken += 1
      return
    }
    const { waiting } = places
    await new Promise<void>((resolve, reject) => {
      const go = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(tooManyRequests(Math.max(1, Math.round(this.#waitMs / 1000)), TOO_MANY_LARGE_CALLS))
      }, this.#waitMs)
      waiting.push(go)
    })
  }

  /** Gives a place back, to who waits for it. */
  leave(credential: string): void {
    const places = this.#places.get(credential)
    if (!places) return
    const next = places.waiting.shift()
    if (next) next()
    else places.taken -= 1
    if (places.taken === 0) this.#places.delete(credential)
  }
}

const TOO_MANY_LARGE_CALLS = `At most ${MAX_LARGE_CALLS} large calls (above 1 MiB or 5,000 rows) are at work at once`

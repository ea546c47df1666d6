import { tooManyRequests } from './errors.ts'

/** Large calls of one credential that are at work at once. */
export const MAX_LARGE_CALLS = 4
/** Real milliseconds that a further one waits for its turn. */
const LARGE_CALL_WAIT_MS = 5_000
const TOO_MANY_LARGE_CALLS = `At most ${MAX_LARGE_CALLS} large calls (above 1 MiB or 5,000 rows) are at work at once`

interface Slots {
  taken: number
  /** Called when a slot is handed on, the longest waiting first. */
  readonly waiting: (() => void)[]
}

/** Bounds how many large calls of one caller are at work at once. */
export class LargeCalls {
  readonly #limit: number
  readonly #waitMs: number
  readonly #slots = new Map<string, Slots>()

  /** @param limit per caller; 0 limits nothing. @param waitMs real milliseconds. */
  constructor(limit: number, waitMs = LARGE_CALL_WAIT_MS) {
    this.#limit = limit
    this.#waitMs = waitMs
  }

  /**
   * Takes a slot, or waits for one.
   * @returns what gives the slot back, to who waits for it.
   * @throws HttpError 429 when none became free in time.
   */
  async acquire(caller: string): Promise<() => void> {
    if (this.#limit === 0) return () => undefined
    let slots = this.#slots.get(caller)
    if (!slots) {
      slots = { taken: 0, waiting: [] }
      this.#slots.set(caller, slots)
    }
    if (slots.taken < this.#limit) slots.taken += 1
    else await this.#turn(slots.waiting)
    return () => this.#release(caller)
  }

  #turn(waiting: (() => void)[]): Promise<void> {
    return new Promise((resolve, reject) => {
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

  #release(caller: string): void {
    const slots = this.#slots.get(caller)
    if (!slots) return
    const next = slots.waiting.shift()
    if (next) next()
    else slots.taken -= 1
    if (slots.taken === 0) this.#slots.delete(caller)
  }
}

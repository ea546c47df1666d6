import { tooManyRequests } from './errors.ts'

interface Slots {
  taken: number
  /** Called when a slot is handed on, the longest waiting first. */
  readonly waiting: (() => void)[]
}

/** Bounds how many calls of one caller are at work at once. */
export class CallSlots {
  readonly #limit: number
  readonly #waitMs: number
  readonly #reason: string
  readonly #slots = new Map<string, Slots>()

  /**
   * @param limit per caller; 0 limits nothing.
   * @param waitMs real milliseconds that a further one waits for its turn.
   * @param reason what one that waited in vain is told.
   */
  constructor(limit: number, waitMs: number, reason: string) {
    this.#limit = limit
    this.#waitMs = waitMs
    this.#reason = reason
  }

  /**
   * Takes a slot, or waits for one.
   * @returns what gives the slot back, to the next call that waits.
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
        reject(tooManyRequests(Math.max(1, Math.round(this.#waitMs / 1000)), this.#reason))
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

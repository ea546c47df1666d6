import type { OfferedWork, TakenOffer, WorkQueue } from '../../../application/ports/work-queue.ts'

/** Offers kept at the most; the store has the others. */
const LIMIT = 10_000

/** The work queue of a process that works alone. */
export class InProcessWorkQueue implements WorkQueue {
  readonly #offers: OfferedWork[] = []
  readonly #waiting = new Set<() => void>()

  async offer(work: readonly OfferedWork[]): Promise<boolean> {
    const fitting = work.slice(0, LIMIT - this.#offers.length)
    this.#offers.push(...fitting)
    for (const wake of [...this.#waiting].slice(0, fitting.length)) wake()
    return fitting.length === work.length
  }

  async next(signal: AbortSignal): Promise<TakenOffer | null> {
    while (!signal.aborted) {
      const work = this.#offers.shift()
      if (work) return { work, acknowledge: () => undefined }
      await new Promise<void>((resolve) => {
        const done = () => {
          this.#waiting.delete(done)
          signal.removeEventListener('abort', done)
          resolve()
        }
        this.#waiting.add(done)
        signal.addEventListener('abort', done)
      })
    }
    return null
  }
}

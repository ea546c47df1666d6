import { EventEmitter, once } from 'node:events'
import type { WorkHint, WorkQueue } from '../../../application/ports/work-queue.ts'

/** Hints kept at the most; polling finds the rest. */
const LIMIT = 10_000

/** The work queue of a process that works alone. */
export class InProcessWorkQueue implements WorkQueue {
  readonly #hints: WorkHint[] = []
  readonly #emitter = new EventEmitter()

  async offer(hints: readonly WorkHint[]): Promise<boolean> {
    const fitting = hints.slice(0, LIMIT - this.#hints.length)
    this.#hints.push(...fitting)
    this.#emitter.emit('offered')
    return fitting.length === hints.length
  }

  async next(signal: AbortSignal): Promise<WorkHint | null> {
    while (!signal.aborted) {
      const hint = this.#hints.shift()
      if (hint) return hint
      await once(this.#emitter, 'offered', { signal }).catch(() => undefined)
    }
    return null
  }
}

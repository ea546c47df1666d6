import type { FaultMode, FaultPoint, Faults } from '../../application/ports/faults.ts'

interface Fault {
  readonly mode: FaultMode
  left: number
}

/**
 * Faults of one process alone. A `hold` stands until it is cleared or replaced, however often it is met;
 * the other modes are used up.
 */
export class InMemoryFaults implements Faults {
  readonly #faults = new Map<FaultPoint, Fault>()
  readonly #waiting = new Map<FaultPoint, Set<() => void>>()

  async inject(point: FaultPoint, mode: FaultMode, times: number): Promise<void> {
    if (times > 0) this.#faults.set(point, { mode, left: times })
    else this.#faults.delete(point)
    if (!this.#holds(point)) this.#release(point)
  }

  async take(point: FaultPoint, modes: readonly FaultMode[]): Promise<FaultMode | null> {
    const fault = this.#faults.get(point)
    if (!fault || !modes.includes(fault.mode)) return null
    if (fault.mode !== 'hold') {
      fault.left -= 1
      if (fault.left <= 0) this.#faults.delete(point)
    }
    return fault.mode
  }

  /** @throws the signal's reason when it aborts first. */
  async released(point: FaultPoint, signal?: AbortSignal): Promise<void> {
    if (!this.#holds(point)) return
    await new Promise<void>((resolve, reject) => {
      signal?.throwIfAborted()
      const waiting = this.#waiting.get(point) ?? new Set()
      this.#waiting.set(point, waiting)
      const aborted = () => {
        waiting.delete(release)
        reject(signal?.reason)
      }
      const release = () => {
        signal?.removeEventListener('abort', aborted)
        resolve()
      }
      signal?.addEventListener('abort', aborted, { once: true })
      waiting.add(release)
    })
  }

  async holds(): Promise<readonly FaultPoint[]> {
    return [...this.#faults.keys()].filter((point) => this.#holds(point))
  }

  async holding(point: FaultPoint): Promise<boolean> {
    return this.#holds(point)
  }

  #holds(point: FaultPoint): boolean {
    return this.#faults.get(point)?.mode === 'hold'
  }

  #release(point: FaultPoint): void {
    const waiting = this.#waiting.get(point)
    this.#waiting.delete(point)
    for (const release of waiting ?? []) release()
  }
}

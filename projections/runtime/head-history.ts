import { elapsed } from './real-time.ts'

const MOST_SAMPLES = 1024

/**
 * When the head of the log was first seen where, in real time: tells how long something has been
 * behind, without trusting any clock that events were stamped with.
 */
export class HeadHistory {
  /** Ascending in position and time. */
  #samples: { readonly head: bigint; readonly at: number }[] = []

  note(head: bigint): void {
    const last = this.#samples.at(-1)
    if (last && head <= last.head) return
    this.#samples.push({ head, at: elapsed() })
    // coarser in the past: every other sample goes, the oldest stays
    if (this.#samples.length > MOST_SAMPLES) {
      this.#samples = this.#samples.filter((_, index) => index % 2 === 0)
    }
  }

  /** Real seconds since the log was first seen beyond a position; 0 when it never was. */
  secondsBehind(position: bigint): number {
    const sample = this.#samples.find((one) => one.head > position)
    return sample ? (elapsed() - sample.at) / 1000 : 0
  }
}

import { recordedAt } from '../../application/commands/event-registry.ts'
import type { Clock } from '../../application/ports/clock.ts'
import type { EventLog } from '../../application/ports/event-log.ts'

const MOST_SAMPLES = 1024

/** How far behind the log something is. */
export interface Lag {
  /** Events of the log that are not applied yet; estimated where positions do not count them. */
  readonly events: number
  /** Real seconds since the oldest of them was recorded; 0 at the head. */
  readonly seconds: number
}

/** Measures how far followers of the log are behind it. */
export class LogLag {
  readonly #log: Pick<EventLog, 'count' | 'readAll'>
  readonly #clock: Clock
  /** When the head was first seen where, in real time; ascending in both. */
  #heads: { readonly head: bigint; readonly at: number }[] = []

  constructor(log: Pick<EventLog, 'count' | 'readAll'>, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** Remembers that the log ends here now. */
  note(head: bigint): void {
    const last = this.#heads.at(-1)
    if (last && head <= last.head) return
    this.#heads.push({ head, at: performance.now() })
    // coarser in the past: every other sample goes, the oldest stays
    if (this.#heads.length > MOST_SAMPLES) this.#heads = this.#heads.filter((_, index) => index % 2 === 0)
  }

  /** The lag of a follower at a position. */
  async at(position: bigint, head: bigint): Promise<Lag> {
    if (position >= head) return { events: 0, seconds: 0 }
    const events = await this.#log.count(position, head)
    // a virtual clock stands still, so that the recorded times say nothing about real time
    if (this.#clock.kind === 'virtual') return { events, seconds: this.#secondsBehind(position) }
    const [oldest] = (await this.#log.readAll({ after: position, maxCount: 1 })).events
    const since = oldest ? recordedAt(oldest) : null
    if (since === null) return { events, seconds: this.#secondsBehind(position) }
    return { events, seconds: Math.max(0, (this.#clock.now() - since) / 1000) }
  }

  /** Real seconds since the log was first seen beyond a position; 0 when it never was. */
  #secondsBehind(position: bigint): number {
    const seen = this.#heads.find(({ head }) => head > position)
    return seen ? (performance.now() - seen.at) / 1000 : 0
  }
}

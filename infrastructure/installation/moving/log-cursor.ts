import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveRefused } from '../../../application/ports/movable-log.ts'

/** Events in one page at the most. */
const PAGE = 1_000

/** Goes through a log from a position to its end. The next page is read while this one is worked on. */
export class LogCursor {
  readonly #log: Pick<MovableLog, 'readPage' | 'isGapless' | 'name'>
  #events: readonly StoredEvent[] = []
  #at = 0
  #last: bigint
  #ahead: Promise<LogPage> | null

  /** @throws MoveRefused, by every call, where positions are left out. */
  constructor(log: Pick<MovableLog, 'readPage' | 'isGapless' | 'name'>, after: bigint) {
    this.#log = log
    this.#last = after
    this.#ahead = this.#read(after)
  }

  /** Makes sure that events are at hand. @returns these; none at the end of the log. */
  async ready(): Promise<readonly StoredEvent[]> {
    while (this.#at === this.#events.length && this.#ahead) {
      const page = await this.#ahead
      this.#events = page.events
      this.#at = 0
      this.#ahead = page.atHead ? null : this.#read(page.checkpoint)
    }
    return this.#events.slice(this.#at)
  }

  /** The next event; only while {@link ready} says so. */
  next(): StoredEvent {
    const event = this.#events[this.#at]!
    if (this.#log.isGapless && event.position !== this.#last + 1n) {
      throw new MoveRefused(
        `Events are missing in ${this.#log.name} between positions ${this.#last} and ${event.position}`,
      )
    }
    this.#last = event.position
    this.#at += 1
    return event
  }

  #read(after: bigint): Promise<LogPage> {
    const page = this.#log.readPage({ after, maxCount: PAGE })
    // its awaiting caller gets the failure; it may be abandoned
    page.catch(() => undefined)
    return page
  }
}

import type { LogPage, StoredEvent } from '../../application/ports/event-log.ts'

const MAX_EVENTS = 8192
/** Of JSON text; what it is decoded to, which readers keep with the events, takes several times as much. */
const MAX_BYTES = 8 * 1024 * 1024

/**
 * The youngest stretch of the log in memory, without gaps. Every subscriber that has caught up reads from here, so
 * that an event is read and decoded once per process. What this process appends enters directly; what others append
 * is read behind them. It is bounded: a subscriber that falls behind reads the database again.
 */
export class LiveFeed {
  readonly #read: (after: bigint) => Promise<LogPage>
  /** The stretch: all events with #from < position <= #to. */
  #events: StoredEvent[] = []
  /** Index of the first event of the stretch; those before are forgotten. */
  #first = 0
  #bytes = 0
  #from: bigint
  #to: bigint
  /** The log is known to reach at least to here. */
  #known: bigint
  #reading = false
  #closed = false
  readonly #waiting = new Set<() => void>()

  /**
   * @param head position where the stretch begins.
   * @param read reads a page of the log; it is called again until it succeeds, so it should pause on failure.
   */
  constructor(head: bigint, read: (after: bigint) => Promise<LogPage>) {
    this.#from = head
    this.#to = head
    this.#known = head
    this.#read = read
  }

  /** Position where the stretch ends. */
  get to(): bigint {
    return this.#to
  }

  /** How many events it holds after a position; undefined when it begins later. */
  countAfter(position: bigint): number | undefined {
    if (position < this.#from) return undefined
    return position >= this.#to ? 0 : this.#events.length - this.#indexAfter(position)
  }

  /** Takes events that were just committed. @param base position of the log's last event before them. */
  publish(base: bigint, events: readonly StoredEvent[]): void {
    const last = events.at(-1)!.position
    if (base === this.#to) {
      this.#push(events)
      if (last > this.#known) this.#known = last
      this.#wake()
    } else this.announce(last)
  }

  /** Learns that the log reaches to a position. */
  announce(head: bigint): void {
    if (head > this.#known) this.#known = head
    if (this.#known > this.#to && !this.#reading && !this.#closed) void this.#readOn()
  }

  /**
   * What follows a position, without waiting.
   * @returns 'behind' when the stretch begins later, 'nothing' when it ends there.
   */
  after(
    position: bigint,
    maxCount: number,
    types: ReadonlySet<string> | undefined,
  ): LogPage | 'behind' | 'nothing' {
    if (position < this.#from) return 'behind'
    if (position >= this.#to) return 'nothing'
    const events: StoredEvent[] = []
    let index = this.#indexAfter(position)
    while (index < this.#events.length && events.length < maxCount) {
      const event = this.#events[index]!
      if (!types || types.has(event.type)) events.push(event)
      index += 1
    }
    const checkpoint = index === this.#events.length ? this.#to : this.#events[index - 1]!.position
    return { events, checkpoint, atHead: checkpoint >= this.#known }
  }

  /** Resolves when the stretch reaches beyond a position, when `signal` aborts, or at the close. */
  async beyond(position: bigint, signal: AbortSignal): Promise<void> {
    while (this.#to <= position && !signal.aborted && !this.#closed) {
      await new Promise<void>((resolve) => {
        const done = () => {
          signal.removeEventListener('abort', done)
          this.#waiting.delete(done)
          resolve()
        }
        signal.addEventListener('abort', done)
        this.#waiting.add(done)
      })
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  close(): void {
    this.#closed = true
    this.#wake()
  }

  async #readOn(): Promise<void> {
    this.#reading = true
    try {
      while (this.#known > this.#to && !this.#closed) {
        const known = this.#known
        const page = await this.#read(this.#to)
        // own appends may have come in meanwhile
        this.#push(page.events.filter((event) => event.position > this.#to))
        // announced before the read and not there: nothing to wait for
        if (page.atHead && this.#known === known) this.#known = this.#to
        this.#wake()
      }
    } catch {
      // closed while reading; the next announcement starts anew
    } finally {
      this.#reading = false
    }
  }

  #push(events: readonly StoredEvent[]): void {
    if (events.length === 0) return
    for (const event of events) {
      this.#events.push(event)
      this.#bytes += sizeOf(event)
    }
    this.#to = events.at(-1)!.position
    while (
      this.#events.length - this.#first > 1 &&
      (this.#events.length - this.#first > MAX_EVENTS || this.#bytes > MAX_BYTES)
    ) {
      const dropped = this.#events[this.#first]!
      this.#bytes -= sizeOf(dropped)
      this.#from = dropped.position
      this.#first += 1
    }
    if (this.#first > 0 && this.#first >= this.#events.length / 2) {
      this.#events = this.#events.slice(this.#first)
      this.#first = 0
    }
  }

  #indexAfter(position: bigint): number {
    let low = this.#first
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#events[middle]!.position > position) high = middle
      else low = middle + 1
    }
    return low
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done()
  }
}

/** Roughly what an event takes in memory, in bytes. */
function sizeOf(event: StoredEvent): number {
  return event.data.length + event.metadata.length + 400
}

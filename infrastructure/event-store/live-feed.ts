import type { LogPage, StoredEvent } from '../../application/ports/event-log.ts'
import { retryPause } from './retry.ts'

const MAX_EVENTS = 8192
/** Of JSON text; what it is decoded to, which readers keep with the events, takes several times as much. */
const MAX_BYTES = 8 * 1024 * 1024
/** Stands for all types. */
const ALL = '*'

/**
 * The youngest stretch of the log in memory, without gaps in what is wanted. Every subscriber that has caught up reads
 * from here, so that an event is read and decoded once per process. What is published right behind it enters directly;
 * what it hears of otherwise it reads, as far as anybody here wants it. It is bounded: a subscriber that falls behind
 * reads the log again.
 */
export class LiveFeed {
  readonly #read: (after: bigint, types: readonly string[] | undefined) => Promise<LogPage>
  readonly #failed: (error: unknown, attempt: number) => void
  /** How many subscribers want a type. */
  readonly #wanted = new Map<string, number>()
  /** The stretch: all wanted events with #from < position <= #to. */
  #events: StoredEvent[] = []
  /** Index of the first event of the stretch; those before are forgotten. */
  #first = 0
  #bytes = 0
  #from: bigint
  #to: bigint
  /** The log is known to reach at least to here. */
  #known: bigint
  #reading = false
  readonly #closing = new AbortController()
  readonly #waiting = new Set<() => void>()

  /**
   * @param head position where the stretch begins.
   * @param read reads a page of the log, only events of the given types where given; it is called again until it
   *   succeeds.
   * @param failed hears of each time that it does not.
   */
  constructor(
    head: bigint,
    read: (after: bigint, types: readonly string[] | undefined) => Promise<LogPage>,
    failed: (error: unknown, attempt: number) => void = () => undefined,
  ) {
    this.#from = head
    this.#to = head
    this.#known = head
    this.#read = read
    this.#failed = failed
  }

  /** Position where the stretch ends. */
  get to(): bigint {
    return this.#to
  }

  /** Whether it has no readers: then it holds nothing, and is where the log was last known to end. */
  get isResting(): boolean {
    return this.#wanted.size === 0
  }

  /** The types that subscribers want: undefined for all of them, empty for none. */
  get types(): readonly string[] | undefined {
    return this.#wanted.has(ALL) ? undefined : [...this.#wanted.keys()]
  }

  /** Whether subscribers want events of a type. */
  wants(type: string): boolean {
    return this.#wanted.has(type) || this.#wanted.has(ALL)
  }

  /**
   * Has the stretch hold events of these types, of all types where none are named. What it lacks of them so far makes it
   * begin anew where it ends: a reader that is not there yet reads the log.
   * @returns how to end that; a second call does nothing.
   */
  want(types: readonly string[] = [ALL]): () => void {
    if (this.isResting) this.#skip(this.#known)
    if (!types.every((type) => this.wants(type))) this.#skip(this.#to)
    for (const type of types) this.#wanted.set(type, (this.#wanted.get(type) ?? 0) + 1)
    let ended = false
    return () => {
      if (ended) return
      ended = true
      for (const type of types) {
        const others = this.#wanted.get(type)! - 1
        if (others > 0) this.#wanted.set(type, others)
        else this.#wanted.delete(type)
      }
    }
  }

  /**
   * Takes events that follow the stretch.
   * @param base position of the log's last event before them.
   * @param to position up to which they are all that is wanted, default that of the last one.
   * @returns false when there are others between, which are read first, and these with them.
   */
  publish(base: bigint, events: readonly StoredEvent[], to = events.at(-1)!.position): boolean {
    if (base !== this.#to) {
      this.announce(to)
      return false
    }
    this.#push(events, to)
    if (to > this.#known) this.#known = to
    this.#wake()
    return true
  }

  /** Learns that the log reaches to a position. */
  announce(head: bigint): void {
    if (head > this.#known) this.#known = head
    if (this.isResting) {
      this.#skip(this.#known)
      // a reader without types still follows how far the log is
      this.#wake()
    }
    if (this.#known > this.#to && !this.#reading && !this.closed) void this.#readOn()
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
    while (this.#to <= position && !signal.aborted && !this.closed) {
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
    return this.#closing.signal.aborted
  }

  close(): void {
    this.#closing.abort()
    this.#wake()
  }

  async #readOn(): Promise<void> {
    this.#reading = true
    for (let attempt = 0; this.#known > this.#to && !this.closed; ) {
      try {
        await this.#readPage()
        attempt = 0
      } catch (error) {
        if (!this.closed) this.#failed(error, attempt)
        await retryPause(attempt, this.#closing.signal)
        attempt += 1
      }
    }
    this.#reading = false
  }

  async #readPage(): Promise<void> {
    const known = this.#known
    const asked = new Set(this.#wanted.keys())
    const page = await this.#read(this.#to, asked.has(ALL) ? undefined : [...asked])
    // own appends may have come in meanwhile
    if (page.checkpoint > this.#to) {
      this.#push(
        page.events.filter((event) => event.position > this.#to),
        page.checkpoint,
      )
      const isAll = asked.has(ALL) || [...this.#wanted.keys()].every((type) => asked.has(type))
      // it lacks types that a reader has added meanwhile
      if (!isAll) this.#skip(this.#to)
    }
    // announced before the read and not there: nothing to wait for
    if (page.atHead && this.#known === known) this.#known = this.#to
    this.#wake()
  }

  /** @param to where the stretch ends then. */
  #push(events: readonly StoredEvent[], to: bigint): void {
    for (const event of events) {
      if (!this.wants(event.type)) continue
      this.#events.push(event)
      this.#bytes += sizeOf(event)
    }
    this.#to = to
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

  /** Goes on at a position with nothing in memory. */
  #skip(to: bigint): void {
    if (to < this.#to) return
    this.#events = []
    this.#first = 0
    this.#bytes = 0
    this.#from = to
    this.#to = to
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

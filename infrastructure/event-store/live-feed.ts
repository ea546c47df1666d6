import type { LogPage, StoredEvent } from '../../application/ports/event-log.ts'

const MAX_EVENTS = 8192
/** Of JSON text; what it is decoded to, which readers keep with the events, takes several times as much. */
const MAX_BYTES = 8 * 1024 * 1024
/** Of what this process appended while the stretch was behind. */
const MAX_BYTES_AHEAD = 8 * 1024 * 1024
/** Stands for all types. */
const ALL = '*'

/**
 * The youngest stretch of the log in memory, without gaps in what is wanted. Every subscriber that has caught up reads
 * from here, so that an event is read and decoded once per process. What this process appends enters directly; what
 * others append is read behind them, as far as anybody here wants it. It is bounded: a subscriber that falls behind
 * reads the database again.
 */
export class LiveFeed {
  readonly #read: (after: bigint, types: readonly string[] | undefined) => Promise<LogPage>
  readonly #entered: (events: readonly StoredEvent[]) => void
  /** How many subscribers want a type, and the position from which on the stretch has all events of it. */
  readonly #wanted = new Map<string, { subscribers: number; since: bigint }>()
  /** The stretch: all wanted events with #from < position <= #to. */
  #events: StoredEvent[] = []
  /** Appended by this process beyond the stretch, by position. */
  readonly #ahead = new Map<bigint, StoredEvent>()
  #bytesAhead = 0
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
   * @param read reads a page of the log, only events of the given types where given; it is called again until it
   *   succeeds, so it should pause on failure.
   * @param entered hears of the events that enter, in order, before anybody can see that the stretch reaches them.
   */
  constructor(
    head: bigint,
    read: (after: bigint, types: readonly string[] | undefined) => Promise<LogPage>,
    entered: (events: readonly StoredEvent[]) => void = () => undefined,
  ) {
    this.#from = head
    this.#to = head
    this.#known = head
    this.#read = read
    this.#entered = entered
  }

  /** Position where the stretch ends. */
  get to(): bigint {
    return this.#to
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
   * Has the stretch hold events of these types from here on, of all types where none are named.
   * @returns how to end that; a second call does nothing.
   */
  want(types: readonly string[] = [ALL]): () => void {
    if (this.#wanted.size === 0) this.#skip(this.#known)
    for (const type of types) {
      const want = this.#wanted.get(type)
      if (want) want.subscribers += 1
      else this.#wanted.set(type, { subscribers: 1, since: this.#to })
    }
    let ended = false
    return () => {
      if (ended) return
      ended = true
      for (const type of types) {
        const want = this.#wanted.get(type)!
        want.subscribers -= 1
        if (want.subscribers === 0) this.#wanted.delete(type)
      }
    }
  }

  /** How many events it holds after a position, where all types are wanted; undefined when it begins later. */
  countAfter(position: bigint): number | undefined {
    if (position < this.#from) return undefined
    return position >= this.#to ? 0 : this.#events.length - this.#indexAfter(position)
  }

  /**
   * Takes events that were just committed.
   * @param base position of the log's last event before them.
   * @param to position up to which they are all that is wanted, default that of the last one.
   */
  publish(base: bigint, events: readonly StoredEvent[], to = events.at(-1)!.position): void {
    if (base === this.#to) {
      this.#push(events, to)
      if (to > this.#known) this.#known = to
      this.#wake()
      return
    }
    // what others appended before is read first, and these with it; but they need not be parsed again
    for (const event of events) if (this.wants(event.type)) this.#keepAhead(event)
    this.announce(to)
  }

  /** Learns that the log reaches to a position. */
  announce(head: bigint): void {
    if (head > this.#known) this.#known = head
    if (this.#wanted.size === 0) {
      this.#skip(this.#known)
      // who follows no type at all still follows how far the log is
      this.#wake()
    }
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
    if (position < this.#from || !this.#hasAllSince(position, types)) return 'behind'
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
        const asked = new Set(this.#wanted.keys())
        const page = await this.#read(this.#to, asked.has(ALL) ? undefined : [...asked])
        // own appends may have come in meanwhile
        if (page.checkpoint > this.#to) {
          const fresh = page.events.filter((event) => event.position > this.#to)
          this.#push(
            fresh.map((event) => this.#ahead.get(event.position) ?? event),
            page.checkpoint,
          )
          for (const event of this.#ahead.values()) if (event.position <= this.#to) this.#dropAhead(event)
          for (const [type, want] of this.#wanted) {
            if (!asked.has(type) && !asked.has(ALL)) want.since = page.checkpoint
          }
        }
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

  /** Keeps an event until the stretch reaches it; the youngest give way, which are read again then. */
  #keepAhead(event: StoredEvent): void {
    if (this.#ahead.size >= MAX_EVENTS || this.#bytesAhead + sizeOf(event) > MAX_BYTES_AHEAD) return
    this.#ahead.set(event.position, event)
    this.#bytesAhead += sizeOf(event)
  }

  #dropAhead(event: StoredEvent): void {
    this.#ahead.delete(event.position)
    this.#bytesAhead -= sizeOf(event)
  }

  /** @param to where the stretch ends then. */
  #push(events: readonly StoredEvent[], to: bigint): void {
    this.#entered(events)
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
    if (to <= this.#to) return
    this.#events = []
    this.#first = 0
    this.#bytes = 0
    this.#from = to
    this.#to = to
  }

  #hasAllSince(position: bigint, types: ReadonlySet<string> | undefined): boolean {
    const everything = this.#wanted.get(ALL)
    if (everything && everything.since <= position) return true
    if (!types) return false
    for (const type of types) {
      const want = this.#wanted.get(type)
      if (!want || want.since > position) return false
    }
    return true
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

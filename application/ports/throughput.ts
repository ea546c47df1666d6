/** What was stored since the sample before, and how late readers of the log were. Seconds are real ones. */
export interface ThroughputSample {
  /** Since the sample before; 0: there was none. */
  readonly seconds: number
  readonly events: number
  /** Of the reader that is furthest behind. */
  readonly eventsBehind: number
  readonly secondsBehind: number
}

/** A stretch of time; null: not measured. */
export interface ThroughputSlot {
  readonly at: Date
  readonly eventsPerSecond: number | null
  /** At the most. */
  readonly eventsBehind: number | null
  readonly secondsBehind: number | null
}

/** Where samples of the last day are kept, by the time of the database. */
export interface Throughput {
  add(sample: ThroughputSample): Promise<void>
  /** So many slots up to now, oldest first. @param seconds length of one. */
  slots(count: number, seconds: number): Promise<readonly ThroughputSlot[]>
}

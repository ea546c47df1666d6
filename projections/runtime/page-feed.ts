import type { LogPage, StoredEvent } from '../../application/ports/event-log.ts'

/** Events that were read and wait to be folded, with the checkpoint they lead to. */
export interface Batch {
  readonly events: readonly StoredEvent[]
  readonly checkpoint: bigint
  readonly atHead: boolean
}

/** How far reading runs ahead of folding: little, because what waits long is moved about by the garbage collector. */
const AHEAD_EVENTS = 500
const AHEAD_BYTES = 4 * 1024 * 1024

/**
 * Reads ahead: takes pages from a subscription while earlier ones are folded and written, and hands
 * out everything that has come in since, as one batch.
 */
export class PageFeed {
  readonly #pages: LogPage[] = []
  #events = 0
  #bytes = 0
  #ended = false
  #error: unknown = null
  #wakeTaker: (() => void) | null = null
  #wakeReader: (() => void) | null = null
  readonly #reading: Promise<void>

  constructor(source: AsyncIterable<LogPage>) {
    this.#reading = this.#read(source)
  }

  /** True when a batch can be taken without waiting. */
  get ready(): boolean {
    return this.#pages.length > 0
  }

  /**
   * Waits for the next events. Everything read so far comes at once, but not more than `maxEvents`.
   * @returns null when the subscription has ended.
   * @throws what the subscription or {@link fail} threw.
   */
  async take(maxEvents: number): Promise<Batch | null> {
    while (this.#pages.length === 0 && !this.#ended && !this.#error) {
      await new Promise<void>((resolve) => {
        this.#wakeTaker = resolve
      })
    }
    if (this.#error) throw this.#error
    const first = this.#pages[0]
    if (!first) return null
    const batch = first.events.length > maxEvents ? this.#split(first, maxEvents) : this.#merge(maxEvents)
    this.#wakeReader?.()
    return batch
  }

  /** Makes the taker throw: something that runs beside it went wrong. */
  fail(error: unknown): void {
    this.#error ??= error
    this.#wakeTaker?.()
  }

  /** Resolves when nothing is read any more; the subscription's signal must be aborted before. */
  async close(): Promise<void> {
    this.#ended = true
    this.#wakeReader?.()
    await this.#reading
  }

  async #read(source: AsyncIterable<LogPage>): Promise<void> {
    try {
      for await (const page of source) {
        this.#pages.push(page)
        this.#events += page.events.length
        this.#bytes += bytesOf(page.events)
        this.#wakeTaker?.()
        while ((this.#events >= AHEAD_EVENTS || this.#bytes >= AHEAD_BYTES) && !this.#ended) {
          await new Promise<void>((resolve) => {
            this.#wakeReader = resolve
          })
        }
        if (this.#ended) break
      }
    } catch (error) {
      this.fail(error)
    }
    this.#ended = true
    this.#wakeTaker?.()
  }

  #merge(maxEvents: number): Batch {
    const taken: StoredEvent[][] = []
    let count = 0
    let last: LogPage = this.#pages[0]!
    while (this.#pages.length > 0 && (count === 0 || count + this.#pages[0]!.events.length <= maxEvents)) {
      last = this.#pages.shift()!
      taken.push(last.events as StoredEvent[])
      count += last.events.length
    }
    const events = taken.length === 1 ? taken[0]! : taken.flat()
    this.#events -= count
    this.#bytes -= bytesOf(events)
    return { events, checkpoint: last.checkpoint, atHead: last.atHead && this.#pages.length === 0 }
  }

  #split(page: LogPage, maxEvents: number): Batch {
    const events = page.events.slice(0, maxEvents)
    this.#pages[0] = { ...page, events: page.events.slice(maxEvents) }
    this.#events -= events.length
    this.#bytes -= bytesOf(events)
    return { events, checkpoint: events.at(-1)!.position, atHead: false }
  }
}

/** Characters of the JSON texts, which is near enough to bytes to bound memory. */
export function bytesOf(events: readonly StoredEvent[]): number {
  let bytes = 0
  for (const event of events) bytes += event.data.length + event.metadata.length
  return bytes
}

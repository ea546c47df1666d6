import type { LogPage, StoredEvent } from '../ports/event-log.ts'

/** How far reading runs ahead: little, because what waits long is moved about by the garbage collector. */
const AHEAD_EVENTS = 500
const AHEAD_BYTES = 4 * 1024 * 1024

/**
 * Reads ahead: takes pages from a subscription while earlier ones are worked on, and hands out what has come in since as
 * one page.
 */
export class PageFeed {
  readonly #pages: LogPage[] = []
  #events = 0
  #bytes = 0
  #ended = false
  #error: unknown = null
  #wakeTaker: () => void = () => undefined
  #wakeReader: () => void = () => undefined

  /** @param source ends when its signal aborts, which is not waited for: its server may not answer. */
  constructor(source: AsyncIterable<LogPage>) {
    void this.#read(source)
  }

  /** True when a page can be taken without waiting. */
  get ready(): boolean {
    return this.#pages.length > 0
  }

  /**
   * Waits for the next events. Whole pages that were read so far come as one, up to `maxEvents`.
   * @param patienceMs how long it waits, in real milliseconds; null: as long as it takes.
   * @returns `ended` when the subscription has ended, `late` when the time is up.
   * @throws what the subscription or {@link fail} threw.
   */
  async take(maxEvents: number, patienceMs: number | null = null): Promise<LogPage | 'late' | 'ended'> {
    if (!this.ready && !this.#ended && !this.#error) {
      await new Promise<void>((resolve) => {
        const timer = patienceMs === null ? undefined : setTimeout(resolve, Math.max(0, patienceMs))
        this.#wakeTaker = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    if (this.#error) throw this.#error
    if (!this.ready) return this.#ended ? 'ended' : 'late'
    const page = this.#merge(maxEvents)
    this.#wakeReader()
    return page
  }

  /** Makes the taker throw: something that runs beside it went wrong. */
  fail(error: unknown): void {
    this.#error ??= error
    this.#wakeTaker()
  }

  /** Nothing is read any more; who waits for a page hears that it has ended. */
  close(): void {
    this.#ended = true
    this.#wakeReader()
    this.#wakeTaker()
  }

  async #read(source: AsyncIterable<LogPage>): Promise<void> {
    try {
      for await (const page of source) {
        this.#pages.push(page)
        this.#events += page.events.length
        this.#bytes += bytesOf(page.events)
        this.#wakeTaker()
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
    this.#wakeTaker()
  }

  #merge(maxEvents: number): LogPage {
    const taken: (readonly StoredEvent[])[] = []
    let count = 0
    let last: LogPage = this.#pages[0]!
    while (this.ready && (count === 0 || count + this.#pages[0]!.events.length <= maxEvents)) {
      last = this.#pages.shift()!
      taken.push(last.events)
      count += last.events.length
    }
    const events = taken.length === 1 ? taken[0]! : taken.flat()
    this.#events -= count
    this.#bytes -= bytesOf(events)
    return { events, checkpoint: last.checkpoint, atHead: last.atHead && !this.ready }
  }
}

/** Characters of the JSON texts, which is near enough to bytes to bound memory. */
export function bytesOf(events: readonly StoredEvent[]): number {
  let bytes = 0
  for (const event of events) bytes += event.data.length + event.metadata.length
  return bytes
}

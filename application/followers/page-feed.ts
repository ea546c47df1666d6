import type { LogPage } from '../ports/event-log.ts'

/** Pages of a subscription, the next one read while one is worked on. */
export class PageFeed {
  readonly #pages: AsyncIterator<LogPage>
  #next: LogPage | 'ended' | null = null
  #error: unknown = null
  #wake: () => void = () => undefined

  constructor(source: AsyncIterable<LogPage>) {
    this.#pages = source[Symbol.asyncIterator]()
    this.#readOn()
  }

  /** True when a page can be taken without waiting. */
  get ready(): boolean {
    return this.#next !== null
  }

  /**
   * Waits for the next page.
   * @param patienceMs how long it waits, in real milliseconds; null: as long as it takes.
   * @returns `ended` when the subscription has ended, `late` when the time is up.
   * @throws what the subscription or {@link fail} threw.
   */
  async take(patienceMs: number | null): Promise<LogPage | 'late' | 'ended'> {
    if (!this.ready && !this.#error) {
      await new Promise<void>((resolve) => {
        const timer = patienceMs === null ? undefined : setTimeout(resolve, Math.max(0, patienceMs))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    if (this.#error) throw this.#error
    if (this.#next === null) return 'late'
    const page = this.#next
    if (page !== 'ended') {
      this.#next = null
      this.#readOn()
    }
    return page
  }

  /** Makes the taker throw: something that runs beside it went wrong. */
  fail(error: unknown): void {
    this.#error ??= error
    this.#wake()
  }

  /** Ends the wait for a page, and the subscription; the end is not awaited, since its server may not answer. */
  close(): void {
    this.#next = 'ended'
    this.#wake()
    void this.#pages.return?.()?.catch(() => undefined)
  }

  #readOn(): void {
    this.#pages.next().then(
      ({ done, value }) => {
        if (this.#next === null) this.#next = done ? 'ended' : value
        this.#wake()
      },
      (error) => this.fail(error),
    )
  }
}

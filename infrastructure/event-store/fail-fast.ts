import { setTimeout as delay } from 'node:timers/promises'
import {
  type AppendResult,
  type EventLog,
  EventLogUnavailable,
  type EventToAppend,
  type ExpectedRevision,
  type LogPage,
  type StoredEvent,
} from '../../application/ports/event-log.ts'

/** How long a read waits before the log is asked whether it is there at all, in milliseconds. */
const ASK_AFTER_MS = 500
/** How long the log may take to answer that, in milliseconds. */
const ANSWER_MS = 1_000
const PAUSE_MS = 100

/** The log as those see it who have a caller waiting. */
export interface FailFastOptions {
  readonly askAfterMs?: number
  readonly answerMs?: number
}

/**
 * An event log whose reads do not wait for a server that is away: when a read takes long, the log is asked for its
 * head; if that is not answered either, all waiting reads fail, and further ones fail at once until it is. A log that
 * is slow and alive is waited for. Appends and subscriptions have their own patience and are left alone.
 */
export class FailFastLog implements EventLog {
  readonly #log: EventLog
  readonly #askAfterMs: number
  readonly #answerMs: number
  /** Waiting reads, the oldest first: what ends each. */
  readonly #waiting = new Set<(error: Error) => void>()
  #watching = false
  #away = false
  #closed = false

  /** @param log is closed with this one. */
  constructor(log: EventLog, options: FailFastOptions = {}) {
    this.#log = log
    this.#askAfterMs = options.askAfterMs ?? ASK_AFTER_MS
    this.#answerMs = options.answerMs ?? ANSWER_MS
  }

  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
  ): Promise<AppendResult> {
    return this.#log.append(stream, expected, events)
  }

  readStream(
    stream: string,
    options?: { from?: number; maxCount?: number; direction?: 'forwards' | 'backwards' },
  ): Promise<readonly StoredEvent[]> {
    return this.#read(() => this.#log.readStream(stream, options))
  }

  revision(stream: string): Promise<number> {
    return this.#read(() => this.#log.revision(stream))
  }

  readAll(options: { after: bigint; maxCount: number; types?: readonly string[] }): Promise<LogPage> {
    return this.#read(() => this.#log.readAll(options))
  }

  subscribe(options: {
    after: bigint
    types?: readonly string[]
    pageSize: number
    signal: AbortSignal
  }): AsyncIterable<LogPage> {
    return this.#log.subscribe(options)
  }

  head(): Promise<bigint> {
    return this.#read(() => this.#log.head())
  }

  count(after: bigint, upTo: bigint): Promise<number> {
    return this.#read(() => this.#log.count(after, upTo))
  }

  soleWriter(): boolean {
    return this.#log.soleWriter()
  }

  close(): Promise<void> {
    this.#closed = true
    return this.#log.close()
  }

  /** @throws EventLogUnavailable while the log does not answer. */
  async #read<T>(read: () => Promise<T>): Promise<T> {
    if (this.#away) throw noAnswer()
    let end: (error: Error) => void = () => undefined
    const ended = new Promise<never>((_resolve, reject) => {
      end = reject
    })
    this.#waiting.add(end)
    this.#watch()
    try {
      return await Promise.race([read(), ended])
    } finally {
      this.#waiting.delete(end)
    }
  }

  /** Looks after waiting reads until there are none. */
  #watch(): void {
    if (this.#watching) return
    this.#watching = true
    void (async () => {
      while (this.#waiting.size > 0 && !this.#closed) {
        const before = [...this.#waiting]
        await pause(this.#askAfterMs)
        if (before.some((end) => this.#waiting.has(end)) && !(await this.#answers())) await this.#standBy()
      }
      this.#watching = false
    })()
  }

  async #answers(): Promise<boolean> {
    const answered = this.#log.head().then(
      () => true,
      () => false,
    )
    return Promise.race([answered, pause(this.#answerMs).then(() => false)])
  }

  /** Ends all waiting reads, and waits for the log to come back. */
  async #standBy(): Promise<void> {
    this.#away = true
    for (const end of this.#waiting) end(noAnswer())
    while (!this.#closed) {
      const isBack = await this.#log.head().then(
        () => true,
        () => false,
      )
      if (isBack) break
      await delay(PAUSE_MS, undefined, { ref: false })
    }
    this.#away = false
  }
}

/** A process that stood still itself finds its timers due before the answers that have come meanwhile. */
async function pause(ms: number): Promise<void> {
  await delay(ms, undefined, { ref: false })
  await new Promise((resolve) => setImmediate(resolve))
}

function noAnswer(): EventLogUnavailable {
  return new EventLogUnavailable('The event log does not answer', { passes: true })
}

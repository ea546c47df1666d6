import { setTimeout as delay } from 'node:timers/promises'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { type EventLog, EventLogUnavailable } from '../../application/ports/event-log.ts'

const ASK_AFTER_MS = 500
/** Long enough for a server on a busy machine; one that is gone refuses at once. */
const ANSWER_MS = 3_000
const PAUSE_MS = 100

interface FailFastOptions {
  /** Asks the server for a sign of life, at best not in line behind reads; default the log's head. */
  readonly ask?: () => Promise<unknown>
  /** How long a read waits before the server is asked whether it is there at all, in milliseconds, default 500. */
  readonly askAfterMs?: number
  /** How long the server may take to answer that, in milliseconds, default 3000. */
  readonly answerMs?: number
  /** Hears of each look at what the log has: at its changes, or at its head. */
  readonly looks?: (at: 'changes' | 'head') => void
}

/**
 * An event log whose reads do not wait for a server that is away: when a read takes long, the server is asked for a
 * sign of life; if neither that nor any read is answered, all waiting reads fail, and further ones fail at once until
 * the server answers. A log that is slow and alive is waited for. Appends and subscriptions have their own patience
 * and are left alone.
 */
export class FailFastLog implements EventLog {
  readonly #log: EventLog
  readonly #ask: () => Promise<unknown>
  readonly #askAfterMs: number
  readonly #answerMs: number
  readonly #looks: NonNullable<FailFastOptions['looks']>
  /** Waiting reads, the oldest first: what ends each. */
  readonly #waiting = new Set<(error: Error) => void>()
  /** Reads and looks that were answered so far. */
  #answered = 0
  #watching = false
  #away = false
  #closed = false

  /** @param log is closed with this one. */
  constructor(log: EventLog, options: FailFastOptions = {}) {
    this.#log = log
    this.#ask = options.ask ?? (() => log.head())
    this.#askAfterMs = options.askAfterMs ?? ASK_AFTER_MS
    this.#answerMs = options.answerMs ?? technicalDeadline(ANSWER_MS)
    this.#looks = options.looks ?? (() => undefined)
  }

  readonly readStream: EventLog['readStream'] = (...asked) => this.#read((log) => log.readStream(...asked))
  readonly changes: EventLog['changes'] = (after) => {
    this.#looks('changes')
    return this.#read((log) => log.changes(after))
  }
  readonly readAll: EventLog['readAll'] = (options) => this.#read((log) => log.readAll(options))
  readonly head: EventLog['head'] = () => {
    this.#looks('head')
    return this.#read((log) => log.head())
  }
  readonly idAt: EventLog['idAt'] = (position) => this.#read((log) => log.idAt(position))
  readonly findCut: EventLog['findCut'] = () => this.#read((log) => log.findCut())
  readonly count: EventLog['count'] = (...asked) => this.#read((log) => log.count(...asked))
  readonly append: EventLog['append'] = (...given) => this.#log.append(...given)
  readonly subscribe: EventLog['subscribe'] = (options) => this.#log.subscribe(options)

  get isGapless(): boolean {
    return this.#log.isGapless
  }

  get isExclusive(): boolean {
    return this.#log.isExclusive
  }

  close(): Promise<void> {
    this.#closed = true
    return this.#log.close()
  }

  /** @throws EventLogUnavailable while the log does not answer. */
  async #read<T>(read: (log: EventLog) => Promise<T>): Promise<T> {
    if (this.#away) throw noAnswer()
    let end: (error: Error) => void = () => undefined
    const ended = new Promise<never>((_resolve, reject) => {
      end = reject
    })
    this.#waiting.add(end)
    this.#watch()
    try {
      return await Promise.race([this.#counted(read(this.#log)), ended])
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

  /** A late answer counts, also where the caller was refused meanwhile. */
  async #counted<T>(asked: Promise<T>): Promise<T> {
    const answer = await asked
    this.#answered += 1
    return answer
  }

  /**
   * Asks the server, and tells within its time whether it has answered anything since so many answers: a look that hangs
   * must not keep the next one from being made.
   */
  async #answers(before = this.#answered): Promise<boolean> {
    const asked = this.#counted(this.#ask()).catch(() => undefined)
    await Promise.race([asked, pause(this.#answerMs)])
    return this.#answered > before
  }

  /** Ends all waiting reads, and waits for the log to come back. */
  async #standBy(): Promise<void> {
    this.#away = true
    for (const end of this.#waiting) end(noAnswer())
    // a server that takes longer than its time each time is there all the same
    const before = this.#answered
    while (!this.#closed && !(await this.#answers(before))) await pause(PAUSE_MS)
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

import {
  type AppendResult,
  type EventLog,
  type LogMark,
  type LogPage,
  LogWentBack,
  type StoredEvent,
} from '../../application/ports/event-log.ts'
import { Gathered } from '../gathered.ts'

/**
 * An event log of which this process knows the last event that it read or appended, whatever it read it for. A log that
 * lacks it has lost events, and is not followed.
 */
export class RememberedLog implements EventLog {
  readonly #log: EventLog
  #last: LogMark | null = null
  #appending = 0
  readonly #look = new Gathered(async () => {
    const last = this.#last
    if (last === null || (await this.#log.idAt(last.position)) === last.eventId) return null
    // that it went back is told whether or not the log says why
    return new LogWentBack(last, await this.#log.findCut().catch(() => null))
  })

  /** @param log is closed with this one. */
  constructor(log: EventLog) {
    this.#log = log
  }

  /** The last event of the log that this process knows; null: none. */
  get last(): LogMark | null {
    return this.#last
  }

  /** Appends that have no answer yet. */
  get appending(): number {
    return this.#appending
  }

  /** @throws LogWentBack where the log lacks what this process knows of it. */
  async compare(): Promise<void> {
    const wentBack = await this.#look.ask(undefined)
    if (wentBack) throw wentBack
  }

  readonly changes: EventLog['changes'] = (after) => this.#log.changes(after)
  readonly head: EventLog['head'] = () => this.#log.head()
  readonly idAt: EventLog['idAt'] = (position) => this.#log.idAt(position)
  readonly findCut: EventLog['findCut'] = () => this.#log.findCut()
  readonly count: EventLog['count'] = (...asked) => this.#log.count(...asked)

  async append(...given: Parameters<EventLog['append']>): Promise<AppendResult> {
    this.#appending += 1
    try {
      const appended = await this.#log.append(...given)
      this.#saw(appended)
      return appended
    } finally {
      this.#appending -= 1
    }
  }

  async readStream(...asked: Parameters<EventLog['readStream']>): Promise<readonly StoredEvent[]> {
    const events = await this.#log.readStream(...asked)
    this.#saw(asked[1]?.direction === 'backwards' ? events[0] : events.at(-1))
    return events
  }

  async readAll(options: Parameters<EventLog['readAll']>[0]): Promise<LogPage> {
    const page = await this.#log.readAll(options)
    this.#saw(page.events.at(-1))
    return page
  }

  async *subscribe(options: Parameters<EventLog['subscribe']>[0]): AsyncGenerator<LogPage, void, undefined> {
    await this.compare().catch((error: unknown) => {
      // a log that is away is waited for
      if (error instanceof LogWentBack) throw error
    })
    for await (const page of this.#log.subscribe(options)) {
      this.#saw(page.events.at(-1))
      yield page
    }
  }

  get isGapless(): boolean {
    return this.#log.isGapless
  }

  get isExclusive(): boolean {
    return this.#log.isExclusive
  }

  close(): Promise<void> {
    return this.#log.close()
  }

  #saw(mark: LogMark | undefined): void {
    if (mark && mark.position > (this.#last?.position ?? -1n)) {
      this.#last = { position: mark.position, eventId: mark.eventId }
    }
  }
}

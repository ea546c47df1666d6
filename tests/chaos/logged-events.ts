import { expect } from 'vitest'
import { openDatabase } from '../../infrastructure/database/database.ts'
import { storedEvents } from '../support/log.ts'

/** An event as it stands in the log. */
export interface LoggedEvent {
  readonly id: string
  /** Category and the rest of the name of its stream. */
  readonly category: string
  readonly of: string
  readonly type: string
  readonly revision: number
  readonly data: Record<string, ReturnType<typeof JSON.parse>>
}

/** The whole log of an installation, read apart from the service. */
export class LoggedEvents {
  /** In the order of the log. */
  readonly all: LoggedEvent[] = []
  readonly repeatedIds: string[] = []
  readonly #streams = new Map<string, Map<string, LoggedEvent[]>>()
  readonly #ids = new Set<string>()

  /**
   * @param options.url superuser url of the database.
   * @param options.eventStoreUrl of the server that holds the log, default the database.
   * @param options.leaveOut members of events that are lists of much, and not looked at.
   */
  static async read(options: {
    readonly url: string
    readonly eventStoreUrl?: string | undefined
    readonly leaveOut?: readonly string[]
  }): Promise<LoggedEvents> {
    const { url, eventStoreUrl = null, leaveOut = [] } = options
    const log = new LoggedEvents()
    const database = await openDatabase({ url })
    try {
      for await (const { stream, eventId, type, revision, data } of storedEvents(database, eventStoreUrl)) {
        const dash = stream.indexOf('-')
        log.#note({
          id: eventId,
          category: stream.slice(0, dash),
          of: stream.slice(dash + 1),
          type,
          revision,
          data: JSON.parse(data, (key, value) =>
            Array.isArray(value) && leaveOut.includes(key) ? undefined : value,
          ),
        })
      }
    } finally {
      await database.close()
    }
    return log
  }

  /** Streams of a category by the rest of their names. */
  streams(category: string): ReadonlyMap<string, readonly LoggedEvent[]> {
    return this.#streams.get(category) ?? new Map()
  }

  ofType(type: string): readonly LoggedEvent[] {
    return this.all.filter((event) => event.type === type)
  }

  #note(event: LoggedEvent): void {
    const { id, category, of, revision } = event
    if (this.#ids.has(id)) this.repeatedIds.push(id)
    this.#ids.add(id)
    const streams = this.#streams.get(category) ?? new Map<string, LoggedEvent[]>()
    this.#streams.set(category, streams)
    const stream = streams.get(of) ?? []
    streams.set(of, stream)
    expect(revision, `${category}-${of}`).toBe(stream.length)
    stream.push(event)
    this.all.push(event)
  }
}

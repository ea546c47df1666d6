import type { EventLog, EventPlace, LogPage, StoredEvent } from './event-log.ts'

/**
 * A whole log as it is moved from one engine to another: read and written in its total order, with nobody else
 * writing. Unlike an {@link EventLog} it takes events of all streams as they stand, and keeps the order between them.
 */
export interface MovableLog {
  /** Which engine and where, without credentials, for messages: `EventStoreDB at host:2113`. */
  readonly name: string

  /** Events in order, exclusively after a position. @throws MoveInterrupted */
  readPage(options: { after: bigint; maxCount: number }): Promise<LogPage>

  /** The events at some places, without those that do not exist. @throws MoveInterrupted */
  eventsAt(places: readonly EventPlace[]): Promise<readonly StoredEvent[]>

  /** See {@link EventLog.findCut}. @throws MoveInterrupted */
  findCut(): ReturnType<EventLog['findCut']>

  /** See {@link EventLog.isGapless}. */
  readonly isGapless: boolean

  /** Position of the last event, 0 when there is none. @throws MoveInterrupted */
  head(): Promise<bigint>

  /**
   * Stores events behind the last one, in this order and to the byte as they are, hashes included. One call at a time.
   * @throws MoveInterrupted, or what the engine refuses them for; a beginning of the events may be stored then.
   */
  write(events: readonly StoredEvent[]): Promise<void>

  close(): Promise<void>
}

/** A side was lost on the way. What it holds has to be looked at before anything is written again. */
export class MoveInterrupted extends Error {
  override readonly name = 'MoveInterrupted'
}

/** A log, or what belongs to it, cannot be moved as it is; the message is one clear line that names the place. */
export class MoveRefused extends Error {
  override readonly name = 'MoveRefused'
}

import { SafeError } from './safe-error.ts'
import { ServiceUnavailable } from './unavailable.ts'

/**
 * The event log port: an append-only log of streams with one total order over all of them.
 * Adapters (PostgreSQL, EventStoreDB) store and return JSON texts as `JSON.stringify` writes them, byte for byte; the
 * codec above them (event-registry.ts) turns those into typed events.
 */

/**
 * What an event's JSON texts were written from, or read as. An adapter hands it on with an event that it stored itself, so
 * that readers in the same process need not parse what was written a moment ago.
 */
export interface WrittenFrom {
  /** The module that wrote it, and alone may read it. */
  readonly by: object
  /** The JSON text of the data; it tells a copy with other data. */
  readonly text: string
  readonly data: unknown
  /** What an event was written from has no hash in it. */
  readonly metadata: object
}

/** An event to append. Its id is the log's affair: a random one for each append. */
export interface EventToAppend {
  readonly type: string
  /** JSON text of the data, as `JSON.stringify` writes it. */
  readonly data: string
  /** JSON text of an object, as `JSON.stringify` writes it, without `hash`, which the log adds as the last member (see hash-chain.ts). */
  readonly metadata: string
  readonly writtenFrom?: WrittenFrom
}

/** An event as it stands in the log. */
export interface StoredEvent {
  /** Place in the total order of the log; grows, may skip numbers. */
  readonly position: bigint
  readonly stream: string
  /** Place in the stream, from 0, without gaps. */
  readonly revision: number
  /** UUID. */
  readonly eventId: string
  readonly type: string
  /** JSON text, byte for byte as stored. */
  readonly data: string
  /** JSON text with `hash` as its last member, byte for byte as stored. */
  readonly metadata: string
  /** The registry sets it as well when it reads an event: several readers of one page parse it once. */
  writtenFrom?: WrittenFrom
}

/** An event as it is known again, wherever the log came from since: where it stands, and its id. */
export interface LogMark {
  readonly position: bigint
  readonly eventId: string
}

/** The last appended event. */
export type AppendResult = LogMark

/**
 * The stream's last event is not at the revision that the append was decided on. Nothing was written; a caller that reads the
 * stream then finds what stands there.
 */
export class WrongExpectedRevision extends SafeError {
  readonly stream: string
  /** What was expected; -1 a new stream. */
  readonly revision: number
  constructor(stream: string, revision: number) {
    super(`Stream ${stream} is not at revision ${revision}`)
    this.name = 'WrongExpectedRevision'
    this.stream = stream
    this.revision = revision
  }
}

/** An event, or all events of an append together, are larger than the log takes. Nothing was written. */
export class EventTooLarge extends SafeError {
  /** @param limit {@link MAX_EVENT_BYTES}, or {@link MAX_APPEND_BYTES} for a whole append. */
  constructor(type: string, bytes: number, limit: number = MAX_EVENT_BYTES) {
    const what = limit === MAX_EVENT_BYTES ? 'An event' : 'An append that begins with an event'
    super(`${what} of type ${type} has ${bytes} bytes; the limit is ${limit}`)
    this.name = 'EventTooLarge'
  }
}

/** The log cannot be reached, or refuses to be used; the outcome of an append may be unknown. */
export class EventLogUnavailable extends ServiceUnavailable {
  constructor(message: string, options: { passes: boolean }) {
    super(message, options)
    this.name = 'EventLogUnavailable'
  }
}

/** A stream that somebody cut or deleted by the engine's own means, and where the log notes that. */
export interface CutStream {
  readonly stream: string
  readonly position: bigint
}

/** What is said of it. */
export function describeCut({ stream, position }: CutStream): string {
  return `stream ${stream} was cut or deleted by the means of the engine, as the event log says at position ${position}`
}

/**
 * The log lacks an event that was read of it: it is older than what this process, or its database, knows of it, or somebody
 * cut a stream.
 */
export class LogWentBack extends SafeError {
  constructor({ position }: LogMark, cut: CutStream | null) {
    const why = cut === null ? '' : `; ${describeCut(cut)}`
    super(
      `The event log ${cut === null ? 'went back' : 'was cut'}: the event that was read at position ${position} ` +
        `does not stand there${why}`,
    )
    this.name = 'LogWentBack'
  }
}

/** A position that no event of the log has, from which this engine cannot follow the log. */
export class UnknownPosition extends Error {
  constructor(position: bigint) {
    super(`No event of the log stands at position ${position}`)
    this.name = 'UnknownPosition'
  }
}

/** Largest event (data and metadata together) in bytes: 512 KiB. */
export const MAX_EVENT_BYTES = 512 * 1024
/** Largest append in bytes over all its events: below the 1 MiB that EventStoreDB accepts. */
export const MAX_APPEND_BYTES = 1000 * 1024

/** Where an event stands in its stream. */
export type EventPlace = Pick<StoredEvent, 'stream' | 'revision'>

/** A stretch of the log in order. */
export interface LogPage {
  readonly events: readonly StoredEvent[]
  /** Every matching event up to and including this position has been delivered by now. */
  readonly checkpoint: bigint
  /** True when the log ended here at the time of reading. */
  readonly atHead: boolean
}

/** What was appended behind a position. */
export interface Changes {
  /** The end of the log, as far as this tells. */
  readonly upTo: bigint
  /** Revision of the last event of each stream that has gone on, perhaps of others; null: too many to tell. */
  readonly revisions: ReadonlyMap<string, number> | null
}

/** The position before the first event. */
export const LOG_START = 0n

export interface EventLog {
  /**
   * Appends events to one stream, all or nothing, behind its event at exactly a revision. Each call is one append, which
   * the adapter may send again until it knows what became of it; equal events in another call are another append, and
   * a conflict.
   * @param revision of the stream's last event, -1 for a new stream.
   * @param events at least one.
   * @throws WrongExpectedRevision, EventTooLarge, or {@link EventLogUnavailable} after which the outcome is unknown:
   *   a caller that needs to know reads the stream.
   */
  append(stream: string, revision: number, events: readonly EventToAppend[]): Promise<AppendResult>

  /**
   * Reads a stream in order. An absent stream reads as empty. Many short reads at once cost little more than one where the
   * engine can.
   * @param options.from first revision to read, default 0 (backwards: default the last).
   * @param options.maxCount events at the most, default 1000.
   */
  readStream(
    stream: string,
    options?: { from?: number; maxCount?: number; direction?: 'forwards' | 'backwards' },
  ): Promise<readonly StoredEvent[]>

  /**
   * Which streams have gone on behind a position, as of a moment after the call: whatever any process was told to be
   * stored before is in it. Many who ask at once cost little more than one.
   */
  changes(after: bigint): Promise<Changes>

  /**
   * Reads the log in order, exclusively after a position; `types` filters on the server, which looks only so far at a
   * time: a page may have few events or none, and end before the head. Any number is a position: one between events
   * costs more where positions are places in files, one beyond the end reads as the end.
   */
  readAll(options: { after: bigint; maxCount: number; types?: readonly string[] }): Promise<LogPage>

  /**
   * Catches up from a position and then follows the log for ever, page by page, until `signal`
   * aborts (then it just ends). It waits while the consumer works. A page without events tells of a
   * checkpoint that moved over events of other types; the first page at the head always comes.
   * Lost connections are reconnected inside; nothing is skipped or delivered twice.
   * @throws UnknownPosition when no event stands at `after` and the engine cannot follow from there.
   */
  subscribe(options: {
    after: bigint
    types?: readonly string[]
    /** Events in a page at the most. */
    pageSize: number
    signal: AbortSignal
  }): AsyncIterable<LogPage>

  /** Position of the last event in the log, {@link LOG_START} when it is empty. */
  head(): Promise<bigint>

  /** Id of the event that stands at exactly a position; null where none does. */
  idAt(position: bigint): Promise<string | null>

  /** A stream that somebody cut or deleted by the engine's own means, so that it reads shorter than it was; null: none. */
  findCut(): Promise<CutStream | null>

  /** Whether positions are numbers from 1 without gaps. */
  readonly isGapless: boolean

  /** About how many events stand after a position and up to another; exact where that costs nothing. */
  count(after: bigint, upTo: bigint): Promise<number>

  /**
   * True where no other process can append to this log as long as it is open: what is cached of it is never stale. Once
   * false it stays false: after a lost connection or an append of unknown outcome there may be events nobody here knows.
   */
  readonly isExclusive: boolean

  close(): Promise<void>
}

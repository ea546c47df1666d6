import { type Decider, fold, streamOf } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import {
  type EventRegistry,
  type KeyedRequest,
  type RecordedEvent,
  UnreadableEvent,
} from './event-registry.ts'
import { RecentCommands } from './recent-commands.ts'
import { RecentlyUsed } from './recently-used.ts'
import { TimeSlice } from './time-slices.ts'

/** An aggregate as loaded: its folded state and the revision of its last event, -1 when it has none. */
export interface Loaded<State> {
  readonly state: State
  readonly revision: number
}

/** A loaded aggregate, the commands that made it, and about how many bytes it takes. */
export interface Kept<State> extends Loaded<State> {
  readonly commands: RecentCommands
  readonly bytes: number
}

/** How an aggregate began. */
export interface Creation<State> extends Loaded<State> {
  /** Of the last event that was stored with the first one. */
  readonly position: bigint
  readonly keyedRequest: KeyedRequest | null
}

/** Reads aggregates for what is decided by them. */
export interface Reader {
  /** The present state of an aggregate, never stale. */
  load<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Loaded<State>>
}
/** What those work with who only read. */
export interface Reads {
  readonly commands: Reader
}

/** Of a stream without events. */
const NOTHING = { commands: RecentCommands.NONE, bytes: 0 } as const
/** Events read at once: a page of the largest events stays within a few MiB. */
const READ_PAGE = 32
/** Aggregates of many that are loaded at once. */
const LOADED_AT_ONCE = 16
/** Events in which the first append is looked for: what is created in one append has fewer. */
const FIRST_EVENTS = 8
/** Of all cached aggregates: a state takes about as much as its events, unless its decider knows better. */
const CACHE_BYTES = 48 * 1024 * 1024
/** Streams without events that are known as such: who probes with invented ids pushes out others of these only. */
const EMPTY_STREAMS = 10_000
/** What a cached aggregate takes at the least. */
const AGGREGATE_BYTES = 512

export type AggregateCache = RecentlyUsed<string, Kept<unknown>>

/** Keeps the aggregates that were used lately. @param mostBytes of all of them, about. */
export function aggregateCache(mostBytes = CACHE_BYTES): AggregateCache {
  return new RecentlyUsed(mostBytes, ({ bytes }) => AGGREGATE_BYTES + bytes)
}

/**
 * Reads aggregates, from what is cached of them as far as the log says that it is the present state. Who decides on a
 * cached state and appends at exactly its revision need not ask: the append does.
 */
export class Aggregates {
  readonly #log: EventLog
  readonly #registry: EventRegistry
  readonly #cache: AggregateCache
  /** Streams that had no events when they were read last. */
  readonly #empty = new RecentlyUsed<string, true>(EMPTY_STREAMS)

  constructor(log: EventLog, registry: EventRegistry, cache: AggregateCache) {
    this.#log = log
    this.#registry = registry
    this.#cache = cache
  }

  /**
   * The present state of an aggregate, never stale: what is cached counts where nobody else can write to the log, else
   * when the log says that the stream has not gone on. Many who load at once cost one look.
   */
  async load<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Kept<State>> {
    const stream = streamOf(decider, id)
    const cached = this.cached<State>(stream)
    if (cached && (this.#log.isExclusive || (await this.#log.revision(stream)) === cached.revision))
      return cached
    // what most never set: many who ask at once cost one look, which is no read of each
    if (!cached && this.#empty.get(stream) && (await this.#log.revision(stream)) < 0)
      return { state: decider.initialState, revision: -1, ...NOTHING }
    return this.readOn(decider, stream, cached)
  }

  /** {@link load} for several, a few at a time: the log must get to what others ask meanwhile. In the order of the ids. */
  async loadAll<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    ids: readonly string[],
  ): Promise<readonly Kept<State>[]> {
    const loaded: Kept<State>[] = []
    for (let from = 0; from < ids.length; from += LOADED_AT_ONCE) {
      const few = ids.slice(from, from + LOADED_AT_ONCE)
      loaded.push(...(await Promise.all(few.map((id) => this.load(decider, id)))))
    }
    return loaded
  }

  /**
   * Reads aggregates of short streams that are not cached by one look, for who loads all of them at once then. What cannot
   * be read is left to that.
   * @returns by id those that it read: as present as what {@link load} returns.
   */
  async preload<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, Loaded<State>>> {
    const read = new Map<string, Loaded<State>>()
    const missing = new Map(ids.map((id) => [streamOf(decider, id), id] as const))
    for (const stream of missing.keys()) if (this.cached(stream)) missing.delete(stream)
    if (missing.size === 0) return read
    const found = await this.#log.readStreams([...missing.keys()], { maxCount: READ_PAGE })
    const slice = new TimeSlice()
    for (const [stream, stored] of found) {
      const pause = slice.over()
      if (pause) await pause
      // there may be more of it
      if (stored.length >= READ_PAGE) continue
      let { commands } = NOTHING
      let { state, revision } = { state: decider.initialState, revision: -1 }
      try {
        for (const one of stored) {
          expectNext(one, revision + 1)
          const event = this.#registry.decode(one)
          const { command_id: commandId } = event.metadata
          if (commandId !== undefined) commands = commands.with(commandId, event.position)
          state = decider.evolve(state, event as unknown as Event)
          revision = one.revision
        }
      } catch (error) {
        if (error instanceof UnreadableEvent) continue
        throw error
      }
      const bytes = takenBy(decider, { state, commands, bytes: sizeOf(stored) })
      this.remember(stream, { state, revision, commands, bytes })
      read.set(missing.get(stream)!, { state, revision })
    }
    return read
  }

  /**
   * Runs what reads several aggregates, the next one by what it found in another. It runs on cached states; then one
   * look at all of them tells whether any has gone on, and if so it runs again on fresh ones.
   * @param run must not change anything; what it throws counts like a result.
   */
  async reading<Result>(run: (reader: Reader) => Promise<Result>): Promise<Result> {
    if (this.#log.isExclusive) return run(this)
    const used = new Map<string, number>()
    const reader: Reader = {
      load: async (decider, id) => {
        const stream = streamOf(decider, id)
        const cached = this.cached<never>(stream)
        if (!cached) return this.load(decider, id)
        if (!used.has(stream)) used.set(stream, cached.revision)
        return cached
      },
    }
    const [outcome] = await Promise.allSettled([run(reader)])
    const isCurrent = await Promise.all(
      [...used].map(async ([stream, revision]) => (await this.#log.revision(stream)) === revision),
    )
    if (!isCurrent.every(Boolean)) return run(this)
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }

  /** The state of an aggregate as of a revision of its stream (inclusive). */
  async loadAt<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    revision: number,
  ): Promise<Loaded<State>> {
    const stream = streamOf(decider, id)
    const cached = this.cached<State>(stream)
    if (cached?.revision === revision) return cached
    const read = { state: decider.initialState, revision: -1 }
    return this.#fold(decider, stream, read, () => undefined, revision)
  }

  /** How an aggregate began: its state as of its first append, and the request with a key that made it. */
  async creationOf<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Creation<State> | null> {
    const stream = streamOf(decider, id)
    // most are not there, and many who ask at once cost one look
    if ((await this.#log.revision(stream)) < 0) return null
    const page = await this.#log.readStream(stream, { maxCount: FIRST_EVENTS })
    const events = page.map((stored) => this.#registry.decode(stored))
    const [first] = events
    if (!first) return null
    const isFirst = ({ metadata }: RecordedEvent) => metadata.command_id === first.metadata.command_id
    const end = first.metadata.command_id === undefined ? 1 : events.findIndex((event) => !isFirst(event))
    const created = end < 0 ? events : events.slice(0, end)
    const { position, revision } = created.at(-1)!
    const state = fold(decider, created as unknown as readonly Event[])
    return { state, revision, position, keyedRequest: first.metadata.keyed_request ?? null }
  }

  /** Position of the last event that a command has in a stream, null when it has none. */
  async doneAt(
    stream: string,
    { commands }: Kept<unknown>,
    commandId: string,
    lookBeyond: boolean,
  ): Promise<bigint | null> {
    const known = commands.positionOf(commandId)
    if (known !== null || commands.areAll || !lookBeyond) return known
    let position: bigint | null = null
    for (let from = 0; ; from += READ_PAGE) {
      const page = await this.#log.readStream(stream, { from, maxCount: READ_PAGE })
      for (const stored of page) {
        if (this.#registry.decode(stored).metadata.command_id === commandId) position = stored.position
      }
      if (page.length < READ_PAGE) return position
    }
  }

  /** A state as it was once for certain. */
  cached<State>(stream: string): Kept<State> | undefined {
    return this.#cache.get(stream) as Kept<State> | undefined
  }

  /** Forgets a stream: whoever goes on reads what stands. */
  forget(stream: string): void {
    this.#cache.delete(stream)
  }

  /** A state as it is now, read only when the stream has gone on. */
  async refreshed<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    at: Kept<State>,
  ): Promise<Kept<State>> {
    return (await this.#log.revision(stream)) === at.revision ? at : this.readOn(decider, stream, at)
  }

  /** Reads what came after a state, default all of the stream, and remembers it. */
  async readOn<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    from?: Kept<State>,
  ): Promise<Kept<State>> {
    let { commands, bytes } = from ?? NOTHING
    const start = from ?? { state: decider.initialState, revision: -1 }
    const loaded = await this.#fold(decider, stream, start, ({ metadata, position }, stored) => {
      if (metadata.command_id !== undefined) commands = commands.with(metadata.command_id, position)
      bytes += sizeOf([stored])
    })
    const kept = { ...loaded, commands, bytes: takenBy(decider, { ...loaded, commands, bytes }) }
    this.remember(stream, kept)
    return kept
  }

  /** @param upTo revision of the last event to fold. */
  async #fold<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    from: Loaded<State>,
    seen: (event: RecordedEvent, stored: StoredEvent) => void,
    upTo = Number.MAX_SAFE_INTEGER,
  ): Promise<Loaded<State>> {
    let { state, revision } = from
    while (revision < upTo) {
      const maxCount = Math.min(READ_PAGE, upTo - revision)
      const page = await this.#log.readStream(stream, { from: revision + 1, maxCount })
      for (const stored of page) {
        expectNext(stored, revision + 1)
        const event = this.#registry.decode(stored)
        state = decider.evolve(state, event as unknown as Event)
        revision = stored.revision
        seen(event, stored)
      }
      if (page.length < maxCount) break
    }
    return { state, revision }
  }

  /** Keeps a state, unless a later one is kept; of an empty stream only that it was. */
  remember(stream: string, loaded: Kept<unknown>): void {
    const cached = this.#cache.get(stream)
    if (loaded.revision < 0) {
      this.#empty.set(stream, true)
      return
    }
    this.#empty.delete(stream)
    if (!cached || cached.revision <= loaded.revision) this.#cache.set(stream, loaded)
  }
}

/** What is decided on half a stream would be wrong. */
function expectNext({ stream, revision }: StoredEvent, expected: number): void {
  if (revision !== expected) throw new Error(`Stream ${stream} lacks the event at revision ${expected}`)
}

/** What an aggregate takes, by its decider or by the events so far. @param kept.bytes of the events. */
export function takenBy<State>(
  { sizeOf }: Pick<Decider<State, never>, 'sizeOf'>,
  { state, commands, bytes }: Pick<Kept<State>, 'state' | 'commands' | 'bytes'>,
): number {
  return sizeOf ? sizeOf(state) + commands.bytes : bytes
}

/** Of their texts. */
export function sizeOf(events: readonly Pick<StoredEvent, 'data' | 'metadata'>[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0)
}

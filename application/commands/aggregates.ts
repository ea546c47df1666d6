import { type Decider, fold, streamOf } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import {
  type EventRegistry,
  type KeyedRequest,
  type RecordedEvent,
  UnreadableEvent,
} from './event-registry.ts'
import { eventsOf } from './events-of.ts'
import { KnownLog, type Seen } from './known-log.ts'
import { RecentCommands } from './recent-commands.ts'
import { RecentlyUsed } from './recently-used.ts'
import { TimeSlice } from './time-slices.ts'

/** An aggregate as loaded: its folded state and the revision of its last event, -1 when it has none. */
export interface Loaded<State> {
  readonly state: State
  readonly revision: number
}

/** A loaded aggregate, the commands that made it, and about how many bytes it takes. */
export interface Kept<State> extends Loaded<State>, Seen {
  readonly commands: RecentCommands
  readonly bytes: number
  /** Of the last event. */
  readonly position: bigint
}

/** How an aggregate began. */
export interface Creation<State> extends Loaded<State> {
  /** Of the last event that was stored with the first one. */
  readonly position: bigint
  readonly keyedRequest: KeyedRequest | null
}

/** The part for callers that only read. */
export interface Reads {
  readonly commands: Pick<Aggregates, 'load'>
}

/** Of a stream without events. */
const NOTHING = { revision: -1, commands: RecentCommands.NONE, bytes: 0, position: LOG_START } as const
/** Events read at once: a page of the largest events stays within a few MiB. */
const READ_PAGE = 32
/** Aggregates of many that are loaded at once. */
const LOADED_AT_ONCE = 64
/** Events in which the first append is looked for: what is created in one append has fewer. */
const FIRST_EVENTS = 8
/** Of all cached aggregates: a state takes about as much as its events, unless its decider knows better. */
const CACHE_BYTES = 48 * 1024 * 1024
/** Streams that are known to be empty, in a cache of their own: probes with invented ids push out no aggregates. */
const EMPTY_STREAMS = 10_000
/** How long one look at the log counts for a request, in milliseconds: one that waits for others looks again. */
const LASTS_MS = 1_000
/** What a cached aggregate takes at the least. */
const AGGREGATE_BYTES = 512

/** What a process keeps of aggregates that were used lately, and how far it knows the log. */
export class AggregateCache {
  readonly known = new KnownLog(() => this.#clear())
  readonly #aggregates: RecentlyUsed<string, Kept<unknown>>
  /** Of streams without events. */
  readonly #empty = new RecentlyUsed<string, Kept<unknown>>(EMPTY_STREAMS)

  /** @param mostBytes of all aggregates, about. */
  constructor(mostBytes = CACHE_BYTES) {
    this.#aggregates = new RecentlyUsed(mostBytes, ({ bytes }) => AGGREGATE_BYTES + bytes)
  }

  get(stream: string): Kept<unknown> | undefined {
    return this.#aggregates.get(stream) ?? this.#empty.get(stream)
  }

  /** Keeps a state, unless a later one is kept. */
  set(stream: string, loaded: Kept<unknown>): void {
    if ((this.get(stream)?.revision ?? -1) > loaded.revision) return
    if (loaded.revision < 0) this.#empty.set(stream, loaded)
    else {
      this.#empty.delete(stream)
      this.#aggregates.set(stream, loaded)
    }
  }

  delete(stream: string): void {
    this.#empty.delete(stream)
    this.#aggregates.delete(stream)
  }

  #clear(): void {
    this.#empty.clear()
    this.#aggregates.clear()
  }
}

/** As of when a request reads what is cached. */
export class Moment {
  #asked: Promise<void> | undefined
  /** On the clock of `performance.now()`. */
  #askedAt = 0
  /** The furthest event that the request has seen. */
  #seen = LOG_START

  /**
   * Waits until the process knows of every append that was stored when the request first asked, or a moment ago where it
   * takes long, and of those before any that it has seen since.
   */
  reached(log: EventLog, known: KnownLog): Promise<void> {
    const isOver = performance.now() - this.#askedAt > LASTS_MS
    if (this.#asked && !isOver && this.#seen <= known.reached) return this.#asked
    this.#askedAt = performance.now()
    this.#asked = known.catchUp(log)
    return this.#asked
  }

  saw(position: bigint): void {
    if (position > this.#seen) this.#seen = position
  }
}

/**
 * Reads aggregates, from what is cached of them as far as that is the present state. Who decides on a cached state and
 * appends at exactly its revision need not ask: the append does.
 */
export class Aggregates {
  protected readonly log: EventLog
  protected readonly registry: EventRegistry
  protected readonly cache: AggregateCache
  readonly #moment: Moment | undefined
  #turn: TimeSlice | undefined

  /** @param moment of the request that they are read for; default: each read is as of its own. */
  constructor(log: EventLog, registry: EventRegistry, cache: AggregateCache, moment?: Moment) {
    this.log = log
    this.registry = registry
    this.cache = cache
    this.#moment = moment
  }

  /**
   * The present state of an aggregate, never stale: what is cached counts where nobody else can write to the log, else
   * once the process knows the log up to its head.
   */
  async load<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Kept<State>> {
    const stream = streamOf(decider, id)
    if (!this.log.isExclusive && this.cached(stream)) {
      await (this.#moment ?? new Moment()).reached(this.log, this.cache.known)
    }
    const cached = this.cached<State>(stream)
    if (!cached || !this.cache.known.isCurrent(stream, cached)) return this.readOn(decider, stream, cached)
    this.#moment?.saw(cached.position)
    return cached
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

  /** The states of several, in the order of the ids; null of one that cannot be read, which keeps no others. */
  loadReadable<State, Command, Event extends DomainEvent>(
    decider: Decider<State | null, Command, Event>,
    ids: readonly string[],
  ): Promise<readonly (State | null)[]> {
    const load = async (id: string) => {
      try {
        return (await this.load(decider, id)).state
      } catch (error) {
        if (error instanceof UnreadableEvent) return null
        throw error
      }
    }
    return Promise.all(ids.map(load))
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
    const page = await this.log.readStream(stream, { maxCount: FIRST_EVENTS })
    const events = page.map((stored) => this.registry.decode(stored))
    const [first] = events
    if (!first) return null
    const isFirst = ({ metadata }: RecordedEvent) => metadata.command_id === first.metadata.command_id
    const end = first.metadata.command_id === undefined ? 1 : events.findIndex((event) => !isFirst(event))
    const created = end < 0 ? events : events.slice(0, end)
    const { position, revision } = created.at(-1)!
    this.#moment?.saw(position)
    const state = fold(decider, created as unknown as readonly Event[])
    return { state, revision, position, keyedRequest: first.metadata.keyed_request ?? null }
  }

  /** Position of the last event that a command has in a stream, null when it has none. */
  protected async doneAt(
    stream: string,
    { commands }: Kept<unknown>,
    commandId: string,
    lookBeyond: boolean,
  ): Promise<bigint | null> {
    const known = commands.positionOf(commandId)
    if (known !== null || commands.areAll || !lookBeyond) return known
    let position: bigint | null = null
    for await (const stored of eventsOf(this.log, stream, { pageSize: READ_PAGE })) {
      if (this.registry.decode(stored).metadata.command_id === commandId) position = stored.position
    }
    return position
  }

  /** A state as it was once for certain. */
  protected cached<State>(stream: string): Kept<State> | undefined {
    return this.cache.get(stream) as Kept<State> | undefined
  }

  /** Forgets a stream: the next load reads what is stored. */
  protected forget(stream: string): void {
    this.cache.delete(stream)
  }

  /** Reads what came after a state, default all of the stream, and remembers it. */
  protected async readOn<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    from?: Kept<State>,
  ): Promise<Kept<State>> {
    const asOf = this.cache.known.reached
    let { commands, bytes, position } = (from ?? NOTHING) as Omit<Kept<State>, 'state'>
    const start = from ?? { state: decider.initialState, revision: -1 }
    const loaded = await this.#fold(decider, stream, start, ({ metadata }, stored) => {
      position = stored.position
      if (metadata.command_id !== undefined) commands = commands.with(metadata.command_id, position)
      bytes += sizeOf([stored])
    })
    const taken = takenBy(decider, { ...loaded, commands, bytes })
    const kept = { ...loaded, commands, bytes: taken, position, asOf }
    this.cache.set(stream, kept)
    this.#moment?.saw(position)
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
      const page = await this.log.readStream(stream, { from: revision + 1, maxCount })
      // many that are read together are not folded in one go
      const slice = this.#sliceOfTurn()
      for (let pause = slice.over(); pause; pause = slice.over()) await pause
      for (const stored of page) {
        expectNext(stored, revision + 1)
        const event = this.registry.decode(stored)
        state = decider.evolve(state, event as unknown as Event)
        revision = stored.revision
        seen(event, stored)
      }
      if (page.length < maxCount) break
    }
    return { state, revision }
  }

  /** Begins with the first fold of a turn of the event loop: time spent waiting for reads is not the folds'. */
  #sliceOfTurn(): TimeSlice {
    if (!this.#turn) {
      this.#turn = new TimeSlice()
      setImmediate(() => {
        this.#turn = undefined
      })
    }
    return this.#turn
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

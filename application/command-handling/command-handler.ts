import { isoTime } from '../../domain/kernel/calendar.ts'
import { type Decider, fold, streamOf } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { EventRegistry, KeyedRequest, RecordedEvent } from '../event-registry.ts'
import type { Clock } from '../ports/clock.ts'
import { type EventLog, type StoredEvent, WrongExpectedRevision } from '../ports/event-log.ts'
import { RecentlyUsed } from '../recently-used.ts'
import { type CommandContext, commandIdOf } from './command-context.ts'
import { RecentCommands } from './recent-commands.ts'

/** A command that went through. `position` is null when there was nothing to do. */
export interface Executed<State, Event> {
  readonly state: State
  /** Revision of the stream's last event, -1 when it is empty. */
  readonly revision: number
  /** Empty also where an earlier attempt stored them. */
  readonly events: readonly Event[]
  readonly position: bigint | null
}

/** An aggregate as loaded: its folded state and the revision of its last event, -1 when it has none. */
export interface Loaded<State> {
  readonly state: State
  readonly revision: number
}

/** A loaded aggregate, the commands that made it, and the size of the events that it was folded from. */
interface Kept<State> extends Loaded<State> {
  readonly commands: RecentCommands
  readonly bytes: number
}

/** How an aggregate began. */
export interface Creation<State> extends Loaded<State> {
  /** Of the last event that was stored with the first one. */
  readonly position: bigint
  readonly keyedRequest: KeyedRequest | null
}

/** Commands have a type, by which the steps of a request are told apart. */
interface Typed {
  readonly type: string
}

/** Reads aggregates for what is decided by them. */
export type Reader = Pick<CommandHandler, 'load'>
/** What those work with who only read. */
export interface Reads {
  readonly commands: Reader
}

/** Events read at once: a page of the largest events stays within a few MiB. */
const READ_PAGE = 32
/** Events in which the first append is looked for: what is created in one append has fewer. */
const FIRST_EVENTS = 8
const ATTEMPTS = 10
/** Of the events that the cached aggregates were folded from; a state takes about as much as they do. */
const CACHE_BYTES = 64 * 1024 * 1024
/** What a cached aggregate takes at the least. */
const AGGREGATE_BYTES = 512

/** Keeps the aggregates that were used lately. @param mostBytes of the events that they were folded from. */
export function aggregateCache(mostBytes = CACHE_BYTES): RecentlyUsed<string, Kept<unknown>> {
  return new RecentlyUsed(mostBytes, ({ bytes }) => AGGREGATE_BYTES + bytes)
}

/**
 * Loads aggregates and runs commands on them: decide on the cached state, append at exactly its revision. A conflict
 * reads on and decides again, a bounded number of times; nobody is refused by a state that may be stale.
 */
export class CommandHandler {
  readonly #log: EventLog
  readonly #registry: EventRegistry
  readonly #clock: Clock
  readonly #cache: RecentlyUsed<string, Kept<unknown>>

  constructor(log: EventLog, registry: EventRegistry, clock: Clock, cache = aggregateCache()) {
    this.#log = log
    this.#registry = registry
    this.#clock = clock
    this.#cache = cache
  }

  /** The same handler over another view of the same log, such as one with another patience. */
  over(log: EventLog): CommandHandler {
    return new CommandHandler(log, this.#registry, this.#clock, this.#cache)
  }

  /**
   * The present state of an aggregate, never stale: what is cached counts where nobody else can write to the log, else
   * when the log says that the stream has not gone on. Many who load at once cost one look.
   */
  async load<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Loaded<State>> {
    const stream = streamOf(decider, id)
    const cached = this.#cached<State>(stream)
    if (cached && (this.#log.isExclusive || (await this.#log.revision(stream)) === cached.revision))
      return cached
    return this.#readOn(decider, stream, cached)
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
        const cached = this.#cached<never>(stream)
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
    const cached = this.#cached<State>(stream)
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

  /**
   * Decides one or several commands in a row on one aggregate and appends what they yield as one
   * append, all or nothing. The first rejection rejects them all. A command that an earlier attempt carried out is
   * done: what is stored is its result.
   */
  async execute<State, Command extends Typed, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    commands: Command | readonly Command[],
    context: CommandContext,
  ): Promise<Executed<State, Event> | Rejection> {
    const stream = streamOf(decider, id)
    const list = Array.isArray(commands) ? (commands as readonly Command[]) : [commands as Command]
    const commandId = commandIdOf(context, stream, list[0]!.type)
    let at = this.#cached<State>(stream)
    let isFresh = at === undefined || this.#log.isExclusive
    at ??= await this.#readOn(decider, stream)
    for (let attempt = 1; ; ) {
      const doneAt = await this.#doneAt(stream, at, commandId, context.mayRepeat ?? false)
      const decision = doneAt === null ? decideAll(decider, list, at.state) : nothingFrom(at.state)
      if (isRejection(decision) || decision.events.length === 0) {
        if (isFresh) {
          if (isRejection(decision)) return decision
          return { state: at.state, revision: at.revision, events: [], position: doneAt }
        }
        at = await this.#refreshed(decider, stream, at)
        isFresh = true
        continue
      }
      try {
        const after = await this.#append(stream, at, decision, commandId, context)
        return { ...after, events: decision.events }
      } catch (error) {
        if (!(error instanceof WrongExpectedRevision) || attempt >= ATTEMPTS) throw error
        attempt += 1
        at = await this.#readOn(decider, stream, at)
        isFresh = true
      }
    }
  }

  /**
   * Decides a command that creates an aggregate, and appends what it yields as the first events of its stream, which
   * is not read before.
   * @throws WrongExpectedRevision when the stream is there already.
   */
  async create<State, Command extends Typed, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    command: Command,
    context: CommandContext,
  ): Promise<(Executed<State, Event> & { readonly position: bigint }) | Rejection> {
    const decision = decideAll(decider, [command], decider.initialState)
    if (isRejection(decision)) return decision
    const start = { state: decider.initialState, revision: -1 }
    return {
      ...(await this.appendAt(decider, id, start, decision.events, context)),
      events: decision.events,
    }
  }

  /**
   * Appends events decided by the caller at exactly a revision, without deciding again on conflict: for who creates a
   * stream, and for writers that own one for a while, such as the payroll pipeline. They go by the state alone.
   * @throws WrongExpectedRevision when somebody else wrote in between.
   */
  async appendAt<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    at: Loaded<State>,
    events: readonly Event[],
    context: CommandContext,
  ): Promise<Loaded<State> & { readonly position: bigint }> {
    const stream = streamOf(decider, id)
    const { commands = RecentCommands.UNKNOWN, bytes = 0 } = at as Partial<Kept<State>>
    const before = { ...at, bytes, commands: at.revision < 0 ? RecentCommands.NONE : commands }
    const decided = { state: fold(decider, events, at.state), events }
    try {
      return await this.#append(stream, before, decided, commandIdOf(context, stream, 'append'), context)
    } catch (error) {
      // who goes on from here reads what stands
      this.#cache.delete(stream)
      throw error
    }
  }

  /** Whether a command of the context's request, of a type, has gone through on an aggregate. */
  async isDone<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    type: string,
    context: CommandContext,
  ): Promise<boolean> {
    const stream = streamOf(decider, id)
    const at = (await this.load(decider, id)) as Kept<State>
    return (await this.#doneAt(stream, at, commandIdOf(context, stream, type), true)) !== null
  }

  async #append<State>(
    stream: string,
    at: Kept<State>,
    { state, events }: { readonly state: State; readonly events: readonly DomainEvent[] },
    commandId: string,
    context: CommandContext,
  ): Promise<Kept<State> & { readonly position: bigint }> {
    const encoded = this.#registry.encodeAll(events, {
      tenant_id: context.tenantId,
      environment: context.environment,
      actor: context.actor,
      correlation_id: context.correlationId,
      causation_id: context.causationId ?? context.correlationId,
      command_id: commandId,
      ...(context.keyedRequest ? { keyed_request: context.keyedRequest } : {}),
      recorded_at: isoTime(this.#clock.now()),
    })
    try {
      const { position } = await this.#log.append(stream, at.revision, encoded)
      const commands = at.commands.with(commandId, position)
      const after = {
        state,
        revision: at.revision + events.length,
        commands,
        bytes: at.bytes + sizeOf(encoded),
      }
      this.#remember(stream, after)
      return { ...after, position }
    } catch (error) {
      // it may have been stored for all that is known
      if (!(error instanceof WrongExpectedRevision)) this.#cache.delete(stream)
      throw error
    }
  }

  /** Position of the last event that a command has in a stream, null when it has none. */
  async #doneAt(
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

  #cached<State>(stream: string): Kept<State> | undefined {
    return this.#cache.get(stream) as Kept<State> | undefined
  }

  /** A state as it is now, read only when the stream has gone on. */
  async #refreshed<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    at: Kept<State>,
  ): Promise<Kept<State>> {
    return (await this.#log.revision(stream)) === at.revision ? at : this.#readOn(decider, stream, at)
  }

  /** Reads what came after a state, default all of the stream, and remembers it. */
  async #readOn<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    from?: Kept<State>,
  ): Promise<Kept<State>> {
    let { commands, bytes } = from ?? { commands: RecentCommands.NONE, bytes: 0 }
    const start = from ?? { state: decider.initialState, revision: -1 }
    const loaded = await this.#fold(decider, stream, start, ({ metadata, position }, stored) => {
      if (metadata.command_id !== undefined) commands = commands.with(metadata.command_id, position)
      bytes += sizeOf([stored])
    })
    const kept = { ...loaded, commands, bytes }
    this.#remember(stream, kept)
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

  #remember(stream: string, loaded: Kept<unknown>): void {
    const cached = this.#cache.get(stream)
    // an empty stream is not remembered: probes with invented ids would push real aggregates out
    if (loaded.revision >= 0 && (!cached || cached.revision <= loaded.revision))
      this.#cache.set(stream, loaded)
  }
}

/** What is decided on half a stream would be wrong. */
function expectNext({ stream, revision }: StoredEvent, expected: number): void {
  if (revision !== expected) throw new Error(`Stream ${stream} lacks the event at revision ${expected}`)
}

/** Of their texts. */
function sizeOf(events: readonly Pick<StoredEvent, 'data' | 'metadata'>[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0)
}

function nothingFrom<State>(state: State): { state: State; events: readonly never[] } {
  return { state, events: [] }
}

/** Decides commands one after another on the state that each leaves behind. */
export function decideAll<State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
  commands: readonly Command[],
  from: State,
): { state: State; events: readonly Event[] } | Rejection {
  let state = from
  const events: Event[] = []
  for (const command of commands) {
    const decision = decider.decide(command, state)
    if (isRejection(decision)) return decision
    for (const event of decision) {
      events.push(event)
      state = decider.evolve(state, event)
    }
  }
  return { state, events }
}

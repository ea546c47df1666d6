import { isoTime } from '../../domain/kernel/calendar.ts'
import { type Decider, fold, streamOf } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { type Actor, derivedEventId, type EventMetadata, type EventRegistry } from '../event-store.ts'
import type { Clock } from '../ports/clock.ts'
import {
  EventIdTaken,
  type EventLog,
  type ExpectedRevision,
  LOG_START,
  type StoredEvent,
  WrongExpectedRevision,
} from '../ports/event-log.ts'
import { RecentlyUsed } from './recently-used.ts'

/** On whose behalf and because of what a command runs. */
export interface CommandContext {
  readonly actor: Actor
  readonly tenantId: string | null
  readonly environment: Environment | null
  readonly correlationId: string
  /** Event or command that caused this one; default the correlation id. */
  readonly causationId?: string
  /** Event ids derive from it: the same command id again is the same append. */
  readonly commandId: string
}

/** A command that went through. `position` is null when there was nothing to do. */
export interface Executed<State, Event> {
  readonly state: State
  /** Revision of the stream's last event, -1 when it is empty. */
  readonly revision: number
  readonly events: readonly Event[]
  readonly position: bigint | null
}

/** An aggregate as loaded: its folded state and the revision of its last event, -1 when it has none. */
export interface Loaded<State> {
  readonly state: State
  readonly revision: number
}

/** Events read at once: a page of the largest events stays within a few MiB. */
const READ_PAGE = 32
const ATTEMPTS = 10
const CACHED_AGGREGATES = 20_000

/**
 * Loads aggregates and runs commands on them: read the stream, fold, decide, append at exactly the
 * revision that was decided on; on a conflict decide again on the fresh state, a bounded number of times.
 */
export class CommandHandler {
  readonly #log: EventLog
  readonly #registry: EventRegistry
  readonly #clock: Clock
  readonly #cache: RecentlyUsed<string, Loaded<unknown>>

  constructor(
    log: EventLog,
    registry: EventRegistry,
    clock: Clock,
    cache = new RecentlyUsed<string, Loaded<unknown>>(CACHED_AGGREGATES),
  ) {
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
   * The present state of an aggregate, never stale: what is cached is used as it is while this process is
   * the log's sole writer, or when the log says that it is current; else the stream is read on from there.
   */
  async load<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Promise<Loaded<State>> {
    const stream = streamOf(decider, id)
    const cached = this.#cache.get(stream) as Loaded<State> | undefined
    if (cached && (this.#log.soleWriter() || (await this.#log.revision(stream)) === cached.revision))
      return cached
    const loaded = await this.#readOn(
      decider,
      stream,
      cached ?? { state: decider.initialState, revision: -1 },
    )
    this.#remember(stream, loaded)
    return loaded
  }

  /** The state of an aggregate as of a revision of its stream (inclusive). */
  async loadAt<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    revision: number,
  ): Promise<Loaded<State>> {
    const stream = streamOf(decider, id)
    const cached = this.#cache.get(stream) as Loaded<State> | undefined
    if (cached?.revision === revision) return cached
    return this.#readOn(decider, stream, { state: decider.initialState, revision: -1 }, revision)
  }

  /**
   * Decides one or several commands in a row on one aggregate and appends what they yield as one
   * append, all or nothing. The first rejection rejects them all.
   */
  async execute<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    commands: Command | readonly Command[],
    context: CommandContext,
  ): Promise<Executed<State, Event> | Rejection> {
    const stream = streamOf(decider, id)
    const list = Array.isArray(commands) ? (commands as readonly Command[]) : [commands as Command]
    for (let attempt = 1; ; attempt += 1) {
      const before = await this.load(decider, id)
      const decision = decideAll(decider, list, before.state)
      if (isRejection(decision)) {
        const repeated = await this.#alreadyDone(decider, stream, context.commandId)
        return repeated ?? decision
      }
      if (decision.events.length === 0) {
        return { state: before.state, revision: before.revision, events: [], position: null }
      }
      const expected: ExpectedRevision = before.revision < 0 ? 'noStream' : { exactly: before.revision }
      try {
        const result = await this.#log.append(stream, expected, this.#encode(decision.events, context))
        if (result.repeated) {
          this.#cache.delete(stream)
          const stored = await this.load(decider, id)
          return { ...stored, events: decision.events, position: result.position }
        }
        const after = { state: decision.state, revision: before.revision + decision.events.length }
        this.#remember(stream, after)
        return { ...after, events: decision.events, position: result.position }
      } catch (error) {
        // also after an unknown outcome: the append may have been stored
        this.#cache.delete(stream)
        if (error instanceof EventIdTaken) {
          // a retry that decided on fresh state: its first attempt was stored, at an earlier revision
          const done = await this.#alreadyDone(decider, stream, context.commandId)
          if (done) return done
        }
        if (!(error instanceof WrongExpectedRevision) || attempt >= ATTEMPTS) throw error
      }
    }
  }

  /**
   * Appends events decided by the caller at exactly a revision, without deciding again on conflict:
   * for writers that own a stream for a while, such as the payroll pipeline.
   * @throws WrongExpectedRevision when somebody else wrote in between.
   */
  async appendAt<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    at: Loaded<State>,
    events: readonly Event[],
    context: CommandContext,
  ): Promise<Loaded<State> & { position: bigint }> {
    const stream = streamOf(decider, id)
    const expected: ExpectedRevision = at.revision < 0 ? 'noStream' : { exactly: at.revision }
    try {
      const result = await this.#log.append(stream, expected, this.#encode(events, context))
      if (result.repeated) {
        // an earlier attempt stored these events; what it decided counts, not what was decided now
        this.#cache.delete(stream)
        return { ...(await this.load(decider, id)), position: result.position }
      }
      const after = { state: fold(decider, events, at.state), revision: at.revision + events.length }
      this.#remember(stream, after)
      return { ...after, position: result.position }
    } catch (error) {
      this.#cache.delete(stream)
      throw error
    }
  }

  /** Whether a command has gone through on an aggregate before. */
  async isDone<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    commandId: string,
  ): Promise<boolean> {
    return (await this.#alreadyDone(decider, streamOf(decider, id), commandId)) !== null
  }

  #encode(events: readonly DomainEvent[], context: CommandContext) {
    const metadata: Omit<EventMetadata, 'schema_version'> = {
      tenant_id: context.tenantId,
      environment: context.environment,
      actor: context.actor,
      correlation_id: context.correlationId,
      causation_id: context.causationId ?? context.correlationId,
      recorded_at: isoTime(this.#clock.now()),
    }
    return events.map((event, index) =>
      this.#registry.encode(event, derivedEventId(context.commandId, index), metadata),
    )
  }

  /** A retried command finds its own events in the stream: then it went through the first time. */
  async #alreadyDone<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    commandId: string,
  ): Promise<Executed<State, Event> | null> {
    const first = derivedEventId(commandId, 0)
    let state = decider.initialState
    let position: bigint = LOG_START
    let found = false
    let revision = -1
    for (;;) {
      const page = await this.#log.readStream(stream, { from: revision + 1, maxCount: READ_PAGE })
      for (const stored of page) {
        expectNext(stored, revision + 1)
        if (stored.eventId === first) found = true
        if (found && position < stored.position) position = stored.position
        state = decider.evolve(state, this.#registry.decode(stored) as unknown as Event)
        revision = stored.revision
      }
      if (page.length < READ_PAGE) break
    }
    return found ? { state, revision, events: [], position } : null
  }

  async #readOn<State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    stream: string,
    from: Loaded<State>,
    upTo = Number.MAX_SAFE_INTEGER,
  ): Promise<Loaded<State>> {
    let { state, revision } = from
    while (revision < upTo) {
      const maxCount = Math.min(READ_PAGE, upTo - revision)
      const page = await this.#log.readStream(stream, { from: revision + 1, maxCount })
      for (const stored of page) {
        expectNext(stored, revision + 1)
        state = decider.evolve(state, this.#registry.decode(stored) as unknown as Event)
        revision = stored.revision
      }
      if (page.length < maxCount) break
    }
    return { state, revision }
  }

  #remember(stream: string, loaded: Loaded<unknown>): void {
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

import { isoTime } from '../../domain/kernel/calendar.ts'
import { type Decider, fold, streamOf } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Clock } from '../ports/clock.ts'
import { type EventLog, WrongExpectedRevision } from '../ports/event-log.ts'
import { traced, traceparent } from '../ports/tracing.ts'
import { AggregateCache, Aggregates, type Kept, type Loaded, Moment, sizeOf, takenBy } from './aggregates.ts'
import { type CommandContext, commandIdOf } from './command-context.ts'
import type { EventRegistry } from './event-registry.ts'
import { RecentCommands } from './recent-commands.ts'
import { Turns } from './turns.ts'

export type { Creation, Loaded, Reads } from './aggregates.ts'

/** A command that went through. `position` is null when there was nothing to do. */
export interface Executed<State, Event> {
  readonly state: State
  /** Revision of the stream's last event, -1 when it is empty. */
  readonly revision: number
  /** Empty also where an earlier attempt stored them. */
  readonly events: readonly Event[]
  readonly position: bigint | null
}

/** Commands have a type, by which the steps of a request are told apart. */
interface Typed {
  readonly type: string
}

/** Commands on one aggregate, as one step of a request. */
interface Step<State, Command, Event extends DomainEvent> {
  readonly decider: Decider<State, Command, Event>
  readonly id: string
  readonly stream: string
  readonly commands: readonly Command[]
  readonly commandId: string
  readonly context: CommandContext
}

/** Times that other processes may be faster. */
const ATTEMPTS = 10

/**
 * Runs commands on aggregates: decide on the cached state, append at exactly its revision. After a conflict a command reads on and
 * decides again, after all that met one in this process before; no command is refused by a state that may be stale.
 */
export class CommandHandler extends Aggregates {
  readonly #clock: Clock
  /** Of this process, whichever the view of the log. */
  readonly turns: Turns

  constructor(
    log: EventLog,
    registry: EventRegistry,
    clock: Clock,
    cache = new AggregateCache(),
    turns = new Turns(),
    moment?: Moment,
  ) {
    super(log, registry, cache, moment)
    this.#clock = clock
    this.turns = turns
  }

  /** The same handler over another view of the same log, such as one with another patience. */
  over(log: EventLog): CommandHandler {
    return new CommandHandler(log, this.registry, this.#clock, this.cache, this.turns)
  }

  /**
   * The same handler for one request: everything that it reads is the present as of the first read, or of a later moment,
   * for which one look at the log is enough.
   */
  asOfNow(): CommandHandler {
    return new CommandHandler(this.log, this.registry, this.#clock, this.cache, this.turns, new Moment())
  }

  /**
   * Decides one or several commands in a row on one aggregate and appends what they yield as one
   * append, all or nothing. The first rejection rejects them all. A command that an earlier attempt carried out is
   * done: what is stored is its result.
   * @throws WrongExpectedRevision when other processes were faster again and again.
   */
  async execute<State, Command extends Typed, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    commands: Command | readonly Command[],
    context: CommandContext,
  ): Promise<Executed<State, Event> | Rejection> {
    const stream = streamOf(decider, id)
    const list = Array.isArray(commands) ? (commands as readonly Command[]) : [commands as Command]
    const { type } = list[0]!
    const commandId = commandIdOf(context, stream, type)
    return tracedCommand(decider, type, context, () =>
      this.#execute({ decider, id, stream, commands: list, commandId, context }),
    )
  }

  async #execute<State, Command extends Typed, Event extends DomainEvent>(
    step: Step<State, Command, Event>,
  ): Promise<Executed<State, Event> | Rejection> {
    const { decider, stream } = step
    const cached = this.cached<State>(stream)
    const isFresh = cached === undefined || this.log.isExclusive
    const at = cached ?? (await this.readOn(decider, stream))
    const decided = await this.#attempt(step, at, isFresh)
    if (!(decided instanceof WrongExpectedRevision)) return decided
    return this.turns.run(stream, async () => {
      for (let attempt = 2; ; attempt += 1) {
        const again = await this.#attempt(step, await this.readOn(decider, stream, at), true)
        if (!(again instanceof WrongExpectedRevision)) return again
        if (attempt === ATTEMPTS) throw again
      }
    })
  }

  /** @param isFresh whether a refusal by that state counts. @returns the conflict when another writer came in between. */
  async #attempt<State, Command, Event extends DomainEvent>(
    step: Step<State, Command, Event>,
    at: Kept<State>,
    isFresh: boolean,
  ): Promise<Executed<State, Event> | Rejection | WrongExpectedRevision> {
    const { decider, id, stream, commands, commandId, context } = step
    const doneAt = await this.doneAt(stream, at, commandId, context.mayRepeat ?? false)
    const decision = doneAt === null ? decideAll(decider, commands, at.state) : nothingFrom(at.state)
    if (isRejection(decision) || decision.events.length === 0) {
      if (!isFresh) return this.#attempt(step, await this.load(decider, id), true)
      if (isRejection(decision)) return decision
      return { state: at.state, revision: at.revision, events: [], position: doneAt }
    }
    try {
      const after = await this.#append(decider, stream, at, decision, commandId, context)
      return { ...after, events: decision.events }
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return error
      throw error
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
    return tracedCommand(decider, command.type, context, async () => {
      const decision = decideAll(decider, [command], decider.initialState)
      if (isRejection(decision)) return decision
      const start = { state: decider.initialState, revision: -1 }
      return {
        ...(await this.appendAt(decider, id, start, decision.events, context)),
        events: decision.events,
      }
    })
  }

  /**
   * Appends events decided by the caller at exactly a revision, without deciding again on conflict: for who creates a
   * stream, and for writers that own one for a while, such as the payroll pipeline. They go by the state alone.
   * @throws WrongExpectedRevision when another writer came in between.
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
      const commandId = commandIdOf(context, stream, 'append')
      return await this.#append(decider, stream, before, decided, commandId, context)
    } catch (error) {
      // the next command reads what is stored
      this.forget(stream)
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
    const at = await this.load(decider, id)
    return (await this.doneAt(stream, at, commandIdOf(context, stream, type), true)) !== null
  }

  #append<State>(
    decider: Pick<Decider<State, never>, 'sizeOf'>,
    stream: string,
    at: Pick<Kept<State>, 'revision' | 'commands' | 'bytes'>,
    decided: { readonly state: State; readonly events: readonly DomainEvent[] },
    commandId: string,
    context: CommandContext,
  ): Promise<Kept<State>> {
    const { length } = decided.events
    return traced({ name: 'append', attributes: { stream, events: length } }, async (tell) => {
      const after = await this.#store(decider, stream, at, decided, commandId, context)
      tell({ position: String(after.position), revision: after.revision })
      return after
    })
  }

  async #store<State>(
    decider: Pick<Decider<State, never>, 'sizeOf'>,
    stream: string,
    at: Pick<Kept<State>, 'revision' | 'commands' | 'bytes'>,
    { state, events }: { readonly state: State; readonly events: readonly DomainEvent[] },
    commandId: string,
    context: CommandContext,
  ): Promise<Kept<State>> {
    const step = traceparent()
    const encoded = this.registry.encodeAll(events, {
      tenant_id: context.tenantId,
      environment: context.environment,
      actor: context.actor,
      correlation_id: context.correlationId,
      causation_id: context.causationId ?? context.correlationId,
      command_id: commandId,
      ...(context.keyedRequest ? { keyed_request: context.keyedRequest } : {}),
      ...(context.foundBy ? { found_by: context.foundBy } : {}),
      ...(step === undefined ? {} : { traceparent: step }),
      recorded_at: isoTime(this.#clock.now()),
    })
    const { known } = this.cache
    const asOf = known.reached
    try {
      const { position } = await this.log.append(stream, at.revision, encoded)
      const revision = at.revision + events.length
      known.appended(stream, revision, position, this.log.isGapless ? position - BigInt(events.length) : null)
      const commands = at.commands.with(commandId, position)
      const after = {
        state,
        revision,
        commands,
        bytes: takenBy(decider, { state, commands, bytes: at.bytes + sizeOf(encoded) }),
        position,
        asOf,
      }
      this.cache.set(stream, after)
      return after
    } catch (error) {
      // it may have been stored for all that is known
      if (!(error instanceof WrongExpectedRevision)) this.forget(stream)
      throw error
    }
  }
}

function tracedCommand<State, Event, Outcome extends Executed<State, Event>>(
  { category }: { readonly category: string },
  type: string,
  { correlationId, tenantId }: CommandContext,
  run: () => Promise<Outcome | Rejection>,
): Promise<Outcome | Rejection> {
  const attributes = { correlation_id: correlationId, tenant_id: tenantId }
  return traced({ name: `command ${category} ${type}`, attributes }, async (tell) => {
    const outcome = await run()
    if (isRejection(outcome)) tell({ rejection: outcome.code })
    return outcome
  })
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

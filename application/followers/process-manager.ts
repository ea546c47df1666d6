import { z } from 'zod'
import type { EventOf, EventType } from '../../domain/kernel/event-type.ts'
import type { CommandContext } from '../commands/command-context.ts'
import type { RecordedEvent } from '../commands/event-registry.ts'
import type { FaultPoint } from '../ports/faults.ts'
import { ReadModelsLate } from '../ports/read-models.ts'

/**
 * A process manager reacts to the log and does what must happen next. Reactions are pure and yield intents; they are
 * stored together with the checkpoint, and workers in every process carry the work out under a lease, at least once,
 * so that effects must be keyed: see {@link WorkItem.commandId}.
 */
export interface ProcessManager {
  readonly name: string
  /**
   * Where it begins when it runs for the first time: with the log's first event, or with what happens after a service
   * first started that has it. What it does outside for history that it was not there for belongs to `registration`.
   */
  readonly startAt: 'beginning' | 'registration'
  /**
   * Finds out what reactions to a stretch of the log need beside the events, and keeps what must be there before the work
   * is. It may come again with the same events: what it keeps must be keyed. What it throws is tried again, all of it.
   */
  readonly prepare?: (events: readonly RecordedEvent[]) => Promise<unknown>
  /** Events that it reacts to at a time, at the most; default: as many as the runner takes. */
  readonly pageSize?: number
  readonly on: readonly Reaction[]
  readonly work: Readonly<Record<string, WorkKind>>
}

/** What follows from one type of event, and from what was prepared for it. */
export interface Reaction<I extends Intent = Intent, Prepared = never> {
  readonly type: EventType
  readonly react: (event: RecordedEvent, prepared: Prepared) => readonly I[]
}

/** Work to be done, or no longer to be done. Of several about one piece, the last one counts. */
export type Intent<Kind extends string = string, Payload = unknown> =
  | {
      readonly intent: 'perform'
      readonly kind: Kind
      readonly key: string
      readonly payload: Payload
      readonly dueAt?: number
    }
  | { readonly intent: 'cancel'; readonly kind: Kind; readonly key: string }

/** How one kind of work is done. */
export interface WorkKind<Payload = unknown> {
  /** What is stored with a piece; checked when it is stored and when it is read back. */
  readonly payload: z.ZodType<Payload>
  /** Pieces of this kind that one process works on at the same time, whatever other kinds do; default 4. */
  readonly slots: number
  /**
   * How many of them may be about the same thing (a host, a tenant). A process counts its own: with n worker processes
   * n times as many.
   */
  readonly perKey?: SlotsPerKey<Payload>
  /** The process that stores a piece begins it, where it has a slot and knows of none that waits; default: a claim finds it. */
  readonly isBegunAsStored?: true
  readonly retry: Retry
  /** Real milliseconds that one attempt may take. Then its signal aborts, and it counts as a failed try. */
  readonly timeLimitMs: number
  run(item: WorkItem<Payload>): Promise<WorkOutcome<Payload>>
}

export interface SlotsPerKey<Payload = unknown> {
  /** What every key has. */
  readonly slots: number
  of(payload: Payload): string
  /** Keys whose work is done quickly get more slots, one for each piece that is; they lose half of them with each that is not. */
  readonly growth?: {
    /** Slots of a key at the most. */
    readonly upTo: number
    /** Keys that share something (a host, a tenant) have this many slots together at the most, their first ones included. */
    readonly shared: {
      readonly slots: number
      of(payload: Payload, tenantId: string | null): readonly string[]
    }
  }
}

/** When a failed try is followed by the next, and how many there are. */
export type Retry =
  | { readonly clock: 'service'; readonly rungsMs: readonly number[] }
  | { readonly clock: 'real'; readonly tries: number }

/** Business retries: a try after each of these pauses, in service-clock milliseconds, counted from the end of the try before. */
export function ladder(...rungsMs: readonly number[]): Retry {
  return { clock: 'service', rungsMs }
}

/** Technical retries: in real time, with pauses that double. @param tries in all, default 12. */
export function backoff(tries = 12): Retry {
  return { clock: 'real', tries }
}

/** Tries that a rule allows in all. */
export function triesOf(retry: Retry): number {
  return retry.clock === 'service' ? retry.rungsMs.length + 1 : retry.tries
}

/** A piece of work that a worker has leased. */
export interface WorkItem<Payload = unknown> {
  readonly processManager: string
  readonly kind: string
  readonly key: string
  /**
   * The same at every attempt of this piece, in whichever process, also after a redrive. Commands and keys of calls to
   * providers derive from it: a process that takes the piece over repeats what the silent one may have done, under
   * the same keys, and the other side answers with what it did the first time.
   */
  readonly commandId: string
  readonly payload: Payload
  /** From 1; a try that a crash or a lost lease cut short counts, one that a hold or an orderly stop ended does not. */
  readonly attempt: number
  /** Whether nothing follows a failure by itself. */
  readonly isLastTry: boolean
  /** Service-clock milliseconds at which it was due. */
  readonly dueAt: number
  /** Since when the provider that is to do it is away, in the same; null: it is not known to be. */
  readonly awaySince: number | null
  readonly correlationId: string
  /** Event id that caused it. */
  readonly causationId: string
  readonly tenantId: string | null
  readonly environment: 'live' | 'sandbox' | null
  /** Aborts when the time is up, the lease is lost or the service stops; stop at the next safe point by throwing its reason. */
  readonly signal: AbortSignal
  /**
   * Frees the slot of its key before the work has ended: what the key stands for (a host, a tenant) is not used any more,
   * only what came of it is to be stored. @param isDone whether that went well: see {@link SlotsPerKey.growth}.
   */
  freeKey(isDone: boolean): void
}

/** What the commands of a piece of work run with: its process manager gives them, and they may come again. */
export function contextOf(item: WorkItem): CommandContext {
  const { processManager, tenantId, environment, correlationId, causationId, commandId } = item
  const actor = { type: 'system', id: processManager } as const
  return { actor, tenantId, environment, correlationId, causationId, commandId, mayRepeat: true }
}

/** What became of a piece of work. A thrown error is a `retry`, unless it says that log or database are away. */
export type WorkOutcome<Payload = never> =
  | { readonly outcome: 'done' }
  /** The try failed: the kind's {@link Retry} says what follows. A payload replaces the stored one. */
  | { readonly outcome: 'retry'; readonly why: string; readonly payload?: Payload }
  /** To be done again, with tries counted anew: at a service-clock time, or after real milliseconds. */
  | ({ readonly outcome: 'again'; readonly at: number } & Afresh<Payload>)
  | ({ readonly outcome: 'again'; readonly afterMs: number } & Afresh<Payload>)
  /** An operator holds it at that point on purpose: it goes on by itself when the hold is cleared. */
  | { readonly outcome: 'held'; readonly at: FaultPoint }
  /** No further try; it stays visible to operators with its reason. */
  | { readonly outcome: 'stop'; readonly why: string }

interface Afresh<Payload> {
  readonly payload?: Payload
  /** See {@link WorkItem.awaySince}; absent: as it was. */
  readonly awaySince?: number | null
}

type IntentsOf<Work> = {
  [Kind in keyof Work & string]: Work[Kind] extends WorkKind<infer Payload> ? Intent<Kind, Payload> : never
}[keyof Work & string]

/** Declares a process manager; its intents name kinds of work that it has, with payloads that fit. */
export function processManager<
  const Work extends Readonly<Record<string, WorkKind>>,
  Prepared = unknown,
>(definition: {
  readonly name: string
  readonly startAt: ProcessManager['startAt']
  readonly prepare?: (events: readonly RecordedEvent[]) => Promise<Prepared>
  readonly pageSize?: number
  readonly on: readonly Reaction<IntentsOf<NoInfer<Work>>, NoInfer<Prepared>>[]
  readonly work: Work
}): ProcessManager & { readonly work: Work } {
  return definition
}

/** What a process manager does about an event. @param react pure. */
export function on<Type extends EventType, Intents extends readonly Intent[], Prepared = unknown>(
  type: Type,
  react: (event: RecordedEvent<EventOf<Type>>, prepared: Prepared) => Intents,
): Reaction<Intents[number], Prepared> {
  return { type, react: react as (event: RecordedEvent, prepared: Prepared) => Intents }
}

/**
 * Wants a piece of work done.
 * @param key with process manager and kind, what makes the work one piece; the same again replaces payload and due time.
 * @param options.at a durable timer: service-clock milliseconds; absent = at once.
 */
export function perform<Kind extends string, Payload>(
  kind: Kind,
  key: string,
  payload: Payload,
  options: { readonly at?: number } = {},
): Intent<Kind, Payload> {
  return { intent: 'perform', kind, key, payload, ...(options.at === undefined ? {} : { dueAt: options.at }) }
}

/** Wants a piece of work no longer done. */
export function cancel<Kind extends string>(kind: Kind, key: string): Intent<Kind, never> {
  return { intent: 'cancel', kind, key }
}

/** How long work waits for read models that are late, in real milliseconds. */
export const READS_LATE_MS = 1_000

/**
 * Declares a kind of work and how it is done. What needs read models that are late is done again a little later, for as long as they are.
 * @param declared default: its key says it all, {@link backoff} of 12 tries, 60 seconds for each, 4 slots.
 * @param run where it returns nothing, the work is done.
 */
export function work<Payload = Record<string, never>>(
  declared: Partial<Omit<WorkKind<Payload>, 'run'>>,
  // biome-ignore lint/suspicious/noConfusingVoidType: of functions without a return
  run: (item: WorkItem<Payload>) => Promise<WorkOutcome<Payload> | void>,
): WorkKind<Payload> {
  // without a schema it is the default type that is inferred
  const payload = z.object({}) as z.ZodType<unknown> as z.ZodType<Payload>
  const kind = { payload, retry: backoff(), timeLimitMs: 60_000, slots: 4, ...declared }
  return {
    ...kind,
    async run(item) {
      try {
        return (await run(item)) ?? { outcome: 'done' }
      } catch (error) {
        // one with a cause is no mere matter of time: the workers say so
        const isLate = error instanceof ReadModelsLate && error.cause === undefined
        if (isLate) return { outcome: 'again', afterMs: READS_LATE_MS }
        throw error
      }
    },
  }
}

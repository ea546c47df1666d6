import type { DomainEvent, EventType } from './event-type.ts'
import type { Rejection } from './rejection.ts'

/**
 * An aggregate as three pure values. `decide` returns the events to append, an empty array when
 * there is nothing to do (which is success), or a rejection. Time, ids and random values arrive in
 * the command; nothing here reads a clock, a database or the environment.
 */
export interface Decider<State, Command, Event extends DomainEvent = DomainEvent> {
  /** First part of the stream name: the stream of aggregate `id` is `${category}-${id}`. */
  readonly category: string
  /** Every event type that may stand in a stream of this category. */
  readonly events: readonly EventType[]
  readonly initialState: State
  /**
   * About how many bytes a state takes, where it does not grow with its history; absent where it does, and takes about
   * as much as its events.
   */
  sizeOf?(state: State): number
  evolve(state: State, event: Event): State
  decide(command: Command, state: State): readonly Event[] | Rejection
}

/** The part of a decider that folds a stream, for any state, commands and events. */
export interface Aggregate {
  readonly category: string
  readonly events: readonly EventType[]
  readonly initialState: unknown
  evolve(state: unknown, event: DomainEvent): unknown
}

/** The stream of one aggregate, for example `employer-65f0c0ffee0123456789abcd`. */
export function streamOf(decider: { readonly category: string }, id: string): string {
  return `${decider.category}-${id}`
}

/** Splits a stream name into its category and id; the id may itself contain hyphens. */
export function parseStream(stream: string): { category: string; id: string } {
  const at = stream.indexOf('-')
  return at < 0 ? { category: stream, id: '' } : { category: stream.slice(0, at), id: stream.slice(at + 1) }
}

/** Folds events over the initial state. */
export function fold<State, Event extends DomainEvent>(
  decider: Decider<State, never, Event>,
  events: readonly Event[],
  from: State = decider.initialState,
): State {
  return events.reduce((state, event) => decider.evolve(state, event), from)
}

import { describe, expect, test } from 'vitest'
import { type Decider, fold } from '../../domain/kernel/decider.ts'
import type { DomainEvent, EventType } from '../../domain/kernel/event-type.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'

/** `given(events).when(command).thenEvents(events)` for one decider. */
export interface DeciderSpec<Command, Event> {
  given(...events: readonly Event[]): {
    when(command: Command): {
      /** The command yields exactly these events. */
      thenEvents(...events: readonly Event[]): void
      /** The command is refused for this reason. */
      thenRejection(reason: Pick<Rejection, 'kind' | 'code'>): void
      /** What the command yields, for a closer look; a rejection fails the test. */
      events(): readonly Event[]
    }
  }
}

/** A specification of what a decider decides, given what happened before. */
export function specify<State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
): DeciderSpec<Command, Event> {
  return {
    given: (...history) => ({
      when(command) {
        const decide = () => decider.decide(command, fold(decider, history))
        return {
          thenEvents: (...events) => expect(decide()).toEqual(events),
          thenRejection: (reason) => expect(decide()).toMatchObject({ rejected: true, ...reason }),
          events() {
            const decided = decide()
            if (isRejection(decided)) throw new Error(`rejected: ${decided.message}`)
            return decided
          },
        }
      },
    }),
  }
}

/** One decision: what happened, what is asked for, and the events or the reason of the refusal. */
export type Decision<Command, Event> = readonly [
  title: string,
  given: readonly Event[],
  when: Command,
  outcome: readonly Event[] | Pick<Rejection, 'kind' | 'code'>,
]

/** Categories whose decisions have been declared. */
export const decided: string[] = []

/**
 * Declares a test for each decision of a decider, and one that each of its events is decided by one of them.
 * @param onlyRead events that former versions decided, and none does any more.
 */
export function decisions<State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
  table: readonly Decision<Command, Event>[],
  onlyRead: readonly Pick<EventType, 'name'>[] = [],
): void {
  const { given } = specify(decider)
  decided.push(decider.category)
  describe(decider.category, () => {
    test.each(table)('%s', (_title, history, command, outcome) => {
      const when = given(...history).when(command)
      if ('code' in outcome) when.thenRejection(outcome)
      else when.thenEvents(...outcome)
    })

    test('decides each of its events', () => {
      const types = table.flatMap(([, , , outcome]) =>
        'code' in outcome ? [] : outcome.map(({ type }) => type),
      )
      const all = [...types, ...onlyRead.map(({ name }) => name)]
      expect(new Set(all)).toEqual(new Set(decider.events.map(({ name }) => name)))
    })
  })
}

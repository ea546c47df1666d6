import { expect } from 'vitest'
import { type Decider, fold } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
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

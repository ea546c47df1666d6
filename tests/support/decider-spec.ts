import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { type Decider, fold } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'

/** `given(events).when(command).thenEvents(events)` for one decider. */
interface DeciderSpec<Command, Event> {
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

type Reason = Pick<Rejection, 'kind' | 'code'>

/**
 * One decision: what happened, what is asked for, and the event, the events or the reason of the refusal; a text is the
 * code of a conflict, or of what is not found. What happened may have stretches that other decisions share.
 */
export type Decision<Command, Event> = readonly [
  title: string,
  given: readonly (Event | readonly Event[])[],
  when: Command,
  outcome: Event | readonly Event[] | string | Reason,
]

/** The reason of a refusal; null: it is none. */
function reasonOf(outcome: string | Reason | object): Reason | null {
  if (typeof outcome !== 'string') return 'code' in outcome ? (outcome as Reason) : null
  return { kind: outcome.endsWith('_not_found') ? 'not_found' : 'conflict', code: outcome as Reason['code'] }
}

type Fields<Event extends DomainEvent, Shared> = Omit<Event['data'], keyof Shared> & Partial<Event['data']>

/**
 * Makes events of a decider.
 * @param shared fields that its events have in common: each gets those that its type has, unless it says others.
 */
export function eventsOf<State, Command, Event extends DomainEvent, Shared extends object>(
  decider: Decider<State, Command, Event>,
  shared: Shared,
) {
  return <Type extends Event['type'], One extends Extract<Event, { type: Type }>>(
    type: Type,
    ...[fields]: Record<never, never> extends Fields<One, Shared>
      ? [Fields<One, Shared>?]
      : [Fields<One, Shared>]
  ): One => {
    const { schema } = decider.events.find(({ name }) => name === type)!
    const own = Object.entries(shared).filter(([name]) => name in (schema as z.ZodObject).shape)
    return { type, data: { ...Object.fromEntries(own), ...fields } } as One
  }
}

/** Events that earlier releases decided, and none does any more. */
const ONLY_READ = ['PaymentLinkHeldUp', 'PaymentSessionHeldUp', 'SubscriptionHeldUp', 'BankDebitHeldUp']

/** Declares a test for each decision of a decider, and one that each of its events is decided by one of them. */
export function decisions<State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
  table: readonly Decision<Command, Event>[],
): void {
  const { given } = specify(decider)
  describe(decider.category, () => {
    test.each(table)('%s', (_title, history, command, outcome) => {
      const when = given(...(history.flat() as Event[])).when(command)
      const reason = reasonOf(outcome)
      if (reason) when.thenRejection(reason)
      else when.thenEvents(...([outcome].flat() as Event[]))
    })

    test('decides each of its events', () => {
      const outcomes = table.flatMap(([, , , outcome]) => (reasonOf(outcome) ? [] : outcome)) as Event[]
      const types = outcomes.map(({ type }) => type)
      const names = decider.events.map(({ name }) => name).filter((name) => !ONLY_READ.includes(name))
      expect(new Set(types)).toEqual(new Set(names))
    })
  })
}

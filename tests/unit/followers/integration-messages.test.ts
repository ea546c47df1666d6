import { expect, test } from 'vitest'
import type { CommandHandler } from '../../../application/commands/command-handler.ts'
import {
  INTEGRATION_EVENTS,
  INTEGRATION_SOURCES,
  integrationEventOf,
} from '../../../application/followers/integration-messages.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { type Decider, fold } from '../../../domain/kernel/decider.ts'
import type { DomainEvent, EventType } from '../../../domain/kernel/event-type.ts'
import { sampleFitting } from '../../support/schema-values.ts'

const ID = '65f0c0ffee0123456789abcd'

function sampleOf(type: EventType): DomainEvent {
  return { type: type.name, data: sampleFitting(type.schema, type.name) } as DomainEvent
}

/** Streams that hold no more than their first event. */
const begun = {
  load: async (decider: Decider<unknown, unknown, DomainEvent>) => ({
    state: fold(decider, [sampleOf(decider.events[0]!)]),
  }),
} as unknown as Pick<CommandHandler, 'load'>

const sources = aggregates
  .flatMap(({ events }) => events)
  .filter(({ name }) => INTEGRATION_SOURCES.includes(name))

test('every source is an event type of the log', () => {
  expect(sources.map(({ name }) => name).sort()).toEqual([...INTEGRATION_SOURCES].sort())
})

// a field that an event gains must be left out of its message, or the stream of it is parked
test.each(sources.map((type) => [type.name, type] as const))(
  '%s with every field it can have fits its message',
  async (_, type) => {
    const told = await integrationEventOf(
      {
        position: 1n,
        stream: `golden-${ID}`,
        revision: 0,
        eventId: '00000000-0000-8000-8000-000000000000',
        ...sampleOf(type),
        metadata: {
          tenant_id: ID,
          environment: 'sandbox',
          recorded_at: '2026-01-31T12:00:00.000Z',
          correlation_id: 'correlation',
        },
      } as never,
      begun,
    )
    const { type: word, data } = JSON.parse(told!.text)
    expect(Object.keys(data).sort()).toEqual(
      Object.keys(INTEGRATION_EVENTS[word as keyof typeof INTEGRATION_EVENTS].shape).sort(),
    )
  },
)

import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type EventMetadata,
  EventRegistry,
  UnreadableEvent,
} from '../../../application/commands/event-registry.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import type { Aggregate } from '../../../domain/kernel/decider.ts'
import { type EventType, eventType } from '../../../domain/kernel/event-type.ts'
import { sealed } from '../../../domain/kernel/sealed.ts'

function anAggregate(category: string, ...events: EventType[]): Aggregate {
  return { category, events, initialState: null, evolve: (state) => state }
}

const name = sealed({ subject: 'person', boundTo: () => 'renamed-1|Renamed|name' })
const Renamed = eventType('Renamed', { id: z.string(), name })
const Priced = eventType(
  'Priced',
  { cents: z.number().int(), currency: z.string() },
  (raw) => ({ cents: Math.round(Number((raw as { amount: string }).amount) * 100) }),
  (raw) => ({ ...(raw as object), currency: 'USD' }),
)
const registry = new EventRegistry([anAggregate('thing', Renamed, Priced)])

const metadata: Omit<EventMetadata, 'schema_version'> = {
  tenant_id: null,
  environment: 'sandbox',
  actor: { type: 'operator', id: 'operator' },
  correlation_id: 'c',
  causation_id: 'c',
  recorded_at: '2026-01-31T12:00:00.000Z',
}

function stored(type: string, version: number, data: string): StoredEvent {
  return {
    position: 7n,
    stream: 'thing-1',
    revision: 3,
    eventId: '5fe69ed9-3bdd-47df-9155-85e41f5d08d7',
    type,
    data,
    metadata: JSON.stringify({ ...metadata, schema_version: version, hash: '0'.repeat(64) }),
  }
}

describe('the catalogue', () => {
  test('makes a registry of every event type there is', () => {
    const catalogue = new EventRegistry(aggregates)
    expect(catalogue.types.length).toBeGreaterThan(20)
    expect(catalogue.knows('PayrollFileReceived')).toBe(true)
    expect(catalogue.knows('NeverHappened')).toBe(false)
  })

  test('refuses two event types of one name, and two aggregates of one category', () => {
    expect(() => new EventRegistry([anAggregate('a', Renamed), anAggregate('b', Renamed)])).toThrow(
      'Duplicate event type Renamed',
    )
    expect(() => new EventRegistry([anAggregate('a', Renamed), anAggregate('a', Priced)])).toThrow(
      'Duplicate category a',
    )
  })
})

describe('encoding', () => {
  test('writes data and metadata with the current version', () => {
    const event = registry.encode(Priced.of({ cents: 100, currency: 'USD' }), metadata)
    expect(event).toMatchObject({
      type: 'Priced',
      data: '{"cents":100,"currency":"USD"}',
      metadata: JSON.stringify({ ...metadata, schema_version: 3 }),
    })
  })

  test('of one append writes metadata once, for each version', () => {
    const events = [1, 2].map((cents) => Priced.of({ cents, currency: 'USD' }))
    const [one, two] = registry.encodeAll(events, metadata)
    expect([one, two]).toEqual(events.map((event) => registry.encode(event, metadata)))
    expect(one!.writtenFrom!.metadata).toBe(two!.writtenFrom!.metadata)
  })

  test('refuses an unknown type', () => {
    expect(() => registry.encode({ type: 'NeverHappened', data: {} }, metadata)).toThrow('NeverHappened')
  })

  test('refuses plain text in a personal field, without repeating it', () => {
    const event = { type: 'Renamed', data: { id: '1', name: 'Jane Roe' } }
    expect(() => registry.encode(event, metadata)).toThrow(
      /^Event Renamed does not fit its schema: name: custom$/,
    )
  })

  test('leaves out members that the schema does not have', () => {
    const data = { cents: 1, currency: 'USD', ssn: '123-45-6789' }
    expect(registry.encode({ type: 'Priced', data }, metadata).data).toBe('{"cents":1,"currency":"USD"}')
  })
})

describe('decoding', () => {
  test('gives place, data and metadata', () => {
    const event = stored('Priced', 3, '{"cents":100,"currency":"EUR"}')
    expect(registry.decode(event)).toEqual({
      position: 7n,
      stream: 'thing-1',
      revision: 3,
      eventId: event.eventId,
      type: 'Priced',
      data: { cents: 100, currency: 'EUR' },
      metadata: { ...metadata, schema_version: 3, hash: '0'.repeat(64) },
    })
  })

  test('brings every older version to the current one', () => {
    expect(registry.decode(stored('Priced', 1, '{"amount":"1.10"}')).data).toEqual({
      cents: 110,
      currency: 'USD',
    })
    expect(registry.decode(stored('Priced', 2, '{"cents":5}')).data).toEqual({ cents: 5, currency: 'USD' })
  })

  test('happens once for each stored event', () => {
    const event = stored('Priced', 1, '{"amount":"1.10"}')
    expect(registry.decode(event).data).toBe(registry.decode(event).data)
    const { data } = registry.decode({ ...event, data: '{"amount":"2.20"}' })
    expect(data).toEqual({ cents: 220, currency: 'USD' })
  })

  test.each([
    ['an unknown type', stored('NeverHappened', 1, '{}'), 'unknown event type'],
    ['a version before the first', stored('Priced', 0, '{}'), 'its metadata name no version'],
    ['a newer version', stored('Priced', 4, '{}'), 'version 4 is newer than this release'],
    ['data that does not fit', stored('Priced', 3, '{"cents":"1"}'), 'cents: invalid_type'],
    ['what an upcaster makes of wrong data', stored('Priced', 1, '{"amount":"much"}'), 'cents: invalid_type'],
    ['data that is no JSON', stored('Priced', 3, '123-45-6789 x'), 'it is no JSON'],
    ['metadata that are none', { ...stored('Priced', 3, '{}'), metadata: '' }, 'it is no JSON'],
    [
      'metadata of others',
      { ...stored('Priced', 3, '{}'), metadata: 'null' },
      'its metadata name no version',
    ],
  ])('refuses %s', (_, event, why) => {
    expect(() => registry.decode(event)).toThrow(UnreadableEvent)
    expect(() => registry.decode(event)).toThrow(`thing-1@3 cannot be read: ${why}`)
  })
})

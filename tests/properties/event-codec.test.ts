import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type EventMetadata, EventRegistry } from '../../application/event-registry.ts'
import { chainHash, NO_PREDECESSOR, splitHash, verifyEvent, withHash } from '../../application/hash-chain.ts'
import type { EventToAppend, StoredEvent } from '../../application/ports/event-log.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { eventType } from '../../domain/kernel/event-type.ts'
import { runs } from '../support/generated.ts'
import { anyFitting } from '../support/schema-values.ts'

const anyText = fc.string({ unit: 'binary' })
const anyMetadata: fc.Arbitrary<Omit<EventMetadata, 'schema_version'>> = fc.record(
  {
    tenant_id: fc.option(anyText),
    environment: fc.constantFrom('live', 'sandbox', null),
    actor: fc.record({ type: fc.constantFrom('api_client', 'agent', 'operator', 'system'), id: anyText }),
    correlation_id: anyText,
    causation_id: anyText,
    recorded_at: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  },
  { noNullPrototype: true },
)

function idOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}

/** What a log makes of appended events. */
function store(stream: string, events: readonly EventToAppend[]): StoredEvent[] {
  let predecessor = NO_PREDECESSOR
  return events.map((event, revision) => {
    const eventId = idOf(revision)
    predecessor = chainHash(predecessor, stream, revision, { ...event, eventId })
    const metadata = withHash(event.metadata, predecessor)
    return { ...event, eventId, metadata, stream, revision, position: BigInt(revision + 1) }
  })
}

describe('the codec', () => {
  const registry = new EventRegistry(aggregates)

  test.each(registry.types.map((type) => [type.name, type] as const))(
    'reads back whatever %s it has written',
    (name, type) => {
      fc.assert(
        fc.property(anyFitting(type.schema), anyMetadata, (data, metadata) => {
          const plain = JSON.parse(JSON.stringify(metadata)) as typeof metadata
          const encoded = registry.encode({ type: name, data }, plain)
          const [stored] = store('test-1', [encoded]) as [StoredEvent]
          const decoded = registry.decode(stored)
          expect(decoded.data).toEqual(data)
          const hash = splitHash(stored.metadata)?.hash
          expect(decoded.metadata).toEqual({ ...plain, schema_version: type.version, hash })
          expect(verifyEvent(NO_PREDECESSOR, stored)).toBe(true)
        }),
        runs(5, 100),
      )
    },
  )
})

const ORIGIN = {
  tenant_id: null,
  environment: null,
  actor: { type: 'system', id: 'test' },
  correlation_id: 'c',
  causation_id: 'c',
  recorded_at: '2026-01-01T00:00:00.000Z',
}

describe('upcasters', () => {
  const Weighed = eventType({
    name: 'Weighed',
    version: 3,
    schema: z.object({ grams: z.number().int(), unit: z.enum(['metric', 'imperial']), note: z.string() }),
    upcasters: {
      // version 1 had kilograms; version 2 grams and an optional note
      1: (raw) => ({ grams: (raw as { kilograms: number }).kilograms * 1000 }),
      2: (raw) => ({ note: '', ...(raw as object), unit: 'metric' }),
    },
  })
  const registry = new EventRegistry([
    { category: 'scale', events: [Weighed], initialState: null, evolve: (state) => state },
  ])
  const read = (version: number, data: unknown) =>
    registry.decode({
      position: 1n,
      stream: 'scale-1',
      revision: 0,
      eventId: idOf(0),
      type: 'Weighed',
      data: JSON.stringify(data),
      metadata: JSON.stringify({ ...ORIGIN, schema_version: version, hash: NO_PREDECESSOR }),
    }).data

  test('bring every version to what the current one would have stored', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), anyText, (kilograms, note) => {
        const grams = kilograms * 1000
        expect(read(1, { kilograms })).toEqual(read(3, { grams, unit: 'metric', note: '' }))
        expect(read(2, { grams })).toEqual(read(1, { kilograms }))
        expect(read(2, { grams, note })).toEqual(read(3, { grams, unit: 'metric', note }))
      }),
      runs(),
    )
  })
})

describe('the hash chain', () => {
  const anyEvent: fc.Arbitrary<EventToAppend> = fc.record({
    type: fc.string({ minLength: 1 }),
    data: fc.json(),
    metadata: fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
  })

  test('comes off the metadata exactly as it was put on', () => {
    fc.assert(
      fc.property(anyEvent, ({ metadata }) => {
        const hash = 'ab'.repeat(32)
        const withIt = withHash(metadata, hash)
        expect(splitHash(withIt)).toEqual({ metadata, hash })
        expect((JSON.parse(withIt) as { hash: string }).hash).toBe(hash)
      }),
      runs(),
    )
  })

  test('verifies as stored, and not after any one event was changed, removed or moved', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { minLength: 3, maxLength: 6 }), fc.nat(), fc.nat(), (events, a, b) => {
        const stream = store('test-1', events)
        const intact = (all: readonly StoredEvent[]) =>
          all.every((event, index) =>
            verifyEvent(index === 0 ? NO_PREDECESSOR : splitHash(all[index - 1]!.metadata)!.hash, event),
          )
        expect(intact(stream)).toBe(true)

        const at = a % stream.length
        const { data } = stream[at]!
        const place = b % data.length
        const changed = data.slice(0, place) + (data[place] === 'x' ? 'y' : 'x') + data.slice(place + 1)
        expect(intact(stream.with(at, { ...stream[at]!, data: changed }))).toBe(false)

        const gap = a % (stream.length - 1)
        const closed = stream.toSpliced(gap, 1).map((event, revision) => ({ ...event, revision }))
        expect(intact(closed)).toBe(false)

        const [first, second] = [stream[gap]!, stream[gap + 1]!]
        const swapped = stream
          .with(gap, { ...second, revision: first.revision })
          .with(gap + 1, { ...first, revision: second.revision })
        expect(intact(swapped)).toBe(false)
      }),
      runs(),
    )
  })
})

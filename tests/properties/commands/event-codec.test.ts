import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type EventMetadata, EventRegistry } from '../../../application/commands/event-registry.ts'
import {
  chainHash,
  NO_PREDECESSOR,
  splitHash,
  verifyEvent,
  withHash,
} from '../../../application/commands/hash-chain.ts'
import type { EventToAppend, StoredEvent } from '../../../application/ports/event-log.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { runs } from '../../support/generated.ts'
import { anyFitting } from '../../support/schema-values.ts'

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
        runs(3, 100),
      )
    },
  )
})

describe('the hash chain', () => {
  const anyEvent: fc.Arbitrary<EventToAppend> = fc.record({
    type: fc.string({ minLength: 1 }),
    data: fc.json(),
    metadata: fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
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

import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  chainHash,
  NO_PREDECESSOR,
  splitHash,
  verifyEvent,
  withHash,
} from '../../../application/commands/hash-chain.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'

const event = {
  eventId: '00000000-0000-8000-8000-000000000001',
  type: 'SomethingHappened',
  data: '{"ämount":1}',
  metadata: '{"schema_version":1}',
}

function stored(fields: Partial<StoredEvent> = {}): StoredEvent {
  const hash = chainHash(NO_PREDECESSOR, 'test-1', 0, event)
  return {
    ...event,
    position: 1n,
    stream: 'test-1',
    revision: 0,
    metadata: withHash(event.metadata, hash),
    ...fields,
  }
}

describe('the hash of an event', () => {
  test('is the SHA-256 that the documentation describes', () => {
    const bytes = Buffer.concat([
      Buffer.from('0'.repeat(64)),
      Buffer.from(['test-1', '0', event.eventId, event.type, event.data, event.metadata].join('\0'), 'utf8'),
    ])
    expect(chainHash(NO_PREDECESSOR, 'test-1', 0, event)).toBe(
      createHash('sha256').update(bytes).digest('hex'),
    )
  })

  test('stays what it was: stored chains must verify for ever', () => {
    expect(chainHash(NO_PREDECESSOR, 'test-1', 0, event)).toBe(FIRST)
    expect(chainHash(FIRST, 'test-1', 1, event)).toBe(SECOND)
  })

  test('changes with every part of the event, its place and its predecessor', () => {
    const hashes = [
      chainHash(NO_PREDECESSOR, 'test-1', 0, event),
      chainHash('1'.repeat(64), 'test-1', 0, event),
      chainHash(NO_PREDECESSOR, 'test-2', 0, event),
      chainHash(NO_PREDECESSOR, 'test-1', 1, event),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, eventId: event.eventId.replace(/1$/, '2') }),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, type: 'SomethingElse' }),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, data: '{"ämount":2}' }),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, data: '{"ämount": 1}' }),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, metadata: '{"schema_version":2}' }),
      // the same characters, divided otherwise
      chainHash(NO_PREDECESSOR, 'test-', 10, event),
      chainHash(NO_PREDECESSOR, 'test-1', 0, { ...event, type: `SomethingHappened${event.data}`, data: '' }),
    ]
    expect(new Set(hashes).size).toBe(hashes.length)
  })
})

describe('the hash in the metadata', () => {
  const hash = 'ab'.repeat(32)

  test.each([
    ['{}', `{"hash":"${hash}"}`],
    ['{"a":1}', `{"a":1,"hash":"${hash}"}`],
    [`{"hash":"${'cd'.repeat(32)}"}`, `{"hash":"${'cd'.repeat(32)}","hash":"${hash}"}`],
    [`{"a":{"hash":"${'cd'.repeat(32)}"}}`, `{"a":{"hash":"${'cd'.repeat(32)}"},"hash":"${hash}"}`],
  ])('is the last member of %s, and comes off again', (metadata, expected) => {
    expect(withHash(metadata, hash)).toBe(expected)
    expect(splitHash(expected)).toEqual({ metadata, hash })
  })

  test.each([
    '{}',
    '{"a":1}',
    '{"hash":"ab"}',
    `{"hash":"${hash}","a":1}`,
    `{"hash":"${hash.toUpperCase()}"}`,
  ])('is missed in %s', (metadata) => {
    expect(splitHash(metadata)).toBeNull()
    expect(verifyEvent(NO_PREDECESSOR, stored({ metadata }))).toBe(false)
  })
})

describe('verification', () => {
  test.each<[string, Partial<StoredEvent>]>([
    ['stream', { stream: 'test-2' }],
    ['revision', { revision: 1 }],
    ['event id', { eventId: '00000000-0000-8000-8000-000000000002' }],
    ['type', { type: 'SomethingElse' }],
    ['data', { data: '{"ämount":2}' }],
    ['metadata', { metadata: stored().metadata.replace('"schema_version":1', '"schema_version":2') }],
    ['hash', { metadata: withHash(event.metadata, 'ab'.repeat(32)) }],
  ])('refuses another %s', (_, change) => {
    expect(verifyEvent(NO_PREDECESSOR, stored(change))).toBe(false)
  })

  test('refuses another predecessor, and does not depend on the position in the log', () => {
    expect(verifyEvent(FIRST, stored())).toBe(false)
    expect(verifyEvent(NO_PREDECESSOR, stored({ position: 99n }))).toBe(true)
  })
})

const FIRST = 'b08e3693c37fd5e8a18972a3ed0a27cc1612fbc3ac4d730487782f27be3c3ac6'
const SECOND = '0fe36ec5ce3f4bc481cb17b5ae1b33feae3f1536f2d489ba9c2210f8f4adc94c'

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { splitHash } from '../../../application/commands/hash-chain.ts'
import type { EventLog, EventToAppend } from '../../../application/ports/event-log.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { anEvent, aStream, expectIntactChains } from './event-log.contract.ts'

const TEXTS = [
  { one: 1, thousand: 1e3, tiny: -1.25e-7, huge: 1e21, exact: 9007199254740991 },
  { z: 1, a: 2, m: { z: 1, a: 2 }, 10: 1, 9: 2 },
  { escapes: 'é \\ / \u0000 \b 😀 \ud800 \u2028 \u007f "' },
  { 'normal forms': '\u00e9 e\u0301 \ufeff' },
  'text',
  null,
  [],
].map((value) => JSON.stringify(value))

describe.skipIf(!(await findEventStore()))('what stands in the log (needs EventStoreDB)', () => {
  let testDatabase: TestDatabase
  let database: Database
  let server: EventStoreServer
  let postgres: EventLog
  let eventStore: EventLog

  beforeAll(async () => {
    testDatabase = await createTestDatabase()
    database = await openDatabase({ url: testDatabase.url })
    postgres = await openPostgresEventLog({ database })
    server = await startEventStore()
    eventStore = await openEventStoreEventLog({ url: server.url })
  })
  afterAll(async () => {
    await postgres?.close()
    await eventStore?.close()
    await database?.close()
    await testDatabase?.drop()
    await server?.stop()
  })

  test('is the same to the last byte in both engines, and each holds the hash chain', async () => {
    const stream = `test-${randomUUID()} é "quoted" 漢`
    const appends: EventToAppend[][] = [
      TEXTS.map((data, n) => anEvent({ data, type: `Type é ${n}` })),
      [anEvent({ metadata: '{}' })],
      TEXTS.map((text) => anEvent({ metadata: `{"schema_version":1,"m":${text}}` })),
    ]
    const events = appends.flat()
    for (const log of [postgres, eventStore]) {
      let revision = -1
      for (const append of appends) {
        await log.append(stream, revision, append)
        revision += append.length
      }
      const stored = await log.readStream(stream)
      expectIntactChains(stored)
      expect(
        stored.map((event) => ({
          stream: event.stream,
          revision: event.revision,
          type: event.type,
          data: event.data,
          metadata: splitHash(event.metadata)!.metadata,
        })),
      ).toEqual(events.map(({ type, data, metadata }, n) => ({ stream, revision: n, type, data, metadata })))
    }
  })

  test('and so are the answers to an append, but for position and id', async () => {
    const stream = aStream()
    const answers = await Promise.all(
      [postgres, eventStore].map(async (log) => {
        const { position, eventId, ...result } = await log.append(stream, -1, [anEvent(), anEvent()])
        expect((await log.readStream(stream))[1]).toMatchObject({ position, eventId })
        const errors = [
          log.append(stream, -1, [anEvent()]),
          log.append(stream, 4, [anEvent()]),
          log.append(stream, 0, [anEvent()]),
          log.append(stream, 1, []),
          log.append('', -1, [anEvent()]),
        ].map((append) => append.then(String, (error: Error) => `${error.name}: ${error.message}`))
        return [result, ...(await Promise.all(errors))]
      }),
    )
    expect(answers[1]).toEqual(answers[0])
    expect(answers[0]!.slice(1).join()).not.toContain('[object Object]')
  })
})

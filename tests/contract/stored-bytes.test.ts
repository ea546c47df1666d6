import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EventLog, EventToAppend } from '../../application/ports/event-log.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { anEvent, aStream } from './event-log.contract.ts'

const TEXTS = [
  '{"one":1.0,"thousand":1e3,"tiny":-0.0,"exact":12345678901234567890.123456789012345678901234567890}',
  '{"z":1,"a":2,"m":{"z":1,"a":2},"10":1,"9":2}',
  '{"twice":1,"twice":2}',
  '{ "spaces" : [ 1 ,\n\t2 ] }',
  '{"escapes":"\\u00e9 é \\/ / \\u0000 \\ud83d\\ude00 😀 \\ud800 \u2028 \u007f"}',
  '{"normal forms":"\u00e9 e\u0301 \ufeff"}',
  '"text"',
  'null',
  '[]',
]

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

  test('is the same to the last byte in both engines, hash chain included', async () => {
    const stream = `test-${randomUUID()} é "quoted" 漢`
    const appends: EventToAppend[][] = [
      TEXTS.map((data, n) => anEvent({ data, type: `Type é ${n}` })),
      [anEvent({ metadata: '{}' }), anEvent({ metadata: '{"hash":"of another kind"}' })],
      TEXTS.map((text) => anEvent({ metadata: `{"schema_version":1,"m":${text}}` })),
    ]
    for (const log of [postgres, eventStore]) {
      for (const events of appends) await log.append(stream, 'any', events)
    }
    const [there, here] = await Promise.all(
      [postgres, eventStore].map(async (log) =>
        (await log.readStream(stream)).map(({ position: _, ...event }) => event),
      ),
    )
    expect(there).toHaveLength(appends.flat().length)
    expect(here).toEqual(there)
    expect(here!.map(({ data }) => data)).toEqual(appends.flat().map(({ data }) => data))
  })

  test('and so are the answers to an append, but for the position', async () => {
    const events = [anEvent(), anEvent()]
    const stream = aStream()
    const answers = await Promise.all(
      [postgres, eventStore].map(async (log) => {
        const results = [
          await log.append(stream, -1, events),
          await log.append(stream, -1, events),
          await log.append(stream, 1, []),
        ]
        const errors = [
          log.append(stream, -1, [anEvent()]),
          log.append(stream, 4, [anEvent()]),
          log.append(stream, 1, [events[0]!]),
          log.append('', 'any', [anEvent()]),
          log.append(stream, 'any', [anEvent({ data: '{' })]),
        ].map((append) => append.then(String, (error: Error) => `${error.name}: ${error.message}`))
        return [...results.map(({ position: _, ...result }) => result), ...(await Promise.all(errors))]
      }),
    )
    expect(answers[1]!.slice(0, 7)).toEqual(answers[0]!.slice(0, 7))
    expect(
      answers.map((all) => all.slice(7).map((error) => typeof error === 'string' && /refused/.test(error))),
    ).toEqual([[true], [true]])
  })
})

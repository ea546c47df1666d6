import { PassThrough } from 'node:stream'
import { END, type EventStoreDBClient } from '@eventstore/db-client'
import { expect, test } from 'vitest'
import type { Appends } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import { EventStoreUnavailable } from '../../../infrastructure/event-store/eventstoredb/errors.ts'
import { LogReader } from '../../../infrastructure/event-store/eventstoredb/log-reader.ts'

/** A reader of a server that fails at reads by the status with which it answers for unknown positions, too. */
function readerOf(failsAt: (fromPosition: unknown) => boolean): LogReader {
  const stream = (of: 'confirmation' | 'end' | Error) => {
    const answers = Object.assign(new PassThrough({ objectMode: true }), {
      unsubscribe: async () => undefined,
    })
    setImmediate(() => (of instanceof Error ? answers.emit('error', of) : answers.emit(of)))
    return answers
  }
  const client = {
    subscribeToAll: () => stream('confirmation'),
    readAll: ({ fromPosition }: { fromPosition: unknown }) =>
      stream(failsAt(fromPosition) ? Object.assign(new Error('2 UNKNOWN'), { code: 2 }) : 'end'),
  }
  return new LogReader(
    { client: client as unknown as EventStoreDBClient, target: 'test:2113' },
    { append: async () => undefined } as unknown as Appends,
    0,
    new AbortController().signal,
  )
}

test('an event is gone where the server fails at its position alone, not where it fails at every read', async () => {
  expect(await readerOf((from) => from !== END).idAt(7n)).toBeNull()
  await expect(readerOf(() => true).idAt(7n)).rejects.toThrow(EventStoreUnavailable)
})

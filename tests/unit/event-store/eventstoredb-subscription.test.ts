import { PassThrough } from 'node:stream'
import type { EventStoreDBClient, Filter, Position } from '@eventstore/db-client'
import { expect, test } from 'vitest'
import { Subscription } from '../../../infrastructure/event-store/eventstoredb/subscription.ts'

/** A server that says what the test has it say. */
function server() {
  const stream = new PassThrough({ objectMode: true })
  let checkpointReached: NonNullable<Filter['checkpointReached']> = () => undefined
  const subscribeToAll = (options: { filter: Filter }) => {
    checkpointReached = options.filter.checkpointReached!
    return Object.assign(stream, { unsubscribe: async () => undefined })
  }
  return {
    client: { subscribeToAll } as unknown as EventStoreDBClient,
    checkpoint: (place: Position) => checkpointReached(stream as never, place),
    event: (position: bigint) =>
      stream.write({
        event: {
          id: `event-${position}`,
          streamId: 'test-1',
          revision: position,
          type: 'Happened',
          data: {},
          metadata: {},
          position: { commit: position, prepare: position },
        },
      }),
  }
}

test('a checkpoint whose prepare is not its commit is before the event that stands there', async () => {
  const { client, checkpoint, event } = server()
  const subscription = new Subscription(client, { after: 0n, from: 0n })
  checkpoint({ commit: 500n, prepare: 500n })
  expect(await subscription.next(10)).toEqual({ events: [], checkpoint: 500n, before: 0n })
  // as EventStoreDB 24.10.0 says at the end of the log, where the next event comes to stand
  checkpoint({ commit: 700n, prepare: 0n })
  checkpoint({ commit: 700n, prepare: 0n })
  expect(await subscription.next(10)).toEqual({ events: [], checkpoint: 500n, before: 700n })
  checkpoint({ commit: 900n, prepare: 0n })
  expect(await subscription.next(10)).toEqual({ events: [], checkpoint: 700n, before: 900n })
  event(900n)
  const told = await subscription.next(10)
  expect(told?.events.map(({ position }) => position)).toEqual([900n])
  expect(told?.checkpoint).toBe(900n)
  subscription.end()
})

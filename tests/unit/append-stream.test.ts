import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { AppendStream } from '../../infrastructure/event-store/eventstoredb/append-stream.ts'
import type { EventStoreConnection } from '../../infrastructure/event-store/eventstoredb/connection.ts'
import { EventStoreUnavailable } from '../../infrastructure/event-store/eventstoredb/errors.ts'

test('an append whose time is up is not sent, also behind one that has time', async () => {
  const call = Object.assign(new EventEmitter(), {
    written: 0,
    write() {
      this.written += 1
    },
    cancel() {},
  })
  const connection = { target: 'test', append: async () => call, failureOf: (error: Error) => error }
  const stream = new AppendStream(connection as unknown as EventStoreConnection)
  const event = (bytes: number) => ({
    eventId: '6f6e6f5e-0d54-4d7c-9d4e-3a1f0e9a7c11',
    type: 'Happened',
    data: 'x'.repeat(bytes),
    metadata: '{}',
  })
  // takes all room
  const large = stream.append('large', -1, [event(8 * 1024 * 1024)])
  const inTime = stream.append('in-time', -1, [event(1)])
  const late = stream.append('late', -1, [event(1)], performance.now() - 1)
  const appended = { revision: 0, position: 1n }
  await expect.poll(() => call.written).toBe(1)
  call.emit('data', { id: 1, success: appended })
  await expect(late).rejects.toBeInstanceOf(EventStoreUnavailable)
  await expect.poll(() => call.written).toBe(2)
  call.emit('data', { id: 2, success: appended })
  expect(await Promise.all([large, inTime])).toEqual([appended, appended])
  expect(call.written).toBe(2)
  stream.close()
})

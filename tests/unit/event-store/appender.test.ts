import { expect, it, vi } from 'vitest'
import { DatabaseUnavailable } from '../../../infrastructure/database/connection.ts'
import { Appender } from '../../../infrastructure/event-store/postgres/appender.ts'
import type { WriterSession } from '../../../infrastructure/event-store/postgres/writer-session.ts'

it('ends all appends to one stream with one try when the database goes away at its end', async () => {
  const client = vi.fn(async () => {
    throw new DatabaseUnavailable('the event log', 'it is away')
  })
  const appender = new Appender({
    session: { client, closing: new AbortController().signal } as unknown as WriterSession,
    readers: { query: client },
    patienceMs: 60_000,
    listener: { committed: () => undefined, found: () => undefined },
    log: { info: () => undefined, warn: () => undefined },
  })
  const event = { type: 'A', data: '{}', metadata: '{}' }
  const appends = [1, 2, 3, 4].map(() => appender.append('stream', -1, [event], 10))
  const told = Promise.allSettled(appends)
  await appender.close()
  for (const { status } of await told) expect(status).toBe('rejected')
  expect(client).toHaveBeenCalledTimes(1)
})

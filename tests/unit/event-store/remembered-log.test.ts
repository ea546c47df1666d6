import { describe, expect, it } from 'vitest'
import { type EventLog, LogWentBack } from '../../../application/ports/event-log.ts'
import { RememberedLog } from '../../../infrastructure/event-store/remembered-log.ts'

describe('a log that lacks what was read of it', () => {
  it('is not followed, although nobody can tell what was cut', async () => {
    const failing = () => Promise.reject(new Error('the log is away'))
    const log = new RememberedLog({
      append: async () => ({ position: 7n, eventId: 'lost' }),
      idAt: async () => 'another',
      findCut: failing,
      subscribe: failing as never,
    } as Partial<EventLog> as EventLog)
    await log.append('stream', -1, [])
    await expect(log.compare()).rejects.toThrow(LogWentBack)
    const pages = log.subscribe({ after: 0n, pageSize: 1, signal: AbortSignal.abort() })
    await expect(pages.next()).rejects.toThrow(LogWentBack)
  })
})

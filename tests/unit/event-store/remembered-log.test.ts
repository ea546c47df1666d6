import { describe, expect, it } from 'vitest'
import { type EventLog, LogWentBack } from '../../../application/ports/event-log.ts'
import { RememberedLog } from '../../../infrastructure/event-store/remembered-log.ts'
import { PostgresLogMemory } from '../../../infrastructure/installation/log-memory.ts'

const failing = () => Promise.reject(new Error('the log is away'))

describe('a log that lacks what was read of it', () => {
  it('is noticed, although nobody can tell what was cut', async () => {
    const memory = new PostgresLogMemory({ query: async () => ({ rows: [] }) } as never)
    const last = { position: 7n, eventId: 'lost' }
    const log = { last, idAt: async () => 'another', head: async () => 9n, findCut: failing }
    expect(await memory.findLogWentBack(log)).toMatch(/^The event log went back: .* position 7 /)
  })

  it('is not followed, although nobody can tell what was cut', async () => {
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

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EventLog, WrongExpectedRevision } from '../../../application/ports/event-log.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { anEvent, aStream, expectIntactChains, follow } from './event-log.contract.ts'

const APPENDS = 300
/** Streams that both append to at the same time: each append has its time, however slow the machine. */
const AT_ONCE = 50

describe.skipIf(!(await findEventStore()))('many appends to EventStoreDB at once', () => {
  let server: EventStoreServer
  let log: EventLog
  let other: EventLog

  beforeAll(async () => {
    server = await startEventStore()
    log = await openEventStoreEventLog({ url: server.url })
    other = await openEventStoreEventLog({ url: server.url })
  })
  afterAll(async () => {
    await log?.close()
    await other?.close()
    await server?.stop()
  })

  test('to the same places by two processes, each knows which are stored, and both go on behind them', async () => {
    const streams = Array.from({ length: APPENDS }, () => aStream())
    const won = await inRounds(streams, async (stream) => {
      const both = await Promise.allSettled(
        [log, other].map((one, n) => one.append(stream, -1, [anEvent({ data: `{"by":${n}}` })])),
      )
      const lost = both.filter((one) => one.status === 'rejected')
      expect(lost.map(({ reason }) => reason)).toEqual([expect.any(WrongExpectedRevision)])
      return both.findIndex(({ status }) => status === 'fulfilled')
    })
    // whoever goes on with a stream has to know the hash of what stands there
    await inRounds(streams, async (stream, n) => {
      const [winner, loser] = won[n] === 0 ? [log, other] : [other, log]
      await loser.append(stream, 0, [anEvent()])
      await expect(winner.append(stream, 0, [anEvent()])).rejects.toThrow(WrongExpectedRevision)
      await winner.append(stream, 1, [anEvent()])
    })
    const after = await openEventStoreEventLog({ url: server.url })
    for (const [n, stream] of streams.entries()) {
      const events = await after.readStream(stream)
      expect(events).toHaveLength(3)
      expect(events[0]!.data).toBe(`{"by":${won[n]}}`)
      expectIntactChains(events)
    }
    await after.close()
  })

  test('subscribers see each once and in order, and what another process appends after them', async () => {
    const after = await log.head()
    const watching = [log, other].map((one) => follow(one, { after }, (all) => all.at(-1)?.type === 'Last'))
    const appended = await Promise.all(
      Array.from({ length: APPENDS }, () => log.append(aStream(), -1, [anEvent(), anEvent()])),
    )
    await other.append(aStream(), -1, [anEvent({ type: 'Last' })])
    for (const { events } of await Promise.all(watching)) {
      expect(events).toHaveLength(APPENDS * 2 + 1)
      expect(events.every((event, n) => n === 0 || event.position > events[n - 1]!.position)).toBe(true)
      const positions = new Set(events.map(({ position }) => position))
      expect(appended.every(({ position }) => positions.has(position))).toBe(true)
    }
  })
})

async function inRounds<Result>(
  streams: readonly string[],
  work: (stream: string, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = []
  while (results.length < streams.length) {
    const from = results.length
    const round = streams.slice(from, from + AT_ONCE).map((stream, n) => work(stream, from + n))
    results.push(...(await Promise.all(round)))
  }
  return results
}

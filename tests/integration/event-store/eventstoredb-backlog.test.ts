// @module-tag once: it has the log that it needs itself
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_START, type StoredEvent } from '../../../application/ports/event-log.ts'
import { ServiceUnavailable } from '../../../application/ports/unavailable.ts'
import { MOST_IN_FLIGHT } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import {
  type EventStoreEventLog,
  openEventStoreEventLog,
} from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { anEvent, aStream } from '../../contract/event-store/event-log.contract.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

deadlinesOfTheProduct()

/** Less than what the server has for an answer, so that nothing is sent a second time. */
const PATIENCE_MS = 3_000

describe.skipIf((await findEventStore())?.kind !== 'program')(
  'appends to a server that answers nothing',
  () => {
    let server: EventStoreServer
    let log: EventStoreEventLog
    const proxies: HoldingProxy[] = []

    beforeAll(async () => {
      server = await startEventStore()
      log = await openEventStoreEventLog({ url: server.url, patienceMs: PATIENCE_MS })
    })
    afterAll(async () => {
      server?.thaw()
      await log?.close()
      await server?.stop()
      await Promise.all(proxies.map((proxy) => proxy.close()))
    })

    /** Sends them while the server is frozen, and lets it go on when all have been given up. @returns what it got. */
    async function sentWhileFrozen(
      type: string,
      count: number,
      data: string,
    ): Promise<readonly StoredEvent[]> {
      await log.append(aStream(), -1, [anEvent()])
      server.freeze()
      const outcomes = await Promise.allSettled(
        Array.from({ length: count }, (_, n) =>
          log.append(`${type}-${String(n).padStart(5, '0')}`, -1, [anEvent({ type, data })]),
        ),
      )
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ServiceUnavailable) })
      }
      server.thaw()
      // what was sent before comes before it
      const other = await openEventStoreEventLog({ url: server.url })
      try {
        await expect
          .poll(() =>
            log.append(aStream(), -1, [anEvent()]).then(
              () => true,
              () => false,
            ),
          )
          .toBe(true)
        const stored: StoredEvent[] = []
        for (let after = LOG_START, atHead = false; !atHead; ) {
          const page = await other.readAll({ after, maxCount: 1_000, types: [type] })
          stored.push(...page.events)
          after = page.checkpoint
          atHead = page.atHead
        }
        return stored
      } finally {
        await other.close()
      }
    }

    test('are bounded in number, wait in order, and are given up at their time', async () => {
      const stored = await sentWhileFrozen('Small', 3 * MOST_IN_FLIGHT, '{}')
      // the answer to the append before them may be out, too: it was seen in the log before
      expect([MOST_IN_FLIGHT, MOST_IN_FLIGHT - 1]).toContain(stored.length)
      expect(stored.map(({ stream }) => stream)).toEqual(
        stored.map((_, n) => `Small-${String(n).padStart(5, '0')}`),
      )
    })

    test('are bounded in bytes', async () => {
      const data = JSON.stringify('x'.repeat(400 * 1024))
      const stored = await sentWhileFrozen('Large', 60, data)
      expect(stored.length).toBeGreaterThan(1)
      expect(stored.length * data.length).toBeLessThanOrEqual(8 * 1024 * 1024)
    })

    test('and a start is refused when all nodes of a cluster have vanished', async () => {
      const nodes = await Promise.all([1, 2, 3].map(() => startHoldingProxy(1)))
      proxies.push(...nodes)
      for (const node of nodes) node.vanish()
      const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
      await expect(openEventStoreEventLog({ url: `esdb://${hosts}?tls=false` })).rejects.toBeInstanceOf(
        ServiceUnavailable,
      )
    })
  },
)

import { setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'vitest'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { outageContract } from './event-log-outages.contract.ts'

deadlinesOfTheProduct()

/** Longer than any limit after which the adapter gives up a silent connection, in milliseconds. */
const SILENCE_MS = 12_000

const source = await findEventStore()
if (source?.kind === 'program' || source?.kind === 'container') {
  const frozen = source.kind === 'program' ? ['frozen'] : []
  outageContract('EventStoreDB', ['killed', 'stopped', ...frozen], async () => {
    const server = await startEventStore({ keepsData: true })
    const { url } = server
    return {
      open: () => openEventStoreEventLog({ url, patienceMs: 240_000 }),
      remove: () => server.stop(),
      outages: [
        { name: 'killed', happen: () => server.kill().then(server.restart) },
        { name: 'stopped', happen: () => server.end().then(server.restart) },
        {
          name: 'frozen',
          async happen() {
            server.freeze()
            await delay(SILENCE_MS)
            server.thaw()
          },
        },
      ],
    }
  })
} else {
  describe.skip('event log contract, outages: EventStoreDB (no server was found that may be killed)', () =>
    test('skipped', () => undefined))
}

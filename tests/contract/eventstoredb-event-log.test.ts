import { describe, test } from 'vitest'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { eventLogContract } from './event-log.contract.ts'

if (await findEventStore()) {
  eventLogContract(
    'EventStoreDB',
    async () => {
      const server = await startEventStore()
      return { open: () => openEventStoreEventLog({ url: server.url }), remove: () => server.stop() }
    },
    { idsAreUniqueInStreamsOnly: true },
  )
} else {
  describe.skip('event log contract: EventStoreDB (no server was found)', () =>
    test('skipped', () => undefined))
}

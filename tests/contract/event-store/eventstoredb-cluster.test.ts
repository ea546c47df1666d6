// @module-tag long: contract/event-store/eventstoredb-outages has one node that is killed
import { describe, test } from 'vitest'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { findEventStore } from '../../support/eventstoredb.ts'
import { startCluster } from '../../support/eventstoredb-cluster.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { outageContract } from './event-log-outages.contract.ts'

deadlinesOfTheProduct()

const [KILLED, RESIGNED] = ['a cluster whose leader is killed', 'a cluster whose leader resigns']

const source = await findEventStore()
if (source?.kind === 'program') {
  outageContract('EventStoreDB, three nodes', [KILLED, RESIGNED], async () => {
    const cluster = await startCluster(source.path)
    let opened = 0
    return {
      // by the addresses of all nodes, or by asking one: only at one address, as in a process, are there appends
      open() {
        opened += 1
        const url = opened <= 2 ? `esdb://${cluster.nodes.join(',')}` : `esdb+discover://${cluster.nodes[0]}`
        return openEventStoreEventLog({ url: `${url}?tls=false`, patienceMs: 240_000 })
      },
      remove: () => cluster.stop(),
      outages: [
        { name: KILLED, happen: () => cluster.killLeader() },
        { name: RESIGNED, happen: () => cluster.resignLeader() },
      ],
    }
  })
} else {
  describe.skip('event log contract, outages: EventStoreDB, three nodes (the program was not found)', () =>
    test('skipped', () => undefined))
}

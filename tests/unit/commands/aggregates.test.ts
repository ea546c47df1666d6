import { expect, test } from 'vitest'
import { AggregateCache, Aggregates } from '../../../application/commands/aggregates.ts'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import {
  VIRTUAL_CLOCK_ID,
  VirtualClockMoved,
  virtualClock,
} from '../../../domain/operations/virtual-clock.ts'

test('nothing is decided on a stream that lacks an event', async () => {
  const registry = new EventRegistry(aggregates)
  const metadata = { tenant_id: null, environment: null, actor: { type: 'system', id: 'test' } } as const
  const ids = { correlation_id: 'c', causation_id: 'c', recorded_at: '2026-01-01T00:00:00.000Z' }
  const moved = registry.encode(VirtualClockMoved.of({ to: 1 }), { ...metadata, ...ids })
  const holding = (...revisions: number[]) => {
    const stored = revisions.map((revision) => ({ ...moved, stream: 's', revision, position: 1n }))
    return new Aggregates(
      { isExclusive: true, readStream: async () => stored } as unknown as EventLog,
      registry,
      new AggregateCache(),
    )
  }
  const load = (...revisions: number[]) => holding(...revisions).load(virtualClock, VIRTUAL_CLOCK_ID)
  expect(await load(0, 1)).toMatchObject({ state: { now: 1 }, revision: 1 })
  await expect(load(0, 2)).rejects.toThrow('lacks the event at revision 1')
  await expect(load(1)).rejects.toThrow('lacks the event at revision 0')
})

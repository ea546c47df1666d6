import { expect, test } from 'vitest'
import { leafOf } from '../../../application/audit/leaf.ts'
import { leafHash } from '../../../application/audit/merkle.ts'
import { TreeCheck } from '../../../application/audit/tree-check.ts'
import { grown } from '../../../application/audit/tree-tiles.ts'
import type { EventLog, StoredEvent } from '../../../application/ports/event-log.ts'

const event = (n: number): StoredEvent => ({
  position: BigInt(n),
  stream: `stream-${n}`,
  revision: 0,
  eventId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'Happened',
  data: '{}',
  metadata: '{}',
})

/** What is found in a log of which the tree has the events 1 to 5. */
async function found(log: readonly StoredEvent[]) {
  const known = [1, 2, 3, 4, 5].map(event)
  const eventIds = Buffer.from(known.map(({ eventId }) => eventId.replaceAll('-', '')).join(''), 'hex')
  const leaves = known.map((one) => leafHash(leafOf(one)))
  const tiles = grown(0, new Map(), leaves).map((tile) => ({ ...tile, after: 0n, eventIds }))
  const check = await TreeCheck.open({
    log: {
      idAt: async () => known[4]!.eventId,
      readAll: async ({ after }) => {
        const events = log.slice(log.findIndex(({ position }) => position === after) + 1).slice(0, 1)
        return { events, checkpoint: after, atHead: true }
      },
    } as Partial<EventLog> as EventLog,
    store: {
      end: async () => ({ size: 5, position: 5n, eventId: known[4]!.eventId }),
      tiles: async () => tiles,
      checkpoints: async () => [],
    },
    verifiers: async () => [],
    copies: async () => [],
  })
  for (const one of log) await check.take(one)
  return check.finish()
}

const problem = (kind: string, n: number) => ({ problem: kind, eventId: event(n).eventId })

test.each([
  { what: 'nothing', log: [1, 2, 3, 4, 5], expected: null },
  { what: 'nothing in what came later', log: [1, 2, 3, 4, 5, 6], expected: null },
  { what: 'an event that was put in', log: [1, 2, 9, 3, 4, 5], expected: problem('inserted_event', 9) },
  { what: 'an event that was taken out', log: [1, 2, 4, 5], expected: problem('removed_event', 3) },
  { what: 'events in another order', log: [1, 3, 2, 4, 5], expected: problem('reordered_events', 3) },
  { what: 'an event that is another', log: [1, 2, 9, 4, 5], expected: problem('changed_event', 9) },
  { what: 'which event is the first that is gone', log: [1, 2, 3], expected: { missing: event(4).eventId } },
])('the tree over the log tells $what', async ({ log, expected }) => {
  const difference = await found(log.map(event))
  if (expected === null) expect(difference).toBeNull()
  else expect(difference).toMatchObject(expected)
})

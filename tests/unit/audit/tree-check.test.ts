import { describe, expect, test } from 'vitest'
import { signedNote, signerOf, verifierKey, verifierOf } from '../../../application/audit/checkpoint-note.ts'
import { leafOf } from '../../../application/audit/leaf.ts'
import { GrowingRoot, leafHash } from '../../../application/audit/merkle.ts'
import { TreeCheck } from '../../../application/audit/tree-check.ts'
import { grown } from '../../../application/audit/tree-tiles.ts'
import type { EventLog, StoredEvent } from '../../../application/ports/event-log.ts'
import { newWitness } from '../../support/witness.ts'

const event = (n: number): StoredEvent => ({
  position: BigInt(n),
  stream: `stream-${n}`,
  revision: 0,
  eventId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'Happened',
  data: '{}',
  metadata: '{}',
})

const signer = signerOf('compstream/log', Buffer.alloc(32, 7))
const witnesses = [newWitness('witness.example/w'), newWitness('witness.example/w')] as const

/** Checks a log of which the tree has the events 1 to 5. @param notes its checkpoints. */
async function checked(log: readonly StoredEvent[], notes: readonly string[] = []) {
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
    verifiers: async () =>
      [verifierKey(signer), ...witnesses.map(({ key }) => key)].map((key) => verifierOf(key)!),
    copies: async () => notes,
  })
  for (const one of log) {
    const difference = await check.take(one)
    if (difference) return { check, difference }
  }
  return { check, difference: await check.finish() }
}

/** The checkpoint of these events. */
function noteOf(events: readonly StoredEvent[]): string {
  const tree = new GrowingRoot()
  for (const one of events) tree.add(leafHash(leafOf(one)))
  return signedNote({ origin: signer.name, size: tree.size, root: tree.root }, signer)
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
  const { difference } = await checked(log.map(event))
  if (expected === null) expect(difference).toBeNull()
  else expect(difference).toMatchObject(expected)
})

describe('a checkpoint that the log signed', () => {
  const log = [1, 2, 3, 4, 5].map(event)
  const good = noteOf(log)
  const forged = noteOf([1, 2, 3, 4, 9].map(event))

  test.each([
    ['a line that cannot be read', (note: string) => `${note}x\n`],
    ['an empty line', (note: string) => `${note}\nx\n`],
    ['a line without an end', (note: string) => `${note}x`],
    ['no end', (note: string) => note.trimEnd()],
    [
      'a wrong cosignature',
      (note: string) => `${note}${witnesses[0].cosign(note.replace('\n', 'x\n'), 1)}\n`,
    ],
  ])('is compared although it has %s, a status of logs that are whole', async (_, written) => {
    expect((await checked(log, [written(forged)])).difference).toMatchObject({
      problem: 'differs_from_checkpoint',
    })
    const { check, difference } = await checked(log, [written(good)])
    expect([check.compared, check.witnesses, difference]).toEqual([1, [], 'unknown_signature'])
  })

  test('names each key that cosigned it, also those of one name', async () => {
    const { check, difference } = await checked(log, [
      `${good}${witnesses.map((one) => `${one.cosign(good, 1)}\n`).join('')}`,
    ])
    expect(difference).toBeNull()
    expect(check.witnesses).toEqual(
      witnesses.map(({ key }) => ({
        witness: 'witness.example/w',
        key_id: key.split('+')[1],
        signed_at: '1970-01-01T00:00:01.000Z',
        size: 5,
      })),
    )
  })
})

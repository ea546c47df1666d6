import { expect, test } from 'vitest'
import { HashChains } from '../../../application/audit/chain-verification.ts'
import { chainHash, NO_PREDECESSOR, splitHash, withHash } from '../../../application/commands/hash-chain.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'

/** More than are kept at hand. */
const STREAMS = 60_000
const PAGE = 1_000

const log: StoredEvent[] = []
const byPlace = new Map<string, StoredEvent>()
for (let n = 0; n < 2 * STREAMS; n += 1) {
  const [stream, revision] = [`test-${n % STREAMS}`, Math.floor(n / STREAMS)]
  const event = { eventId: String(n), type: 'SomethingHappened', data: '{}', metadata: '{}' }
  const before = byPlace.get(`${stream}@${revision - 1}`)
  const predecessor = before ? splitHash(before.metadata)!.hash : NO_PREDECESSOR
  const metadata = withHash('{}', chainHash(predecessor, stream, revision, event))
  log.push({ ...event, metadata, stream, revision, position: BigInt(n + 1) })
  byPlace.set(`${stream}@${revision}`, log.at(-1)!)
}

async function check(events: readonly StoredEvent[]) {
  const read: number[] = []
  const chains = new HashChains(async (places) => {
    read.push(places.length)
    return places.flatMap(({ stream, revision }) => byPlace.get(`${stream}@${revision}`) ?? [])
  })
  const problems: unknown[] = []
  for (let from = 0; from < events.length; from += PAGE) {
    const page = events.slice(from, from + PAGE)
    await chains.prepare(page)
    for (const event of page) {
      const problem = chains.check(event)
      if (problem) problems.push([event.position, problem])
    }
  }
  return { problems, read }
}

test('a chain that is no longer at hand is read with the others of its page', async () => {
  const { problems, read } = await check(log)
  expect(problems).toEqual([])
  expect(read).toEqual(Array.from({ length: STREAMS / PAGE }, () => PAGE))
})

test('an event that was changed, or stands behind one that is missing, is found among so many', async () => {
  const [changed, last] = [log[STREAMS + 5]!, log.at(-1)!]
  const events = log.with(STREAMS + 5, { ...changed, data: '{"a":1}' }).with(-1, { ...last, revision: 3 })
  const { problems } = await check(events)
  expect(problems).toEqual([
    [changed.position, 'hash_mismatch'],
    [last.position, 'missing_events'],
  ])
})

test('streams whose first events are of the page are read from nowhere', async () => {
  const own = log.slice(0, 3).flatMap((event) => [event, log[log.indexOf(event) + STREAMS]!])
  expect(await check(own)).toEqual({ problems: [], read: [] })
})

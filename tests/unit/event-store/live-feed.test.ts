import { expect, test } from 'vitest'
import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import { LiveFeed } from '../../../infrastructure/event-store/live-feed.ts'

const TYPES = ['A', 'B', 'C', 'D'] as const

function eventAt(position: number): StoredEvent {
  const type = TYPES[(position * 7 + (position >> 3)) % TYPES.length]!
  return {
    position: BigInt(position),
    stream: 's',
    revision: position,
    eventId: String(position),
    type,
    data: '{}',
    metadata: '{}',
  }
}

/** A log in memory that others append to, and a feed of it. */
function openFeed() {
  const events: StoredEvent[] = []
  const asked: (readonly string[] | undefined)[] = []
  const read = (after: bigint, maxCount: number, types?: readonly string[]): LogPage => {
    const found = events.filter(({ position, type }) => position > after && (!types || types.includes(type)))
    const page = found.slice(0, maxCount)
    const head = BigInt(events.length)
    const full = page.length === maxCount
    const checkpoint = full ? page.at(-1)!.position : head > after ? head : after
    return { events: page, checkpoint, atHead: checkpoint >= head }
  }
  const feed = new LiveFeed(0n, async (after, types) => {
    asked.push(types)
    const read5 = read(after, 5, types)
    const page = { ...read5, events: read5.events.map((event) => ({ ...event })) }
    await new Promise((resolve) => setImmediate(resolve))
    return page
  })
  return {
    feed,
    asked,
    events,
    append(count: number, own: boolean) {
      const base = BigInt(events.length)
      const more = Array.from({ length: count }, (_, n) => eventAt(events.length + n + 1))
      events.push(...more)
      if (own) feed.publish(base, more)
      else feed.announce(BigInt(events.length))
    },
    /** Follows as a subscription does: from the log while the feed begins later, else from the feed. */
    async follow(after: bigint, types: readonly string[] | undefined, until: bigint): Promise<StoredEvent[]> {
      const seen: StoredEvent[] = []
      const wanted = types && new Set(types)
      const stop = feed.want(types)
      let position = after
      while (position < until) {
        const known = feed.after(position, 3, wanted)
        if (known === 'nothing') {
          await feed.beyond(position, AbortSignal.timeout(240_000))
          continue
        }
        const page = known === 'behind' ? read(position, 3, types) : known
        seen.push(...page.events)
        position = page.checkpoint
        await new Promise((resolve) => setImmediate(resolve))
      }
      stop()
      return seen
    },
  }
}

test('subscribers that come and go, each with types of its own, see all of theirs once and in order', async () => {
  const { feed, append, events, follow } = openFeed()
  let seed = 11
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const total = 4_000
  const followers: Promise<void>[] = []
  while (events.length < total) {
    append(1 + random(4), random(2) === 0)
    if (random(12) === 0) {
      const types = random(5) === 0 ? undefined : TYPES.filter(() => random(2) === 0)
      const after = BigInt(Math.max(0, events.length - random(60)))
      const until = BigInt(Math.min(total, events.length + random(400)))
      followers.push(
        follow(after, types, until).then((seen) => {
          const last = seen.at(-1)?.position ?? until
          const end = last > until ? last : until
          expect(seen).toEqual(
            events.filter(
              ({ position, type }) =>
                position > after &&
                position <= end &&
                (!types || (types as readonly string[]).includes(type)),
            ),
          )
        }),
      )
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  feed.announce(BigInt(events.length))
  await Promise.all(followers)
  expect(followers.length).toBeGreaterThan(100)
})

test('what nobody wants is not read', async () => {
  const { feed, append, asked, follow } = openFeed()
  append(50, false)
  append(50, false)
  expect(asked).toEqual([])
  const seen = follow(100n, ['A'], 200n)
  append(60, false)
  await new Promise((resolve) => setImmediate(resolve))
  append(40, false)
  expect((await seen).every(({ type }) => type === 'A')).toBe(true)
  expect(asked.length).toBeGreaterThan(0)
  expect(new Set(asked.flat())).toEqual(new Set(['A']))
  const reads = asked.length
  append(100, false)
  await new Promise((resolve) => setImmediate(resolve))
  expect(asked.length).toBe(reads)
  expect(feed.to).toBe(300n)
})

test('what is published right behind it is handed out as it is, the rest as it is read', async () => {
  const { feed, append, events, follow } = openFeed()
  const seen = follow(0n, undefined, 60n)
  append(10, true)
  expect(feed.to).toBe(10n)
  for (let n = 0; n < 10; n += 1) {
    // announced by nobody yet
    const theirs = [1, 2].map((next) => eventAt(events.length + next))
    events.push(...theirs)
    const own = [1, 2, 3].map((next) => eventAt(events.length + next))
    events.push(...own)
    expect(feed.publish(theirs.at(-1)!.position, own)).toBe(false)
    await feed.beyond(own.at(-1)!.position - 1n, AbortSignal.timeout(240_000))
  }
  const all = await seen
  expect(all).toEqual(events)
  expect(all.slice(0, 10).every((event, n) => event === events[n])).toBe(true)
})

test('reading that fails is reported and goes on', async () => {
  const failures: number[] = []
  const feed = new LiveFeed(
    0n,
    async (after) => {
      if (failures.length < 3) throw new Error('away')
      return { events: [eventAt(Number(after) + 1)], checkpoint: after + 1n, atHead: false }
    },
    (_, attempt) => failures.push(attempt),
  )
  feed.want()
  feed.announce(2n)
  await feed.beyond(1n, AbortSignal.timeout(240_000))
  expect(failures).toEqual([0, 1, 2])
  expect(feed.to).toBe(2n)
})

test('what it holds of large events is bounded in bytes', () => {
  const { feed } = openFeed()
  feed.want()
  const data = 'x'.repeat(512 * 1024)
  for (let n = 1; n <= 100; n += 1) feed.publish(BigInt(n - 1), [{ ...eventAt(n), data }])
  let held = 100
  while (feed.after(BigInt(100 - held), 1, undefined) === 'behind') held -= 1
  expect(held).toBeGreaterThan(1)
  expect(held * data.length).toBeLessThanOrEqual(8 * 1024 * 1024)
})

import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { AggregateCache, Aggregates } from '../../../application/commands/aggregates.ts'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import { KnownLog } from '../../../application/commands/known-log.ts'
import { nextTurn } from '../../../application/commands/time-slices.ts'
import type { Changes, EventLog } from '../../../application/ports/event-log.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import {
  VIRTUAL_CLOCK_ID,
  VirtualClockMoved,
  virtualClock,
} from '../../../domain/operations/virtual-clock.ts'

const registry = new EventRegistry(aggregates)
const metadata = { tenant_id: null, environment: null, actor: { type: 'system', id: 'test' } } as const
const ids = { correlation_id: 'c', causation_id: 'c', recorded_at: '2026-01-01T00:00:00.000Z' }
const movedTo = (to: number) => registry.encode(VirtualClockMoved.of({ to }), { ...metadata, ...ids })

test('nothing is decided on a stream that lacks an event', async () => {
  const moved = movedTo(1)
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

/** Streams of one event each, as a request reads them on a clock that stands still but for `pass`. */
function slowReads() {
  let now = performance.now()
  const pass = (ms: number) => {
    now += ms
  }
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  const moved = movedTo(1)
  const readStream = async (stream: string) => {
    await turn()
    pass(10)
    return [{ ...moved, stream, revision: 0, position: 1n }]
  }
  const log = { isExclusive: true, readStream } as unknown as EventLog
  return { pass, request: () => new Aggregates(log, registry, new AggregateCache()) }
}

test('a read that takes long waits behind no computation', async () => {
  const request = slowReads().request()
  let turns = 0
  const computations = Promise.all(
    Array.from({ length: 20 }, async () => {
      await nextTurn()
      turns += 1
    }),
  )
  expect((await request.load(virtualClock, VIRTUAL_CLOCK_ID)).revision).toBe(0)
  expect(turns).toBeLessThan(10)
  await computations
})

test('many that are read together leave others their turns', async () => {
  const { pass, request } = slowReads()
  let folded = 0
  const clock = {
    ...virtualClock,
    evolve() {
      pass(3)
      folded += 1
      return { now: 1 }
    },
  }
  const loaded = request().loadAll(clock, ['1', '2', '3', '4', '5', '6'])
  const seen: number[] = []
  while (folded < 6) {
    await turn()
    seen.push(folded)
  }
  await loaded
  for (const [index, one] of seen.entries()) expect(one - (seen[index - 1] ?? 0)).toBeLessThanOrEqual(2)
})

describe('what is known of a log', () => {
  const knownTo = async (upTo: bigint) => {
    const wentBack = vi.fn()
    const known = new KnownLog(wentBack)
    const learn = (changes: Changes) => known.catchUp({ changes: async () => changes })
    await learn({ upTo, revisions: new Map() })
    return { known, learn, wentBack }
  }

  test('is forgotten when the log has lost its newest events, and so is what was read of it', async () => {
    const { known, learn, wentBack } = await knownTo(10n)
    const seen = { revision: 1, asOf: 3n }
    expect(known.isCurrent('one', seen)).toBe(true)
    await learn({ upTo: 7n, revisions: new Map() })
    expect([known.reached, known.isCurrent('one', seen), wentBack.mock.calls.length]).toEqual([7n, false, 1])
    await learn({ upTo: 9n, revisions: new Map([['one', 2]]) })
    expect(known.isCurrent('one', { revision: 1, asOf: 7n })).toBe(false)
    expect(wentBack).toHaveBeenCalledTimes(1)
  })

  test('tells a stream that an append of the process itself has moved on, however many others are remembered', async () => {
    const { known } = await knownTo(10n)
    for (let n = 0; n < 50_000; n += 1) known.appended(`stream-${n}`, 0, 11n + BigInt(n), 10n + BigInt(n))
    const seen = { revision: 0, asOf: known.reached }
    known.appended('one', 1, known.reached + 1n, known.reached)
    expect(known.isCurrent('one', seen)).toBe(false)
  })
})

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  backoff,
  type ProcessManager,
  type WorkKind,
  work,
} from '../../../application/followers/process-manager.ts'
import type { ProcessManagerRunner } from '../../../application/followers/runner.ts'
import { throughOutages } from '../../../application/followers/through-outages.ts'
import {
  type AdvanceClockParts,
  advanceClock,
  LATEST,
} from '../../../application/operations/advance-clock.ts'
import { drain } from '../../../application/operations/drain.ts'
import { ProviderUnavailable } from '../../../application/ports/provider.ts'
import { isoTime, monthsAfter } from '../../../domain/kernel/calendar.ts'
import { MOST_INSTALLMENTS } from '../../../domain/payments/links/direct-billing-plan.ts'
import { VirtualClock } from '../../../infrastructure/clock/virtual-clock.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, pieceOfWork, storeWork, until, type Workbench } from '../../support/workbench.ts'

let testDatabase: TestDatabase
let bench: Workbench
let runner: ProcessManagerRunner
const fired: { key: string; at: number }[] = []
let isAway = true
let onRing: WorkKind['run'] = async () => ({ outcome: 'done' })

const alarms: ProcessManager = {
  name: 'alarms',
  startAt: 'beginning',
  on: [],
  work: {
    // a bank that is away
    call: work({ payload: z.object({}), retry: backoff(2), timeLimitMs: 60_000 }, (item) => {
      fired.push({ key: item.key, at: bench.clock.now() })
      return throughOutages(bench, item, async () => {
        if (isAway) throw new ProviderUnavailable('away', { nothingHappened: true })
      })
    }),
    ring: work({ payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }, (item) => {
      fired.push({ key: item.key, at: bench.clock.now() })
      return onRing(item) as Promise<{ outcome: 'done' }>
    }),
  },
}

beforeEach(async () => {
  fired.length = 0
  isAway = true
  onRing = async () => ({ outcome: 'done' })
  testDatabase = await createTestDatabase()
  bench = await openWorkbench(testDatabase.url)
  runner = await bench.run([alarms])
})

afterEach(async () => {
  await bench.close()
  await testDatabase.drop()
})

function setAlarm(key: string, dueAt: number, kind: 'ring' | 'call' = 'ring'): Promise<void> {
  return storeWork(bench.store, pieceOfWork({ processManager: 'alarms', kind, key, dueAt }))
}

function partsOf(at: Workbench, positions = runner): AdvanceClockParts {
  const { commands, clock, store: work, leases, notices } = at
  const settle = (ms: number) => drain(at.drainParts(positions), ms)
  // on however slow a machine
  return { commands, clock, work, leases, notices, settle, turnMs: 600_000 }
}

type Fired = (at: number) => { readonly key: string; readonly at: number }
const advance = (by: { seconds: number } | { to: number }) =>
  advanceClock(partsOf(bench), by, operatorContext())

describe('advancing the virtual clock', () => {
  test('what waits for somebody who is away is looked at once after the move, and in time once they are back', async () => {
    const [start, day, quarter] = [bench.clock.now(), 86_400_000, 15 * 60_000]
    await setAlarm('bank', start + 10_000, 'call')
    await setAlarm('noon', start + day / 2)
    await advance({ to: start + day })
    await drain(bench.drainParts(runner), 10_000)
    const [bank, noon] = ['bank', 'noon'].map((key) => (at: number) => ({ key, at })) as [Fired, Fired]
    const looks = [start + 10_000, start + 10_000, start + day / 2, start + day]
    const first = [...looks.map(bank), noon(start + day / 2)].sort((a, b) => a.at - b.at)
    expect(fired.toSorted((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))).toEqual(first)
    // an earlier release looks for it in the payload
    const { rows } = await bench.database.pool.query('SELECT payload, away_since FROM runtime.work')
    const since = start + 10_000
    expect(rows).toEqual([{ payload: { away_since: since }, away_since: String(since) }])
    isAway = false
    await advance({ to: start + 2 * day })
    expect(fired.slice(first.length)).toEqual([bank(start + day + quarter)])
  })

  test('timers fire in order, each at its own due time, and those they set on the way too', async () => {
    const start = bench.clock.now()
    onRing = async ({ key }) => {
      // slow enough that a clock which did not wait would have moved on
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (key === 'b') await setAlarm('set by b', start + 25_000)
      return key === 'twice' && bench.clock.now() < start + 35_000
        ? { outcome: 'again', at: start + 35_000 }
        : { outcome: 'done' }
    }
    await setAlarm('c', start + 30_000)
    await setAlarm('b', start + 20_000)
    await setAlarm('twice', start + 15_000)
    await setAlarm('a', start + 10_000)
    await setAlarm('at the end', start + 40_000)
    await setAlarm('beyond', start + 40_001)
    expect(await advance({ seconds: 40 })).toEqual({ now: start + 40_000 })
    expect(bench.clock.now()).toBe(start + 40_000)
    await drain(bench.drainParts(runner), 10_000)
    expect(fired).toEqual([
      { key: 'a', at: start + 10_000 },
      { key: 'twice', at: start + 15_000 },
      { key: 'b', at: start + 20_000 },
      { key: 'set by b', at: start + 25_000 },
      { key: 'c', at: start + 30_000 },
      { key: 'twice', at: start + 35_000 },
      { key: 'at the end', at: start + 40_000 },
    ])
  })

  test('it ends where what begins then still has dates', async () => {
    expect(await advance({ to: LATEST })).toEqual({ now: LATEST })
    expect(await advance({ seconds: 0.001 })).toMatchObject({ rejected: true, code: 'invalid_time' })
    // with time to settle the last one
    expect(isoTime(monthsAfter(LATEST, MOST_INSTALLMENTS + 12))).toMatch(/^9980-12-31T/)
  })

  test('the time survives a restart', async () => {
    const start = bench.clock.now()
    await advance({ seconds: 86_400.5 })
    const reopened = await VirtualClock.open(bench.log, bench.registry, bench.notices)
    expect(reopened.now()).toBe(start + 86_400_500)
  })

  test('moves asked for at the same time add up, in one process and across processes', async () => {
    const other = await openWorkbench(testDatabase.url)
    const theirs = partsOf(other)
    const start = bench.clock.now()
    const moves = await Promise.all([
      advance({ seconds: 1 }),
      advanceClock(theirs, { seconds: 2 }, operatorContext()),
      advance({ seconds: 4 }),
      advanceClock(theirs, { seconds: 8 }, operatorContext()),
    ])
    expect(new Set(moves.map((moved) => 'now' in moved && moved.now)).size).toBe(4)
    expect(await advanceClock(theirs, { seconds: 0 }, operatorContext())).toEqual({ now: start + 15_000 })
    await other.close()
  })

  test('another process sees the clock move, and its timers fire', async () => {
    const other = await openWorkbench(testDatabase.url)
    const following = new AbortController()
    const clock = bench.clock as VirtualClock
    const ended = clock.follow(bench.log, bench.registry, following.signal)
    const start = clock.now()
    await setAlarm('a', start + 1_000)
    await setAlarm('b', start + 2_000)
    expect(await advanceClock(partsOf(other), { seconds: 3 }, operatorContext())).toEqual({
      now: start + 3_000,
    })
    await until(() => clock.now() === start + 3_000)
    expect(fired).toEqual([
      { key: 'a', at: start + 1_000 },
      { key: 'b', at: start + 2_000 },
    ])
    following.abort()
    await ended
    await other.close()
  })

  test('it only moves forward, and only to times that exist', async () => {
    const now = bench.clock.now()
    expect(await advance({ to: now - 1 })).toMatchObject({ rejected: true, code: 'clock_moves_forward' })
    expect(await advance({ seconds: -1 })).toMatchObject({ rejected: true, code: 'clock_moves_forward' })
    expect(await advance({ seconds: Number.NaN })).toMatchObject({ rejected: true, code: 'invalid_time' })
    for (const to of [LATEST + 1, 8.64e15 + 1]) {
      expect(await advance({ to })).toMatchObject({ rejected: true, code: 'invalid_time' })
    }
    expect(await advance({ to: now })).toEqual({ now })
    expect(await bench.log.readStream('virtualClock-service')).toHaveLength(1)
  })

  test('who does not get its turn in time is refused, and nothing was done', async () => {
    const other = await openWorkbench(testDatabase.url)
    const lease = (await other.leases.acquire('virtual-clock'))!
    const start = bench.clock.now()
    const impatient = { ...partsOf(bench), turnMs: 120 }
    const refused = await advanceClock(impatient, { seconds: 1 }, operatorContext())
    expect(refused).toMatchObject({ kind: 'conflict', code: 'clock_is_moving' })
    expect((refused as { message: string }).message).toContain(other.leases.owner)
    await lease.release()
    await other.close()

    let atRest: () => void = () => undefined
    let isSettling = false
    const settle = () =>
      new Promise<boolean>((resolve) => {
        isSettling = true
        atRest = () => resolve(true)
      })
    const first = advanceClock({ ...partsOf(bench), settle }, { seconds: 2 }, operatorContext())
    await until(() => isSettling)
    const impatientOnes = [1, 4].map((seconds) => advanceClock(impatient, { seconds }, operatorContext()))
    for (const one of impatientOnes) expect(await one).toMatchObject({ code: 'clock_is_moving' })
    const patient = advance({ seconds: 8 })
    expect(await bench.log.readStream('virtualClock-service')).toHaveLength(1)
    atRest()
    expect(await first).toEqual({ now: start + 2_000 })
    expect(await patient).toEqual({ now: start + 10_000 })
  })

  test('a timer that goes on failing does not stop the clock', async () => {
    const start = bench.clock.now()
    onRing = async ({ key }) => {
      if (key === 'broken') return { outcome: 'stop', why: 'broken' }
      return { outcome: 'done' }
    }
    await setAlarm('broken', start + 1_000)
    await setAlarm('sound', start + 2_000)
    expect(await advance({ seconds: 5 })).toEqual({ now: start + 5_000 })
    expect(fired.map(({ key }) => key)).toEqual(['broken', 'sound'])
  })
})

test('two processes that start at the same moment agree on the time', async () => {
  const fresh = await createTestDatabase()
  const both = await Promise.all([openWorkbench(fresh.url), openWorkbench(fresh.url)])
  expect(both[0].clock.now()).toBe(both[1].clock.now())
  expect(await both[0].log.readStream('virtualClock-service')).toHaveLength(1)
  await Promise.all(both.map((each) => each.close()))
  await fresh.drop()
})

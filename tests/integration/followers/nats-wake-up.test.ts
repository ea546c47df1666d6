import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  backoff,
  type ProcessManager,
  type WorkItem,
  work as workOf,
} from '../../../application/followers/process-manager.ts'
import type { WorkStore } from '../../../application/followers/work-store.ts'
import type { WorkHint, WorkQueue } from '../../../application/ports/work-queue.ts'
import { Nats } from '../../../infrastructure/messaging/nats/connection.ts'
import { NatsNotices } from '../../../infrastructure/messaging/nats/notices.ts'
import {
  JetStreamWorkQueue,
  WORK_STREAM,
  workSubject,
} from '../../../infrastructure/messaging/nats/work-queue.ts'
import { ReachedPositions } from '../../../projections/runtime/reached-positions.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../../support/nats.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { openWorkbench, pieceOfWork, storeWork, until, type Workbench } from '../../support/workbench.ts'

deadlinesOfTheProduct()

/** So rarely that nothing in a test happens by looking. */
const NEVER_MS = 600_000

interface Process {
  readonly bench: Workbench
  readonly nats: Nats
  readonly notices: NatsNotices
  readonly queue: JetStreamWorkQueue
}

let server: NatsServer
let testDatabase: TestDatabase
let one: Process
let two: Process

async function open(): Promise<Process> {
  const nats = await Nats.open([server.url], { info: () => undefined, warn: () => undefined })
  const notices = new NatsNotices(nats)
  const queue = new JetStreamWorkQueue(nats)
  return { nats, notices, queue, bench: await openWorkbench(testDatabase.url, { notices, queue }) }
}

async function close({ bench, notices, nats }: Process): Promise<void> {
  await bench.close()
  notices.close()
  await nats.close()
}

function deliveries(deliverOne: (item: WorkItem) => Promise<void> = async () => undefined): {
  readonly manager: ProcessManager
  readonly done: string[]
} {
  const done: string[] = []
  const declared = { payload: z.object({}), slots: 3, retry: backoff(), timeLimitMs: 60_000 }
  const deliver = workOf(declared, async (item) => {
    await deliverOne(item)
    done.push(item.key)
    return { outcome: 'done' }
  })
  return { done, manager: { name: 'parcels', startAt: 'beginning', on: [], work: { deliver } } }
}

const work = (key: string) => pieceOfWork({ ...HINT, key })

const keys = (count: number) => Array.from({ length: count }, (_, n) => `parcel ${n}`)
const HINT = { processManager: 'parcels', kind: 'deliver' }

async function store(process: Process, ...keys: readonly string[]): Promise<void> {
  await storeWork(process.bench.store, ...keys.map(work))
}

/** Stores work and tells of it, as a process manager's reaction does. */
async function storeAndOffer(process: Process, ...keys: readonly string[]): Promise<void> {
  await store(process, ...keys)
  await process.queue.offer(keys.map(() => HINT))
}

async function isEverythingDone(process: Process): Promise<boolean> {
  return process.bench.drain({
    positions: async () => new Map([['parcels', await process.bench.log.head()]]),
    kinds: [HINT],
  })
}

/** Every hint comes to the worker twice. */
function twice(queue: WorkQueue): WorkQueue {
  let again: WorkHint | null = null
  return {
    offer: (hints) => queue.offer(hints),
    async next(signal) {
      const repeated = again
      again = repeated ? null : await queue.next(signal)
      return repeated ?? again
    },
  }
}

/** Counts what a process asks the store for. */
function counting(store: WorkStore): { readonly store: WorkStore; readonly claims: () => number } {
  let claims = 0
  const counted = new Proxy(store, {
    get(target, name) {
      if (name === 'claim') claims += 1
      const value = target[name as keyof WorkStore]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { store: counted, claims: () => claims }
}

describe.skipIf(natsSource === null)('over NATS', () => {
  beforeEach(async () => {
    server = await startNats()
    testDatabase = await createTestDatabase()
    one = await open()
    two = await open()
  })
  afterEach(async () => {
    await Promise.all([one, two].map((process) => process && close(process)))
    await testDatabase?.drop()
    await server?.stop()
  })

  test('work that one process stores is started by another that would not look by itself', async () => {
    const { manager, done } = deliveries()
    await two.bench.run([manager], { pollMs: NEVER_MS })
    for (const [n, key] of keys(5).entries()) {
      await storeAndOffer(one, key)
      await until(() => done.length === n + 1)
    }
    expect(done).toEqual(keys(5))
  })

  test('each hint wakes one worker', async () => {
    const { manager, done } = deliveries()
    const counted = [one, two].map(({ bench }) => ({ bench, ...counting(bench.store) }))
    for (const { bench, store } of counted) await bench.run([manager], { pollMs: NEVER_MS }, { store })
    const claims = () => counted.reduce((sum, { claims }) => sum + claims(), 0)
    // everybody looks once at the start
    await until(() => claims() >= 2)
    for (const [n, key] of keys(10).entries()) {
      await storeAndOffer(one, key)
      await until(() => done.length === n + 1)
    }
    await until(() => isEverythingDone(one))
    expect(done).toEqual(keys(10))
    // a worker that is looking when a hint comes may have found what it is about
    expect(claims()).toBeLessThanOrEqual(2 + 10)
  })

  test('what a process that stops was doing goes on in another at once', async () => {
    const stuck = deliveries(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    )
    const runner = await one.bench.run([stuck.manager], { pollMs: NEVER_MS })
    await storeAndOffer(two, 'long')
    await until(async () => (await two.bench.store.counts({ now: 1 })).leased === 1)
    const other = deliveries()
    await two.bench.run([other.manager], { pollMs: NEVER_MS })
    await runner.stop()
    await until(() => other.done.length === 1)
    expect([stuck.done, other.done]).toEqual([[], ['long']])
  })

  test('every hint twice, and again from outside, doubles nothing', async () => {
    const { manager, done } = deliveries()
    for (const { bench, queue } of [one, two]) {
      await bench.run([manager], { pollMs: NEVER_MS }, { queue: twice(queue) })
    }
    const all = keys(40)
    await storeAndOffer(one, ...all.slice(0, 20))
    for (const key of all.slice(20)) await storeAndOffer(two, key)
    const { connection } = one.nats
    for (const _ of all) await connection.jetstream().publish(workSubject(HINT), 'of an earlier build')
    await until(() => done.length === all.length)
    const { streams } = await connection.jetstreamManager()
    await until(async () => (await streams.info(WORK_STREAM)).state.messages === 0)
    expect(await isEverythingDone(two)).toBe(true)
    expect([...done].sort()).toEqual([...all].sort())
  })

  test('who waits for a projection of another process sees it with the notice, in one look for all', async () => {
    let position = 5n
    let looks = 0
    const positions = async (names: readonly string[]) => {
      looks += 1
      return new Map(names.map((name) => [name, position]))
    }
    const progress = new ReachedPositions({ positions }, two.notices)
    const waits = Array.from({ length: 50 }, () => progress.waitFor('accounts', 7n, 90_000))
    expect(await progress.waitFor('accounts', 5n, 0)).toBe(true)
    expect(await progress.waitFor('accounts', 6n, 0)).toBe(false)
    position = 7n
    const before = looks
    one.notices.wake('position')
    expect(new Set(await Promise.all(waits))).toEqual(new Set([true]))
    // not one look for each
    expect(looks - before).toBeLessThan(waits.length)
  })

  test.skipIf(!natsCanBeKilled)('without the server everything goes on by looking', async () => {
    const { manager, done } = deliveries()
    await two.bench.run([manager], { pollMs: 50 })
    await server.own!.kill()
    await until(() => !one.nats.connected && !two.nats.connected)
    await storeAndOffer(one, 'a', 'b', 'c')
    one.notices.wake('work')
    await until(() => done.length === 3)
    const progress = new ReachedPositions({ positions: async () => new Map([['accounts', 9n]]) }, two.notices)
    expect(await progress.waitFor('accounts', 9n, 1_000)).toBe(true)
  })
})

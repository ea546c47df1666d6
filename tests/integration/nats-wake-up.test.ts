import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ProcessManager } from '../../application/process-managers/process-manager.ts'
import type { WorkToStore } from '../../application/process-managers/work-store.ts'
import { Nats } from '../../infrastructure/messaging/nats/connection.ts'
import { NatsNotices } from '../../infrastructure/messaging/nats/notices.ts'
import { RemoteProgress } from '../../projections/runtime/remote-progress.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../support/nats.ts'
import { openWorkbench, until, type Workbench } from '../support/workbench.ts'

/** So rarely that nothing in a test happens by looking. */
const NEVER_MS = 600_000

interface Process {
  readonly bench: Workbench
  readonly nats: Nats
  readonly notices: NatsNotices
}

let server: NatsServer
let testDatabase: TestDatabase
let one: Process
let two: Process

async function open(): Promise<Process> {
  const nats = await Nats.open([server.url], { info: () => undefined, warn: () => undefined })
  const notices = new NatsNotices(nats)
  return { nats, notices, bench: await openWorkbench(testDatabase.url, { notices }) }
}

async function close({ bench, notices, nats }: Process): Promise<void> {
  await bench.close()
  notices.close()
  await nats.close()
}

function deliveries(): { readonly manager: ProcessManager; readonly done: string[] } {
  const done: string[] = []
  const deliver = async ({ key }: { key: string }) => {
    done.push(key)
    return { outcome: 'done' } as const
  }
  return { done, manager: { name: 'parcels', handles: [], react: () => [], work: { deliver } } }
}

const work = (key: string): WorkToStore => ({
  ...{ processManager: 'parcels', kind: 'deliver', key, payload: {}, dueAt: 0 },
  ...{ correlationId: 'c', causationId: 'c', tenantId: null, environment: null },
})

async function store(process: Process, ...keys: readonly string[]): Promise<void> {
  await process.bench.store.change({ store: keys.map((key) => work(key)), cancel: [] })
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
    for (let n = 0; n < 20; n += 1) {
      await store(one, `parcel ${n}`)
      one.notices.wake('work')
      await until(() => done.length === n + 1)
    }
  })

  test('who waits for a projection of another process sees it with the notice, in one look for all', async () => {
    let position = 5n
    let looks = 0
    const positions = async (names: readonly string[]) => {
      looks += 1
      return new Map(names.map((name) => [name, position]))
    }
    const progress = new RemoteProgress({ positions }, two.notices)
    const waits = Array.from({ length: 50 }, () => progress.waitFor('accounts', 7n, 10_000))
    expect(await progress.waitFor('accounts', 5n, 0)).toBe(true)
    expect(await progress.waitFor('accounts', 6n, 0)).toBe(false)
    position = 7n
    const before = looks
    one.notices.wake('position')
    expect(new Set(await Promise.all(waits))).toEqual(new Set([true]))
    expect(looks - before).toBeLessThan(10)
  })

  test('notices without any cause do no harm', async () => {
    const { manager, done } = deliveries()
    await two.bench.run([manager], { pollMs: NEVER_MS })
    await store(one, 'only')
    for (let n = 0; n < 500; n += 1) {
      one.notices.wake('work')
      one.notices.wake('position')
      if (n % 25 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => done.length > 0)
    expect(await two.bench.drain({ positions: async () => new Map() })).toBe(true)
    expect(done).toEqual(['only'])
  })

  test.skipIf(!natsCanBeKilled)('without the server everything goes on by looking', async () => {
    const { manager, done } = deliveries()
    await two.bench.run([manager], { pollMs: 50 })
    await server.own!.kill()
    await until(() => !one.nats.connected && !two.nats.connected)
    await store(one, 'a', 'b', 'c')
    one.notices.wake('work')
    await until(() => done.length === 3)
    const progress = new RemoteProgress({ positions: async () => new Map([['accounts', 9n]]) }, two.notices)
    expect(await progress.waitFor('accounts', 9n, 1_000)).toBe(true)
  })
})

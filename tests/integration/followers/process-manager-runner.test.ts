import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import {
  backoff,
  cancel,
  on,
  type ProcessManager,
  perform,
  processManager,
  type WorkItem,
  type WorkKind,
  type WorkOutcome,
  work as workOf,
} from '../../../application/followers/process-manager.ts'
import type { RunnerOptions } from '../../../application/followers/runner.ts'
import { CheckpointMoved, type WorkStore } from '../../../application/followers/work-store.ts'
import { EventLogUnavailable, type StoredEvent } from '../../../application/ports/event-log.ts'
import { ReadModelsLate } from '../../../application/ports/read-models.ts'
import type { Decider } from '../../../domain/kernel/decider.ts'
import { type EventOf, eventType } from '../../../domain/kernel/event-type.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { systemClock } from '../../../infrastructure/clock/system-clock.ts'
import { HeldLeases } from '../../../infrastructure/ownership/leases.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { EVENT_METADATA } from '../../support/log.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, pieceOfWork, storeWork, until, type Workbench } from '../../support/workbench.ts'

// a parcel service: what a process manager does is easy to see in it
const ParcelSent = eventType('ParcelSent', { parcel: z.string(), dueAt: z.number().nullable() })
const ParcelRecalled = eventType('ParcelRecalled', { parcel: z.string() })
type ParcelEvent = EventOf<typeof ParcelSent | typeof ParcelRecalled>
const parcel: Decider<null, ParcelEvent, ParcelEvent> = {
  category: 'parcel',
  events: [ParcelSent, ParcelRecalled],
  initialState: null,
  evolve: () => null,
  decide: (command) => [command],
}

type Payload = { readonly parcel: string }
type Handler = (item: WorkItem<Payload>) => Promise<WorkOutcome<Payload>>
type Declared = Partial<Pick<WorkKind<Payload>, 'slots' | 'perKey' | 'retry' | 'timeLimitMs'>>

/** @param think what a reaction makes of a parcel's name; may throw. */
function parcels(
  run: Handler,
  declared: Declared = {},
  think: (parcel: string) => string = (parcel) => parcel,
): ProcessManager {
  const payload = z.object({ parcel: z.string() })
  return processManager({
    name: 'parcels',
    startAt: 'beginning',
    on: [
      on(ParcelSent, ({ data: { parcel: name, dueAt } }) => {
        const parcel = think(name)
        return [perform('deliver', parcel, { parcel }, dueAt === null ? {} : { at: dueAt })]
      }),
      on(ParcelRecalled, ({ data }) => [cancel('deliver', data.parcel)]),
    ],
    work: { deliver: workOf({ payload, retry: backoff(), timeLimitMs: 60_000, ...declared }, run) },
  })
}

let testDatabase: TestDatabase
let bench: Workbench
const more: Workbench[] = []

beforeEach(async () => {
  testDatabase = await createTestDatabase()
  bench = await openWorkbench(testDatabase.url, { aggregates: [parcel] })
})

afterEach(async () => {
  await Promise.all([bench, ...more.splice(0)].map((each) => each.close()))
  await testDatabase.drop()
})

async function another(clock = bench.clock): Promise<Workbench> {
  const other = await openWorkbench(testDatabase.url, { aggregates: [parcel], clock })
  more.push(other)
  return other
}

async function happen(event: ParcelEvent, id = event.data.parcel): Promise<void> {
  const done = await bench.commands.execute(parcel, id, event, {
    ...operatorContext(),
    correlationId: `about-${event.data.parcel}`,
  })
  if (isRejection(done)) throw new Error(done.message)
}

const send = (name: string, dueAt: number | null = null) => happen(ParcelSent.of({ parcel: name, dueAt }))
const recall = (name: string) => happen(ParcelRecalled.of({ parcel: name }))

/** A handler that notes what it is given and then does as told. */
function courier(then: Handler = async () => ({ outcome: 'done' })) {
  const deliveries: WorkItem<Payload>[] = []
  const handler: Handler = (item) => {
    deliveries.push(item)
    return then(item)
  }
  return { handler, deliveries, names: () => deliveries.map(({ key }) => key) }
}

const counts = () => bench.store.counts({ now: bench.clock.now() })

describe('reacting to the log', () => {
  test('every event leads to its work once, with its correlation and its cause', async () => {
    const { handler, deliveries, names } = courier()
    await send('before')
    const runner = await bench.run([parcels(handler)])
    await send('after')
    expect(await bench.drain(runner)).toBe(true)
    expect(names().sort()).toEqual(['after', 'before'])
    const [stored] = await bench.log.readStream('parcel-after')
    expect(deliveries.find(({ key }) => key === 'after')).toMatchObject({
      payload: { parcel: 'after' },
      attempt: 1,
      correlationId: 'about-after',
      causationId: stored!.eventId,
    })
    expect(await counts()).toEqual({ due: 0, leased: 0, held: 0, later: 0, failed: 0, oldestDue: null })
  })

  for (const [how, sabotage] of [
    ['before it is written', async () => Promise.reject(new Error('cut off'))],
    [
      'after it was written, with its outcome unknown',
      async (write: () => Promise<unknown>) => {
        await write()
        throw new Error('cut off')
      },
    ],
  ] as const) {
    test(`work is stored exactly once when storing it fails ${how}`, async () => {
      const { handler, names } = courier()
      let failures = 3
      const store = replaced(bench.store, {
        advance: (...args) => {
          const write = () => bench.store.advance(...args)
          if (args[3].store.length === 0 || failures === 0) return write()
          failures -= 1
          return sabotage(write)
        },
      })
      const runner = await bench.run([parcels(handler)], {}, { store })
      await send('a')
      await send('b')
      expect(await bench.drain(runner)).toBe(true)
      await send('c')
      await send('d')
      expect(await bench.drain(runner)).toBe(true)
      expect(failures).toBeLessThan(3)
      expect(names().sort()).toEqual(['a', 'b', 'c', 'd'])
    })
  }

  test('an owner that was replaced can no longer store anything', async () => {
    const { store } = bench
    expect(await store.takeOver('parcels', 1)).toBe(0n)
    await store.advance('parcels', { position: 0n, epoch: 1 }, 5n, { store: [], cancel: [] })
    expect(await store.takeOver('parcels', 2)).toBe(5n)
    const late = store.advance('parcels', { position: 5n, epoch: 1 }, 6n, { store: [work('x')], cancel: [] })
    await expect(late).rejects.toBeInstanceOf(CheckpointMoved)
    await expect(store.takeOver('parcels', 1)).rejects.toBeInstanceOf(CheckpointMoved)
    expect((await counts()).due).toBe(0)
    const wrong = store.advance('parcels', { position: 4n, epoch: 2 }, 6n, { store: [work('x')], cancel: [] })
    await expect(wrong).rejects.toBeInstanceOf(CheckpointMoved)
    expect((await counts()).due).toBe(0)
  })

  test('a second process stands by and takes over when the first stops', async () => {
    const mine = courier()
    const theirs = courier()
    const other = await another()
    const first = await bench.run([parcels(mine.handler)])
    await send('one')
    await bench.drain(first)
    const second = await other.run([parcels(theirs.handler)])
    await first.stop()
    await send('two')
    expect(await bench.drain(second)).toBe(true)
    expect([...mine.names(), ...theirs.names()]).toEqual(['one', 'two'])
  })

  test('an event that cannot be reacted to holds up its own stream only, until it is redriven', async () => {
    const { handler, names } = courier()
    let broken = true
    const think = (parcel: string) => {
      if (broken && parcel === 'unthinkable') throw new Error('cannot be reacted to')
      return parcel
    }
    const runner = await bench.run([parcels(handler, {}, think)])
    await happen(ParcelSent.of({ parcel: 'unthinkable', dueAt: null }), 'odd')
    await happen(ParcelSent.of({ parcel: 'behind', dueAt: null }), 'odd')
    await send('elsewhere')
    // soon it is known that trying again does not help
    expect(await bench.drain(runner)).toBe(true)
    expect(names()).toEqual(['elsewhere'])
    const failed = { processManager: 'parcels', kind: '$stream', key: 'parcel-odd', attempts: 3 }
    expect(await runner.failedWork(10)).toMatchObject([failed])
    expect(await runner.status()).toMatchObject([{ deadLetteredStreams: 1, state: 'active' }])

    broken = false
    expect(await runner.redrive({ dryRun: true })).toBe(1)
    expect(names()).toEqual(['elsewhere'])
    expect(await runner.redrive({ dryRun: false })).toBe(1)
    expect(await bench.drain(runner)).toBe(true)
    // pieces of different keys are done side by side
    expect(names().sort()).toEqual(['behind', 'elsewhere', 'unthinkable'])
    expect((await counts()).failed).toBe(0)
    expect(await runner.status()).toMatchObject([{ deadLetteredStreams: 0 }])
  })

  // the one before it redrives
  test('a redrive goes as far as the next event that cannot be reacted to', { tags: 'long' }, async () => {
    const { handler, names } = courier()
    let broken = new Set(['first', 'middle'])
    const think = (parcel: string) => {
      if (broken.has(parcel)) throw new Error('cannot be reacted to')
      return parcel
    }
    const runner = await bench.run([parcels(handler, {}, think)], { pageSize: 2 })
    for (const name of ['first', 'a', 'b', 'middle', 'c', 'd'])
      await happen(ParcelSent.of({ parcel: name, dueAt: null }), 'odd')
    await bench.drain(runner)

    broken = new Set(['middle'])
    const key = { processManager: 'parcels', kind: '$stream', key: 'parcel-odd' }
    expect(await runner.redrive({ key: { ...key, key: 'parcel-other' }, dryRun: false })).toBe(0)
    expect(await runner.redrive({ key, dryRun: false })).toBe(1)
    await bench.drain(runner)
    expect(names().sort()).toEqual(['a', 'b', 'first'])
    // its tries counted afresh
    expect(await runner.failedWork(10)).toMatchObject([{ ...key, attempts: 3 }])

    broken.clear()
    await runner.redrive({ key, dryRun: false })
    await bench.drain(runner)
    expect(names().sort()).toEqual(['a', 'b', 'c', 'd', 'first', 'middle'])
    expect((await counts()).failed).toBe(0)
  })

  test('what cannot be read, or comes to work that cannot be stored, dead-letters its stream without its contents, and all others go on', async () => {
    const { handler, names } = courier(async ({ key }) =>
      key === 'changed'
        ? { outcome: 'again', afterMs: 0, payload: { parcel: 'half \ud800' } }
        : key === 'stopped'
          ? { outcome: 'stop', why: 'told: \0' }
          : { outcome: 'done' },
    )
    const thoughts: Record<string, unknown> = { odd: 'Zebulon \0', undeclared: 7 }
    const think = (parcel: string) => (thoughts[parcel] ?? parcel) as string
    const runner = await bench.run([parcels(handler, {}, think)])
    const data = '{"parcel":{"first_name":"Zebulon"}}'
    await bench.log.append('parcel-unreadable', -1, [
      { type: 'ParcelSent', data, metadata: JSON.stringify(EVENT_METADATA) },
    ])
    for (const parcel of ['before', 'odd', 'undeclared', 'changed', 'stopped', 'after']) await send(parcel)
    expect(await bench.drain(runner)).toBe(true)
    expect(names().sort()).toEqual(['after', 'before', 'changed', 'stopped'])
    const failed = await runner.failedWork(10)
    const unstorable = 'holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store'
    expect(
      failed.map(({ key, kind, attempts, error }) => `${key} ${kind} ${attempts}: ${error}`).sort(),
    ).toEqual([
      `changed deliver 1: The payload of deliver ${unstorable}`,
      `parcel-odd $stream 3: The key or the correlation of deliver ${unstorable}`,
      'parcel-undeclared $stream 3: The payload of deliver does not fit: parcel: invalid_type',
      expect.stringMatching(/^parcel-unreadable \$stream 3: .*parcel/),
      'stopped deliver 1: told: \ufffd',
    ])
    expect(JSON.stringify([failed.map(({ error }) => error), bench.reports])).not.toContain('Zebulon')
  })

  test('of several intents about one piece, those of a page are one', async () => {
    const { handler, deliveries } = courier()
    const stored: unknown[] = []
    const store = replaced(bench.store, {
      advance: (name, from, to, changes) => {
        stored.push(
          changes.store.map(({ key }) => key),
          changes.cancel.map(({ key }) => key),
        )
        return bench.store.advance(name, from, to, changes)
      },
    })
    await send('twice', bench.clock.now() + 1)
    await send('recalled')
    await send('twice')
    await recall('recalled')
    await recall('back')
    await send('back')
    // in one page, wherever the engine ends its own
    let seen = 0
    const log = replaced(bench.log, {
      async *subscribe(options) {
        const events: StoredEvent[] = []
        for await (const page of bench.log.subscribe(options)) {
          seen += page.events.length
          events.push(...page.events)
          if (seen >= 6) yield { ...page, events: events.splice(0) }
        }
      },
    })
    const runner = await bench.run([parcels(handler)], {}, { log, store })
    expect(await bench.drain(runner)).toBe(true)
    expect(stored.slice(0, 2)).toEqual([['twice', 'back'], ['recalled']])
    expect(deliveries.map(({ key }) => key).sort()).toEqual(['back', 'twice'])
  })
})

describe('working', () => {
  test('what throws is tried again after a pause, and given up at the cap, visibly', async () => {
    let broken = true
    const { handler, deliveries } = courier(async () => {
      if (broken) throw new Error('Bob Smith is not valid JSON')
      return { outcome: 'done' }
    })
    const runner = await bench.run([parcels(handler, { retry: backoff(3) })])
    await send('heavy')
    expect(await bench.drain(runner)).toBe(true)
    expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    const [failed] = await runner.failedWork(10)
    expect(failed).toMatchObject({ processManager: 'parcels', kind: 'deliver', key: 'heavy', attempts: 3 })
    expect(failed!.error).toMatch(/^Error at .*process-manager-runner\.test\.ts:\d+$/)
    expect(bench.reports.filter((report) => report.startsWith('work_failed'))).toHaveLength(1)

    broken = false
    expect(
      await runner.redrive({
        key: { processManager: 'parcels', kind: 'deliver', key: 'other' },
        dryRun: false,
      }),
    ).toBe(0)
    expect(await runner.redrive({ key: failed!, dryRun: false })).toBe(1)
    expect(await bench.drain(runner)).toBe(true)
    expect(await counts()).toMatchObject({ due: 0, failed: 0 })
  })

  // the one before it is given up in the same way
  test('a statement that always takes too long is tried again after a pause, and given up at the cap', {
    tags: 'long',
  }, async () => {
    const slow = bench.database.openPool({ purpose: 'test', poolSize: 1, statementMs: 5 })
    const { handler, deliveries } = courier(async () => {
      await slow.query('SELECT pg_sleep(600)')
      return { outcome: 'done' }
    })
    const runner = await bench.run([parcels(handler, { retry: backoff(3) })])
    await send('heavy')
    try {
      expect(await bench.drain(runner)).toBe(true)
    } finally {
      await slow.end()
    }
    expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(await runner.failedWork(10)).toMatchObject([{ key: 'heavy', attempts: 3 }])
    expect(bench.reports.filter((report) => report.startsWith('work_interrupted'))).toEqual([])
  })

  test('a log that is away, or a table that is being built, costs no try, however long; a log that refuses does', async () => {
    let away = 8
    const { handler, deliveries } = courier(async () => {
      away -= 1
      if (away > 5) throw new ReadModelsLate({ cause: new Error('There is no such table') })
      if (away >= 0) throw new EventLogUnavailable('the log is away', { passes: true })
      return { outcome: 'done' }
    })
    const runner = await bench.run([parcels(handler, { retry: backoff(2) })])
    await send('patient')
    expect(await bench.drain(runner)).toBe(true)
    expect(deliveries.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 9 }, () => 1))
    expect((await counts()).failed).toBe(0)

    const refused = courier(async () => {
      throw new EventLogUnavailable('the log refuses', { passes: false })
    })
    await runner.stop()
    const second = await bench.run([parcels(refused.handler, { retry: backoff(2) })])
    await send('refused')
    expect(await bench.drain(second)).toBe(true)
    expect(refused.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(await counts()).toMatchObject({ failed: 1 })
  })

  test('every end of a piece of work is told, once and by its name', async () => {
    const outcomes: Record<string, Handler> = {
      good: async () => ({ outcome: 'done' }),
      slow: async ({ attempt }) =>
        attempt === 1 ? { outcome: 'retry', why: 'not ready' } : { outcome: 'done' },
      late: async ({ dueAt }) => (dueAt < later ? { outcome: 'again', at: later } : { outcome: 'done' }),
      held: async () =>
        (await bench.faults.holding('mail')) ? { outcome: 'held', at: 'mail' } : { outcome: 'done' },
      lost: async () => ({ outcome: 'stop', why: 'nobody lives there' }),
      heavy: async () => Promise.reject(new Error('too heavy')),
    }
    const later = bench.clock.now() + 60_000
    await bench.faults.inject('mail', 'hold', 1)
    const ended: string[] = []
    const { handler, names } = courier((item) => outcomes[item.key]!(item))
    const runner = await bench.run(
      [parcels(handler, { retry: backoff(2) })],
      {},
      { onEnded: (processManager, outcome) => void ended.push(`${processManager} ${outcome}`) },
    )
    const told = async (name: string, ...expected: string[]) => {
      ended.length = 0
      await send(name)
      expect(await bench.drain(runner)).toBe(true)
      await until(() => ended.length >= expected.length)
      expect(ended).toEqual(expected.map((outcome) => `parcels ${outcome}`))
    }
    await told('good', 'done')
    await told('slow', 'retry', 'done')
    await told('late', 'again')
    await told('held', 'held')
    await told('lost', 'stop')
    await told('heavy', 'retry', 'failed')
    expect(names()).toHaveLength(8)
  })

  test('work wanted again while it is leased is done once more', async () => {
    const { handler, deliveries, names } = courier()
    const door = gate()
    const manager = parcels(async (item) => {
      await handler(item)
      if (deliveries.length === 1) await door.opened
      return { outcome: 'done' }
    })
    const runner = await bench.run([manager])
    await send('twice')
    await until(() => deliveries.length === 1)
    await happen(ParcelSent.of({ parcel: 'twice', dueAt: null }))
    await until(
      async () => (await bench.database.pool.query('SELECT 1 FROM runtime.work WHERE again')).rowCount === 1,
    )
    door.open()
    expect(await bench.drain(runner)).toBe(true)
    expect(names()).toEqual(['twice', 'twice'])
  })

  test('work wanted later while it is leased waits for its time, also when its worker dies', async () => {
    const { store } = bench
    const [now, later] = [bench.clock.now(), bench.clock.now() + 60_000]
    await storeWork(store, work('x'))
    expect(await claimAll(store, 'dead', 1)).toHaveLength(1)
    await storeWork(store, { ...work('x'), dueAt: later, isLater: true })
    await until(async () => {
      await store.makeDue(now, 'somebody')
      return (await counts()).leased === 0
    })
    expect(await claimAll(store, 'early', 60_000)).toEqual([])
    await store.makeDue(later, 'somebody')
    const [claim] = await claimAll(store, 'punctual', 60_000)
    expect(claim).toMatchObject({ key: 'x', attempt: 1 })
    expect(await store.end(claim!, { end: 'done' })).toBe('ended')
  })

  test('a late finisher ends neither its own lost claim nor that of its successor', async () => {
    const { store } = bench
    await storeWork(store, work('x'))
    const claim = (owner: string, leaseMs: number) => claimAll(store, owner, leaseMs)
    const [first] = await claim('late', 1)
    let second: typeof first
    await until(async () => {
      second = (await claim('successor', 60_000))[0]
      return second !== undefined
    })
    expect(second!.attempt).toBe(2)
    for (const end of ['done', 'interrupted'] as const) expect(await store.end(first!, { end })).toBe('lost')
    expect(await store.end(first!, { end: 'retry', afterMs: 0, why: 'late' })).toBe('lost')
    expect(await store.makeDue(10, 'late', [first!.token, second!.token])).toEqual(new Set([second!.token]))
    // nor when the same owner has it again, in a row that was made anew
    expect(await store.end(second!, { end: 'done' })).toBe('ended')
    await storeWork(store, work('x'))
    const [third] = await claim('late', 60_000)
    expect(third!.attempt).toBe(1)
    expect(await store.end(first!, { end: 'done' })).toBe('lost')
    expect(await counts()).toMatchObject({ leased: 1 })
  })

  test('work of a process that hangs is taken over when it was not renewed in time', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { store } = bench
    // no longer the only writer, so that nothing is taken over at once
    const other = await another()
    await send('orphan')
    await storeWork(store, { ...work('orphan'), dueAt: 0 })
    const renewedAt = performance.now()
    const hanging = await HeldLeases.open(bench.database, { owner: 'hanging', ttlMs: 150 })
    const [claim] = await claimAll(store, 'hanging')
    expect(claim!.key).toBe('orphan')
    const { handler, deliveries } = courier()
    const runner = await other.run([{ ...parcels(handler), on: [] }])
    await until(() => deliveries.length === 1)
    // never earlier, on however slow a machine
    expect(performance.now() - renewedAt).toBeGreaterThan(140)
    expect(deliveries[0]).toMatchObject({ attempt: 2 })
    expect(await bench.drain(runner)).toBe(true)
    await hanging.close()
  })

  test('what a process held that is seen to be dead is taken over at once', async () => {
    await storeWork(bench.store, { ...work('orphan'), dueAt: 0 })
    expect(await claimAll(bench.store, 'dead', 3_600_000)).toHaveLength(1)
    // its session, of which no lock is left
    await bench.database.pool.query(`
      INSERT INTO runtime.sessions (owner, lock) VALUES ('dead', nextval('runtime.session_locks'));
      INSERT INTO runtime.leases VALUES ('process-manager/parcels', 'dead', 7, clock_timestamp() + interval '1 hour')`)
    const { handler, names } = courier()
    const runner = await bench.run([parcels(handler)])
    await send('new')
    expect(await bench.drain(runner)).toBe(true)
    expect(names().sort()).toEqual(['new', 'orphan'])
  })

  test('a worker whose lease is lost is told to stop, and its outcome counts for nothing', async () => {
    const told: unknown[] = []
    const { handler, deliveries } = courier(async ({ signal }) => {
      if (deliveries.length > 1) return { outcome: 'done' }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      told.push(signal.reason)
      return { outcome: 'stop', why: 'must not be stored' }
    })
    const other = await another()
    const runner = await bench.run([parcels(handler)])
    await send('contested')
    await until(() => deliveries.length === 1)
    // as if it had slept through its lease and another had taken it
    await bench.database.pool.query(
      `UPDATE runtime.work SET lease_owner = $1, lease_token = nextval('runtime.work_claims')`,
      [other.leases.owner],
    )
    await until(() => told.length > 0)
    await bench.database.pool.query('UPDATE runtime.work SET lease_until = clock_timestamp()')
    await until(() => deliveries.length === 2)
    expect(await bench.drain(runner)).toBe(true)
    expect(told).toHaveLength(1)
    expect((told[0] as Error).name).toBe('LeaseLost')
    expect(await counts()).toMatchObject({ failed: 0, leased: 0 })
  })

  test('a piece whose end is told late has not lost its lease', async () => {
    let looks = 0
    let isReportedLate = false
    const store = replaced(bench.store, {
      async makeDue(...args) {
        const standing = await bench.store.makeDue(...args)
        looks += 1
        return standing
      },
      async end(...args) {
        const ended = await bench.store.end(...args)
        // one of them began after that
        const before = looks
        await until(() => looks > before + 1)
        isReportedLate = true
        return ended
      },
    })
    const { handler } = courier()
    const runner = await bench.run([parcels(handler)], {}, { store })
    await send('late')
    await until(() => isReportedLate)
    expect(await bench.drain(runner)).toBe(true)
    expect(bench.reports).toEqual([])
  })

  test('work that was claimed without an answer, or ended without one, is done again at the next look', async () => {
    const lost = new Set(['claim', 'end'])
    const unanswered = (what: string) => {
      if (lost.delete(what)) throw new Error('connection lost')
    }
    const store = replaced(bench.store, {
      async claim(...args) {
        const claims = await bench.store.claim(...args)
        if (claims.length > 0) unanswered('claim')
        return claims
      },
      async end(...args) {
        unanswered('end')
        return bench.store.end(...args)
      },
    })
    const { handler, deliveries } = courier()
    const runner = await bench.run([parcels(handler)], {}, { store })
    await send('strayed')
    await until(() => deliveries.length === 2)
    expect(await bench.drain(runner)).toBe(true)
    expect(deliveries.map(({ attempt }) => attempt)).toEqual([2, 3])
  })

  test('a process that may be taken for dead lets go of its work, and does it again when nobody took it', async () => {
    let lapse: () => void = () => undefined
    const leases = replaced(bench.leases, {
      onLapse(lapsed) {
        lapse = lapsed
      },
    })
    const { handler, deliveries } = courier(async ({ signal }) => {
      if (deliveries.length > 1) return { outcome: 'done' }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { outcome: 'stop', why: 'must not be stored' }
    })
    const runner = await bench.run([parcels(handler)], {}, { leases })
    await send('kept')
    await until(() => deliveries.length === 1)
    lapse()
    await until(() => deliveries.length === 2)
    expect(await bench.drain(runner)).toBe(true)
    expect(bench.reports).toEqual([expect.stringMatching(/^lease_lost parcels deliver kept 1 \S+$/)])
  })

  test('stopping interrupts work at its next safe point, and the attempt does not count', async () => {
    const { handler, deliveries } = courier(async ({ signal }) => {
      if (deliveries.length > 1) return { outcome: 'done' }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw signal.reason
    })
    const first = await bench.run([parcels(handler)])
    await send('interrupted')
    await until(() => deliveries.length === 1)
    await first.stop()
    expect(await counts()).toMatchObject({ due: 1, leased: 0 })
    const second = await bench.run([parcels(handler)])
    expect(await bench.drain(second)).toBe(true)
    expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 1])
  })
})

describe('timers', () => {
  // longer than any test
  const options: RunnerOptions = { pollMs: 3_600_000 }

  test('fire by the system clock without a look at the table, and not before their time', async () => {
    const other = await another(systemClock)
    const firedAt: number[] = []
    const runner = await other.run(
      [
        parcels(async () => {
          firedAt.push(systemClock.now())
          return { outcome: 'done' }
        }),
      ],
      options,
    )
    const dueAt = systemClock.now() + 100
    await send('later', dueAt)
    await until(() => firedAt.length === 1)
    expect(firedAt[0]! - dueAt).toBeGreaterThanOrEqual(0)
    expect(await other.drain(runner)).toBe(true)
  })

  test('do not fire while a virtual clock stands still; cancelled ones never do', async () => {
    const { handler, names } = courier()
    const runner = await bench.run([parcels(handler)])
    await send('later', bench.clock.now() + 1)
    await send('recalled', bench.clock.now() + 1)
    expect(await bench.drain(runner)).toBe(true)
    expect(await counts()).toMatchObject({ later: 2 })
    await recall('recalled')
    expect(await bench.drain(runner)).toBe(true)
    expect(await counts()).toMatchObject({ later: 1 })
    expect(names()).toEqual([])
  })

  test('of the same work the last due time counts', async () => {
    const runner = await bench.run([parcels(courier().handler)])
    const now = bench.clock.now()
    await send('moved', now + 10)
    await send('moved', now + 99)
    await bench.drain(runner)
    expect(await bench.store.nextDue(now)).toBe(now + 99)
  })
})

const work = (key: string) =>
  pieceOfWork({ processManager: 'parcels', kind: 'deliver', key, payload: { parcel: key }, dueAt: 5 })

/** Leases all that is due, timers up to 10 included. */
async function claimAll(store: WorkStore, owner: string, leaseMs?: number) {
  await store.makeDue(10, owner)
  const kinds = [{ processManager: 'parcels', kind: 'deliver', slots: 10 }]
  return store.claim({ owner, kinds, ...(leaseMs === undefined ? {} : { leaseMs }) })
}

function replaced<T extends object>(one: T, changes: Partial<T>): T {
  return new Proxy(one, {
    get(target, name) {
      const value = Reflect.get(changes, name) ?? Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

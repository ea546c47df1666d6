import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { IntegrationPublisher } from '../../../application/followers/integration-publisher.ts'
import { statusOfFollowers } from '../../../application/followers/owned-follower.ts'
import {
  backoff,
  on,
  type ProcessManager,
  perform,
  work,
} from '../../../application/followers/process-manager.ts'
import type { ProcessManagerRunner } from '../../../application/followers/runner.ts'
import { DEAD_LETTERED_STREAM, type WorkStore } from '../../../application/followers/work-store.ts'
import { discardWork } from '../../../application/operations/unknown-work.ts'
import { policy } from '../../../domain/policies/policy.ts'
import { NachaFolders } from '../../../infrastructure/providers/bank/nacha/folders.ts'
import { diskWaits } from '../../../infrastructure/telemetry/disk-waits.ts'
import { Metrics } from '../../../infrastructure/telemetry/metrics.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { Readiness } from '../../../interfaces/service/readiness.ts'
import type { Projections } from '../../../projections/runtime/projections.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { newId, policyTerms } from '../../support/payroll.ts'
import { operatorContext } from '../../support/registrations.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { openWorkbench, pieceOfWork, storeWork, until, type Workbench } from '../../support/workbench.ts'

let database: TestDatabase
let bench: Workbench

beforeEach(async () => {
  database = await createTestDatabase()
  bench = await openWorkbench(database.url)
})
afterEach(async () => {
  await bench.close()
  await database.drop()
})

const watcher: ProcessManager = {
  name: 'watcher',
  startAt: 'beginning',
  on: policy.events.map((type) => on(type, ({ eventId }) => [perform('look', eventId, {})])),
  work: {
    look: work({ payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }, async () => ({
      outcome: 'done',
    })),
  },
}

/** Every look is a new one. */
function readinessOf(
  runner: ProcessManagerRunner,
  parts: Partial<ConstructorParameters<typeof Readiness>[0]> = {},
  options: { readonly standsStillS?: number } = {},
): Readiness {
  return new Readiness(
    {
      log: bench.log,
      ask: () => bench.database.leases.query('SELECT 1'),
      runner,
      kinds: runner.kinds,
      work: bench.store,
      clock: bench.clock,
      nats: null,
      integrationEvents: null,
      bankFolders: null,
      openAlerts: async () => ({}),
      backupAge: async () => null,
      diskWaits: () => diskWaits(bench.database.pool),
      projections: { list: async () => [] } as unknown as Projections,
      ...parts,
    },
    { ...options, sampleMs: 0 },
  )
}

async function issuePolicy(): Promise<void> {
  const data = { ...policyTerms(), tenant_id: newId() }
  await bench.commands.execute(policy, data.policy_id, { type: 'Issue', data }, operatorContext())
}

describe('readiness of a process manager', () => {
  test('tells whether a process runs it, and since when and how far it is behind', async () => {
    let stuck: () => void = () => undefined
    let isStuck = false
    // alive, under its lease, and standing still
    const advance: WorkStore['advance'] = async (...args) => {
      if (isStuck) {
        await new Promise<void>((resolve) => {
          stuck = resolve
        })
      }
      return bench.store.advance(...args)
    }
    const store = new Proxy(bench.store, {
      get(target, name: keyof WorkStore) {
        return name === 'advance' ? advance : target[name].bind(target)
      },
    })
    const runner = await bench.run([watcher], {}, { store })
    const readiness = readinessOf(runner, {}, { standsStillS: 0.2 })
    const metrics = new Metrics({ process: false })
    metrics.refreshOnRead(() => readiness.measure(metrics))
    const figure = async (name: string) =>
      Number(
        new RegExp(`^compstream_process_manager_${name}\\{process_manager="watcher"\\} (\\S+)$`, 'm').exec(
          await metrics.text(),
        )?.[1],
      )

    await issuePolicy()
    expect(await bench.drain(runner)).toBe(true)
    expect(await readiness.check()).toMatchObject({
      ok: true,
      degraded: [],
      checks: {
        process_managers: { watcher: 'active' },
        process_manager_lag: { watcher: { events: 0, seconds: 0 } },
      },
    })
    expect([await figure('up'), await figure('lag_events')]).toEqual([1, 0])

    isStuck = true
    await issuePolicy()
    await issuePolicy()
    await until(async () => (await readiness.check()).degraded!.length > 0)
    const behind = await readiness.check()
    expect(behind.ok).toBe(true)
    expect(behind.degraded).toEqual([
      expect.stringMatching(/^process manager watcher: behind by \d+ events, for \d+ s$/),
    ])
    expect(behind.checks).toMatchObject({ process_managers: { watcher: 'active' } })
    expect(await figure('lag_events')).toBeGreaterThan(0)
    expect(await figure('lag_seconds')).toBeGreaterThan(0)

    isStuck = false
    stuck()
    expect(await bench.drain(runner)).toBe(true)
    expect((await readiness.check()).degraded).toEqual([])

    await runner.stop()
    expect((await readiness.check()).degraded).toEqual(['process manager watcher: no process runs it'])
    expect(await figure('up')).toBe(0)
    expect(await readiness.workOverview()).toMatchObject({
      process_managers: [{ name: 'watcher', state: 'idle', owner: null, lag: { events: 0 } }],
    })
  })
})

describe('a probe', () => {
  const kinds = [{ processManager: 'watcher', kind: 'look' }]

  test('is answered, degraded, while figures are not to be had', async () => {
    await withDeadlinesOfTheProduct(async () => {
      const runner = await bench.run([])
      const readiness = readinessOf(runner, { kinds })
      const other = new pg.Client(database.url)
      await other.connect()
      try {
        await other.query('BEGIN; LOCK TABLE runtime.work')
        const answer = await readiness.check()
        expect(answer).toMatchObject({ ok: true, degraded: ['figures of the database: not there in time'] })
        expect(Object.keys(answer.checks)).toEqual(['event_log', 'head'])
      } finally {
        await other.end()
      }
      await until(async () => (await readiness.check()).degraded!.length === 0)
    })
  })
})

test('how process managers do is asked at once, however many there are', async () => {
  let asked = 0
  const { pool } = bench.database
  const query = (...statement: unknown[]) => {
    asked += 1
    return Reflect.apply(pool.query, pool, statement)
  }
  const store = new PostgresWorkStore({ query } as typeof pool)
  const names = Array.from({ length: 20 }, (_, n) => `watcher-${n}`)
  await bench.store.register(names, 0n)
  const parked = (key: string) => pieceOfWork({ processManager: names[1]!, kind: DEAD_LETTERED_STREAM, key })
  await storeWork(bench.store, parked('a'), parked('b'))
  const all = await statusOfFollowers({ store, leases: bench.leases }, names)
  expect(all.map(({ deadLetteredStreams }) => deadLetteredStreams)).toEqual([
    0,
    2,
    ...names.slice(2).map(() => 0),
  ])
  expect(asked).toBe(1)
})

test('work of a kind that the release does not have is shown, holds nothing up and can be discarded', async () => {
  // a later release renamed one kind and dropped a process manager
  const inAMinute = bench.clock.now() + 60_000
  await storeWork(
    bench.store,
    pieceOfWork({ processManager: 'watcher', kind: 'stare', key: 'a' }),
    pieceOfWork({ processManager: 'watcher', kind: 'stare', key: 'b', dueAt: inAMinute }),
    pieceOfWork({ processManager: 'guard', kind: 'patrol', key: 'c' }),
  )
  const runner = await bench.run([watcher])
  const { kinds } = runner
  const readiness = readinessOf(runner)
  await issuePolicy()
  expect(await bench.drain(runner)).toBe(true)
  expect(await readiness.check()).toMatchObject({
    ok: true,
    degraded: [
      'work of guard/patrol, which this release does not have: 1',
      'work of watcher/stare, which this release does not have: 2',
    ],
  })
  expect(await readiness.workOverview()).toMatchObject({
    counts: { due: 0, leased: 0, later: 0, failed: 0 },
    unknown: [
      { process_manager: 'guard', kind: 'patrol', count: 1 },
      { process_manager: 'watcher', kind: 'stare', count: 2 },
    ],
  })

  const parts = { work: bench.store, kinds }
  const stare = { processManager: 'watcher', kind: 'stare', key: null, dryRun: false }
  expect(await discardWork(parts, { ...stare, kind: 'look' })).toMatchObject({ code: 'kind_of_work_known' })
  expect(await discardWork(parts, { ...stare, dryRun: true })).toBe(2)
  expect(await discardWork(parts, { ...stare, key: 'a' })).toBe(1)
  expect(await discardWork(parts, stare)).toBe(1)
  expect((await readiness.check()).degraded).toEqual([
    'work of guard/patrol, which this release does not have: 1',
  ])

  // a release that has the kind again does it
  const done: string[] = []
  const patrol = work({ payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }, async ({ key }) => {
    done.push(key)
    return { outcome: 'done' }
  })
  const later = await bench.run([{ name: 'guard', startAt: 'beginning', on: [], work: { patrol } }])
  expect(await bench.drain(later)).toBe(true)
  // at least once: a claim whose answer is late may be made again
  expect(new Set(done)).toEqual(new Set(['c']))
  expect((await readiness.check()).degraded).toEqual([])
})

test('the figure of dead-lettered integration events is gone while their source does not answer', async () => {
  const runner = await bench.run([])
  const parked = async () => ({
    state: 'active' as const,
    position: 0n,
    problem: null,
    deadLetteredStreams: 3,
  })
  let status: () => Promise<Awaited<ReturnType<typeof parked>>> = parked
  const readiness = readinessOf(runner, {
    integrationEvents: { status: () => status() } as unknown as IntegrationPublisher,
  })
  const metrics = new Metrics({ process: false })
  metrics.refreshOnRead(() => readiness.measure(metrics))
  const figure = /^compstream_parked_streams\{reader="integration-events"\} 3$/m
  expect(await metrics.text()).toMatch(figure)
  status = () => Promise.reject(new Error('the database is away'))
  expect(await metrics.text()).not.toContain('reader="integration-events"')
  status = parked
  expect(await metrics.text()).toMatch(figure)
})

const root = temporaryDirectory()
test('folders of the bank degrade what they are of, also while one does not answer', async () => {
  const [outboxDir, inboxDir] = [join(root, 'outbox'), join(root, 'inbox')]
  for (const folder of [outboxDir, inboxDir]) await mkdir(folder)
  const folders = new NachaFolders({ outboxDir, inboxDir })
  const runner = await bench.run([])
  const readiness = readinessOf(runner, { bankFolders: folders })
  const metrics = new Metrics({ process: false })
  metrics.refreshOnRead(() => readiness.measure(metrics))
  const ups = async () =>
    (await metrics.text()).match(/(?<=^compstream_bank_folder_up\{folder=)\S+ \d$/gm) ?? []
  const line = (folder: string) => `${folder} of the bank: cannot be used, files wait`
  const usable = { ok: true, degraded: [], checks: { bank_folders: { outbox: 'ok', inbox: 'ok' } } }
  expect(await readiness.check()).toMatchObject(usable)
  expect(await ups()).toEqual(['"outbox"} 1', '"inbox"} 1'])

  await rename(outboxDir, `${outboxDir}-away`)
  const away = await readiness.check()
  expect(away).toMatchObject({
    ok: true,
    degraded: [line('outbox')],
    checks: { bank_folders: { outbox: 'unusable', inbox: 'ok' } },
  })
  // a role, no path
  expect(JSON.stringify(away)).not.toContain(root)
  expect(await ups()).toEqual(['"outbox"} 0', '"inbox"} 1'])
  await rename(`${outboxDir}-away`, outboxDir)
  await rm(inboxDir, { recursive: true })
  await writeFile(inboxDir, 'no folder')
  expect((await readiness.check()).degraded).toEqual([line('inbox')])
  await rm(inboxDir)
  await mkdir(inboxDir)
  expect(await readiness.check()).toMatchObject(usable)

  const silent = readinessOf(runner, { bankFolders: { unusable: () => new Promise(() => undefined) } })
  expect(await silent.check()).toMatchObject({ ok: true, degraded: [line('outbox'), line('inbox')] })
})

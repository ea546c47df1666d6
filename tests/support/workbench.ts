import { randomUUID } from 'node:crypto'
import { CommandHandler } from '../../application/commands/command-handler.ts'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import type { ProcessManager } from '../../application/followers/process-manager.ts'
import {
  ProcessManagerRunner,
  type RunnerOptions,
  type RunnerParts,
} from '../../application/followers/runner.ts'
import type { WorkStore, WorkToStore } from '../../application/followers/work-store.ts'
import { type DrainParts, drain } from '../../application/operations/drain.ts'
import type { Clock } from '../../application/ports/clock.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import type { Faults } from '../../application/ports/faults.ts'
import type { Leases } from '../../application/ports/leases.ts'
import type { Notices } from '../../application/ports/notices.ts'
import type { WorkQueue } from '../../application/ports/work-queue.ts'
import { aggregates } from '../../domain/catalogue.ts'
import type { Aggregate } from '../../domain/kernel/decider.ts'
import { VirtualClock } from '../../infrastructure/clock/virtual-clock.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { InProcessWorkQueue } from '../../infrastructure/messaging/in-process/work-queue.ts'
import { HeldLeases } from '../../infrastructure/ownership/leases.ts'
import { PostgresFaults } from '../../infrastructure/work/faults.ts'
import { PostgresWorkStore } from '../../infrastructure/work/work-store.ts'
import { createTestDatabase } from './database.ts'
import { openTestLog } from './log.ts'

/** What process managers run on, as one process of the service has it: on a real database and log. */
export interface Workbench {
  readonly database: Database
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly clock: Clock
  readonly commands: CommandHandler
  readonly store: WorkStore
  readonly leases: Leases & { close(): Promise<void> }
  readonly notices: Notices
  readonly faults: Faults
  /** What runners reported, as `what process_manager kind key error`. */
  readonly reports: string[]
  /** Starts a runner with short real times; it is stopped with the workbench. */
  run(
    managers: readonly ProcessManager[],
    options?: RunnerOptions,
    parts?: Partial<Parts>,
  ): Promise<ProcessManagerRunner>
  /** Waits until everything has come to rest; there are no projections here. */
  drain(runner: Drained, timeoutMs?: number): Promise<boolean>
  drainParts(runner: Drained): DrainParts
  close(): Promise<void>
}

type Drained = Pick<ProcessManagerRunner, 'positions' | 'kinds'>
type Parts = Pick<RunnerParts, 'log' | 'store' | 'leases' | 'queue' | 'onEnded'>

/** Short times, so that what waits for them is seen to happen. */
const QUICK: RunnerOptions = {
  pollMs: 100,
  checkpointMs: 20,
  backoff: { firstMs: 2, mostMs: 60_000 },
}

/**
 * Opens a workbench as a process of its own would: own log, own leases, own clock.
 * @param url of the database, by default one of its own that goes with it.
 * @param options.aggregates of the test's own, beside the service's.
 * @param options.clock `virtual` (default) stands where the log says.
 * @param options.notices default: told to nobody outside.
 * @param options.leaseMs time to live of the leases, default longer than any test.
 * @param options.queue default: this process's own.
 */
export async function openWorkbench(
  url?: string,
  options: {
    aggregates?: readonly Aggregate[]
    clock?: Clock
    notices?: Notices
    queue?: WorkQueue
    leaseMs?: number
  } = {},
): Promise<Workbench> {
  const own = url === undefined ? await createTestDatabase() : undefined
  const at = url ?? own!.url
  const database = await openDatabase({ url: at })
  const log = await openTestLog(database, at)
  const registry = new EventRegistry([...aggregates, ...(options.aggregates ?? [])])
  const notices = options.notices ?? new InProcessNotices()
  const clock = options.clock ?? (await VirtualClock.open(log, registry, notices))
  const queue = options.queue ?? new InProcessWorkQueue()
  const faults = await PostgresFaults.open(database, notices, () => false)
  const store = new PostgresWorkStore(database.pool)
  const leases = await HeldLeases.open(database, {
    owner: randomUUID(),
    ttlMs: options.leaseMs ?? 600_000,
  })
  const reports: string[] = []
  const runners: ProcessManagerRunner[] = []
  const drainParts = (runner: Drained): DrainParts => ({
    log,
    clock,
    notices,
    work: store,
    processManagers: runner,
    projections: { names: () => [] },
    readModels: { reached: async () => true, awaitProjections: async () => true },
  })
  return {
    database,
    log,
    registry,
    clock,
    store,
    leases,
    notices,
    faults,
    reports,
    commands: new CommandHandler(log, registry, clock),
    async run(managers, runnerOptions = {}, parts = {}) {
      const report = (what: string, fields: Readonly<Record<string, string | number>>) =>
        void reports.push([what, ...Object.values(fields)].join(' '))
      const runner = new ProcessManagerRunner(
        { log, registry, clock, store, leases, notices, queue, report, ...parts },
        managers,
        { ...QUICK, ...runnerOptions },
      )
      runners.push(runner)
      await runner.start()
      return runner
    },
    drain: (runner, timeoutMs = 240_000) => drain(drainParts(runner), timeoutMs),
    drainParts,
    async close() {
      await Promise.all(runners.map((runner) => runner.stop()))
      await log.close()
      await leases.close()
      await database.close()
      await own?.drop()
    },
  }
}

/** A piece of work that is due, of whatever kind and about whatever `of` says. */
export function pieceOfWork(
  of: Pick<WorkToStore, 'processManager' | 'kind' | 'key'> & Partial<WorkToStore>,
): WorkToStore {
  return {
    payload: {},
    dueAt: 0,
    correlationId: 'c',
    causationId: 'c',
    tenantId: null,
    environment: null,
    ...of,
  }
}

/** Stores work as a process manager's reaction does, one that no test runs; it is due when its time has come. */
export async function storeWork(store: WorkStore, ...work: readonly WorkToStore[]): Promise<void> {
  const [name, epoch] = ['one-of-a-test', 1]
  const position = await store.takeOver(name, epoch)
  await store.advance(name, { position, epoch }, position, {
    store: work.map((one) => ({ ...one, isLater: one.dueAt > 0 })),
    cancel: [],
  })
}

/** Waits for a condition, for at most some real milliseconds. @throws when it is not met. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 240_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the condition was not met in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

import {
  INTEGRATION_EVENTS_NAME,
  type IntegrationPublisher,
} from '../../application/followers/integration-publisher.ts'
import type { FollowerStatus } from '../../application/followers/owned-follower.ts'
import type { ProcessManagerRunner } from '../../application/followers/runner.ts'
import type { KindOfWork, WorkCounts, WorkStore } from '../../application/followers/work-store.ts'
import { unknownWork } from '../../application/operations/unknown-work.ts'
import { BANK_FOLDERS, type BankFolder, type BankFolders } from '../../application/ports/bank-files.ts'
import type { Clock } from '../../application/ports/clock.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import type { DiskWaits } from '../../infrastructure/telemetry/disk-waits.ts'
import type { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { type Lag, LogLag } from '../../projections/runtime/log-lag.ts'
import type { Projections } from '../../projections/runtime/projections.ts'
import type { Health } from '../operator-api/host/services.ts'
import type { WorkOverview } from '../operator-api/host/work-schema.ts'
import { Sampled } from './sampled.ts'

interface Parts {
  readonly log: EventLog
  /** Whether the database answers at all, by a statement that costs it nothing. */
  readonly ask: () => Promise<unknown>
  readonly projections: Projections
  readonly runner: ProcessManagerRunner
  readonly work: WorkStore
  /** Kinds of work that this release does. */
  readonly kinds: readonly KindOfWork[]
  readonly clock: Clock
  /** Null where NATS is not configured. */
  readonly nats: { readonly connected: boolean } | null
  readonly integrationEvents: IntegrationPublisher | null
  /** Null where no files go to a bank. */
  readonly bankFolders: Pick<BankFolders, 'unusable'> | null
  /** Open alerts by kind. */
  readonly openAlerts: () => Promise<Readonly<Record<string, number>>>
  /** Milliseconds since the newest backup, null while there is none. */
  readonly backupAge: () => Promise<number | null>
  /** Null where the server does not tell. */
  readonly diskWaits: () => Promise<DiskWaits | null>
}

/** How long the log, the database and each source of figures may take to answer a probe, in milliseconds. */
const PROBE_MS = 2_000
/** A process manager that is behind for so long does not get on. */
const STANDS_STILL_S = 30
/** Pieces of failed work that an overview shows. */
const FAILED_SHOWN = 100

/** Whether this process can serve, what is late or stuck, and the figures behind both. */
export class Readiness {
  readonly #parts: Parts
  readonly #lag: LogLag
  readonly #standsStillS: number
  readonly #figures: Sampled<Awaited<ReturnType<Readiness['takeFigures']>>>
  /** Of the work of all kinds, for metrics: they are scanned for. */
  readonly #counted: Sampled<WorkCounts>

  /**
   * @param options.standsStillS seconds behind the log after which a process manager degrades, default 30.
   * @param options.sampleMs how old figures of the database may be, default 5000.
   */
  constructor(parts: Parts, options: { readonly standsStillS?: number; readonly sampleMs?: number } = {}) {
    this.#parts = parts
    this.#lag = new LogLag(parts.log, parts.clock)
    this.#standsStillS = options.standsStillS ?? STANDS_STILL_S
    this.#figures = new Sampled(() => this.takeFigures(), options.sampleMs)
    this.#counted = new Sampled(() => this.#counts(), options.sampleMs)
  }

  /**
   * Not ok while the event log or the database does not answer to this process: another one may serve then. What
   * would be the same in every process takes none out of rotation, it degrades: a projection in error (everything
   * else is served), what is parked, failed or stuck, what no process runs, figures that take too long, and losing NATS
   * or a folder of the bank. Answers within {@link PROBE_MS}; figures of the database are those of a {@link Sampled}.
   */
  async check(): Promise<Health> {
    const [head, answer, figures, unusable] = await Promise.all([
      within(PROBE_MS, this.#parts.log.head()),
      within(PROBE_MS, this.#parts.ask()),
      within(PROBE_MS, this.#figures.get()),
      this.#unusableFolders(),
    ])
    if (head === null) return { ok: false, degraded: [], checks: { event_log: 'unreachable' } }
    if (answer === null) {
      return { ok: false, degraded: [], checks: { event_log: 'ok', database: 'unreachable' } }
    }
    const { projections, processManagers, failed, published, unknown } = figures ?? NO_FIGURES
    const { nats } = this.#parts
    return {
      ok: true,
      degraded: [
        ...(figures === null ? ['figures of the database: not there in time'] : []),
        ...projections.flatMap(({ name, state, owner, code_version, parked_streams }) => [
          ...(state === 'error' ? [`projection ${name}: does not get on`] : []),
          ...(owner === null && code_version !== null ? [`projection ${name}: no process runs it`] : []),
          ...(parked_streams > 0 ? [`projection ${name}: parked streams: ${parked_streams}`] : []),
        ]),
        ...processManagers.flatMap(({ name, state, lag, deadLetteredStreams }) => [
          ...(state === 'problem' ? [`process manager ${name}: does not get on`] : []),
          ...(state === 'idle' ? [`process manager ${name}: no process runs it`] : []),
          ...(lag.events > 0 && lag.seconds >= this.#standsStillS
            ? [`process manager ${name}: behind by ${lag.events} events, for ${Math.floor(lag.seconds)} s`]
            : []),
          ...(deadLetteredStreams > 0
            ? [`process manager ${name}: parked streams: ${deadLetteredStreams}`]
            : []),
        ]),
        ...(failed > 0 ? [`work failed: ${failed}`] : []),
        ...unknown.map(
          ({ processManager, kind, count }) =>
            `work of ${processManager}/${kind}, which this release does not have: ${count}`,
        ),
        ...(published?.state === 'problem' && nats?.connected ? ['integration events: not published'] : []),
        ...(published?.state === 'idle' && nats?.connected
          ? ['integration events: no process publishes them']
          : []),
        ...(published && published.deadLetteredStreams > 0
          ? [`integration events: parked streams: ${published.deadLetteredStreams}`]
          : []),
        ...(nats && !nats.connected
          ? ['nats: unreachable, work is found by polling, integration events wait']
          : []),
        ...(unusable ?? []).map((folder) => `${folder} of the bank: cannot be used, files wait`),
      ],
      checks: {
        event_log: 'ok',
        head: head.toString(),
        ...(figures && {
          projections: Object.fromEntries(projections.map(({ name, state }) => [name, state])),
          process_managers: Object.fromEntries(processManagers.map(({ name, state }) => [name, state])),
          process_manager_lag: Object.fromEntries(processManagers.map(({ name, lag }) => [name, lag])),
          work_failed: failed,
        }),
        ...(nats ? { nats: nats.connected ? 'ok' : 'unreachable' } : {}),
        ...(published ? { integration_events: published.state } : {}),
        ...(unusable ? { bank_folders: statesOf(unusable) } : {}),
      },
    }
  }

  private async takeFigures() {
    const { log, projections, work, kinds, integrationEvents } = this.#parts
    const [listed, processManagers, failed, published, unknown] = await Promise.all([
      projections.list(),
      log.head().then((head) => this.#processManagers(head)),
      work.countFailed(kinds),
      integrationEvents?.status(),
      unknownWork(this.#parts),
    ])
    return { projections: listed, processManagers, failed, published, unknown }
  }

  /** How far the read model or process manager furthest behind is behind the log. @throws what reading fails by. */
  async lag(): Promise<Lag> {
    const { projections, processManagers } = await this.#figures.get()
    const known = projections.filter(({ code_version }) => code_version !== null)
    const all = [...known, ...processManagers].map(({ lag }) => lag)
    return {
      events: Math.max(0, ...all.map(({ events }) => events)),
      seconds: Math.max(0, ...all.map(({ seconds }) => seconds)),
    }
  }

  /** What a drain would still have to wait for. */
  async unfinished(): Promise<unknown> {
    const { integrationEvents, runner } = this.#parts
    const [projections, processManagers, counts, head] = await Promise.all([
      this.#parts.projections.list(),
      runner.status(),
      this.#counts(runner.kinds),
      this.#parts.log.head(),
    ])
    return {
      head: head.toString(),
      work_due: counts.due,
      work_leased: counts.leased,
      projections_behind: projections.filter(({ lag }) => lag.events > 0).map(({ name }) => name),
      process_managers_behind: processManagers
        .filter(({ position }) => position < head)
        .map(({ name }) => name),
      ...(integrationEvents
        ? { integration_events_behind: !(await integrationEvents.hasPublished(head)) }
        : {}),
    }
  }

  /** Work of the process managers: counts, what failed and why, where each manager stands. */
  async workOverview(): Promise<WorkOverview> {
    const [counts, unknown, failed, processManagers] = await Promise.all([
      this.#counts(),
      unknownWork(this.#parts),
      this.#parts.runner.failedWork(FAILED_SHOWN),
      this.#parts.log.head().then((head) => this.#processManagers(head)),
    ])
    return {
      counts,
      unknown: unknown.map(({ processManager, kind, count }) => ({
        process_manager: processManager,
        kind,
        count,
      })),
      failed: failed.map((work) => ({
        process_manager: work.processManager,
        kind: work.kind,
        key: work.key,
        attempts: work.attempts,
        error: work.error,
        correlation_id: work.correlationId,
        tenant_id: work.tenantId,
      })),
      process_managers: processManagers.map(({ deadLetteredStreams, ...one }) => ({
        ...one,
        position: one.position.toString(),
        parked_streams: deadLetteredStreams,
      })),
    }
  }

  /**
   * Sets the gauges that are read on demand, within {@link PROBE_MS}; counts of work are those of a {@link Sampled}. Those whose source does not answer are taken
   * away: an old figure would look like a new one.
   */
  async measure(metrics: Metrics): Promise<void> {
    const { log, projections, nats, integrationEvents, openAlerts, bankFolders } = this.#parts
    const { backupAge, diskWaits } = this.#parts
    if (nats) metrics.nats(nats.connected)
    const set = async <T>(reading: Promise<T>, gauges: (figures: T | null) => void) =>
      gauges(await within(PROBE_MS, reading))
    await Promise.all([
      set(projections.list(), (figures) => metrics.projections(figures)),
      set(
        log.head().then((head) => this.#processManagers(head)),
        (figures) => metrics.processManagers(figures),
      ),
      set(this.#counted.get(), (figures) => metrics.work('process-managers', figures && this.#aged(figures))),
      set(openAlerts(), (figures) => metrics.alertsOpen(figures)),
      set(backupAge(), (ms) => metrics.backupAge(ms)),
      set(diskWaits(), (waits) => metrics.diskWaits(waits)),
      bankFolders && this.#unusableFolders().then((unusable) => metrics.bankFolders(BANK_FOLDERS, unusable!)),
      integrationEvents &&
        set(this.#unpublished(integrationEvents), (figures) => {
          metrics.integrationEventsBehind(figures?.behind ?? null)
          metrics.deadLettered(INTEGRATION_EVENTS_NAME, figures?.deadLetteredStreams ?? null)
        }),
    ])
  }

  /** Folders of the bank that cannot be used; one that does not answer in time is none. Null where there are none. */
  async #unusableFolders(): Promise<readonly BankFolder[] | null> {
    const { bankFolders } = this.#parts
    return bankFolders && ((await within(PROBE_MS, bankFolders.unusable())) ?? BANK_FOLDERS)
  }

  /** Events of the log that were not yet looked at for integration events, and streams that wait. */
  async #unpublished(integrationEvents: IntegrationPublisher) {
    const { log } = this.#parts
    const [head, { position, deadLetteredStreams }] = await Promise.all([
      log.head(),
      integrationEvents.status(),
    ])
    return { behind: await log.count(position, head), deadLetteredStreams }
  }

  async #processManagers(head: bigint): Promise<readonly (FollowerStatus & { readonly lag: Lag })[]> {
    this.#lag.note(head)
    const all = await this.#parts.runner.status()
    return Promise.all(all.map(async (one) => ({ ...one, lag: await this.#lag.at(one.position, head) })))
  }

  #aged(counts: WorkCounts) {
    const { oldestDue } = counts
    const now = this.#parts.clock.now()
    return { ...counts, oldestDueMs: oldestDue === null ? null : Math.max(0, now - oldestDue) }
  }

  #counts(kinds = this.#parts.kinds) {
    const { work, clock } = this.#parts
    return work.counts({ now: clock.now(), kinds })
  }
}

const NO_FIGURES = { projections: [], processManagers: [], failed: 0, published: undefined, unknown: [] }

function statesOf(unusable: readonly BankFolder[]) {
  return Object.fromEntries(
    BANK_FOLDERS.map((folder) => [folder, unusable.includes(folder) ? 'unusable' : 'ok']),
  )
}

async function within<T>(limitMs: number, result: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs)
  })
  try {
    return await Promise.race([result, late])
  } catch {
    return null
  } finally {
    clearTimeout(timer)
  }
}

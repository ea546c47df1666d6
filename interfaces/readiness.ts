import type { Clock } from '../application/ports/clock.ts'
import type { EventLog } from '../application/ports/event-log.ts'
import type { Faults } from '../application/ports/faults.ts'
import type { IntegrationEvents } from '../application/process-managers/integration-events.ts'
import type { ProcessManagerRunner } from '../application/process-managers/runner.ts'
import type { WorkStore } from '../application/process-managers/work-store.ts'
import type { JetStreamWorkQueue } from '../infrastructure/messaging/nats/work-queue.ts'
import type { Metrics } from '../infrastructure/telemetry/metrics.ts'
import type { Projections } from '../projections/runtime/projections.ts'
import type { Health } from './operator-api/services.ts'

interface Parts {
  readonly log: EventLog
  readonly projections: Projections
  readonly runner: ProcessManagerRunner
  readonly work: WorkStore
  readonly clock: Clock
  readonly faults: Faults
  /** Null where NATS is not configured. */
  readonly nats: { readonly connected: boolean } | null
  readonly workQueue: Pick<JetStreamWorkQueue, 'depth'> | null
  readonly integrationEvents: IntegrationEvents | null
}

/** How long the log, and then the database, may take to answer a probe, and each source of figures, in milliseconds. */
const PROBE_MS = 2_000
/** Pieces of failed work that an overview shows. */
const FAILED_SHOWN = 100

/** Whether this process can serve, what is late or stuck, and the figures behind both. */
export class Readiness {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Not ok while the event log or the database does not answer, or a projection is in error. What is
   * parked, given up or stuck calls for a person and takes no process out of rotation: it degrades. So does
   * losing NATS: everything goes on, more slowly. Answers within twice {@link PROBE_MS}.
   */
  async check(): Promise<Health> {
    const head = await within(PROBE_MS, this.#parts.log.head())
    if (head === null) return { ok: false, degraded: [], checks: { event_log: 'unreachable' } }
    const looked = await within(
      PROBE_MS,
      Promise.all([
        this.#parts.projections.list(),
        this.#parts.runner.status(),
        this.#counts(),
        this.#parts.integrationEvents?.status(),
      ]),
    )
    if (looked === null) {
      return { ok: false, degraded: [], checks: { event_log: 'ok', database: 'unreachable' } }
    }
    const [projections, processManagers, counts, published] = looked
    const { nats } = this.#parts
    const isPublishingStuck = published?.state === 'problem' && nats?.connected === true
    return {
      ok: projections.every(({ state }) => state !== 'error'),
      degraded: [
        ...projections
          .filter((projection) => projection.parked_streams > 0)
          .map(({ name, parked_streams }) => `projection ${name}: parked streams: ${parked_streams}`),
        ...processManagers
          .filter(({ state }) => state === 'problem')
          .map(({ name }) => `process manager ${name}: does not get on`),
        ...(counts.failed > 0 ? [`work given up: ${counts.failed}`] : []),
        ...(isPublishingStuck ? ['integration events: not published'] : []),
        ...(nats && !nats.connected
          ? ['nats: unreachable, work is found by looking, integration events wait']
          : []),
      ],
      checks: {
        event_log: 'ok',
        head: head.toString(),
        projections: Object.fromEntries(projections.map(({ name, state }) => [name, state])),
        process_managers: Object.fromEntries(processManagers.map(({ name, state }) => [name, state])),
        work_failed: counts.failed,
        ...(nats ? { nats: nats.connected ? 'ok' : 'unreachable' } : {}),
        ...(published ? { integration_events: published.state } : {}),
      },
    }
  }

  /** What a drain would still have to wait for. */
  async unfinished(): Promise<unknown> {
    const { integrationEvents } = this.#parts
    const [projections, processManagers, counts, head] = await Promise.all([
      this.#parts.projections.list(),
      this.#parts.runner.status(),
      this.#counts(),
      this.#parts.log.head(),
    ])
    return {
      head: head.toString(),
      work_due: counts.due,
      work_in_hand: counts.leased,
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
  async workOverview(): Promise<unknown> {
    const [counts, failed, processManagers] = await Promise.all([
      this.#counts(),
      this.#parts.runner.failedWork(FAILED_SHOWN),
      this.#parts.runner.status(),
    ])
    return {
      counts,
      failed: failed.map((work) => ({
        process_manager: work.processManager,
        kind: work.kind,
        key: work.key,
        attempts: work.attempts,
        error: work.error,
        correlation_id: work.correlationId,
        tenant_id: work.tenantId,
      })),
      process_managers: processManagers.map((one) => ({ ...one, position: one.position.toString() })),
    }
  }

  /**
   * Sets the gauges that are read on demand, within {@link PROBE_MS}. Those whose source does not answer are taken
   * away: an old figure would look like a new one.
   */
  async measure(metrics: Metrics): Promise<void> {
    const { projections, nats, workQueue, integrationEvents } = this.#parts
    if (nats) metrics.nats(nats.connected)
    const set = async <T>(reading: Promise<T>, gauges: (figures: T | null) => void) =>
      gauges(await within(PROBE_MS, reading))
    await Promise.all([
      set(projections.list(), (figures) => metrics.projections(figures)),
      set(this.#counts(), (figures) => metrics.work('process-managers', figures)),
      workQueue &&
        set(nats?.connected ? workQueue.depth() : Promise.resolve(null), (figures) =>
          metrics.workQueue(figures),
        ),
      integrationEvents &&
        set(this.#unpublished(integrationEvents), (figures) => metrics.integrationEventsBehind(figures)),
    ])
  }

  /** Events of the log that were not yet looked at for integration events. */
  async #unpublished(integrationEvents: IntegrationEvents): Promise<number> {
    const { log } = this.#parts
    const [head, { position }] = await Promise.all([log.head(), integrationEvents.status()])
    return log.count(position, head)
  }

  async #counts() {
    const { work, clock, faults } = this.#parts
    return work.counts({ now: clock.now(), holds: await faults.holds() })
  }
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

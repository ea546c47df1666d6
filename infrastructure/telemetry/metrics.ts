import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { DiskWaits } from './disk-waits.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BATCH = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]

interface Observed {
  observe(value: number): void
}

/**
 * The service's metrics in a registry of their own. Durations are given in milliseconds and shown
 * in seconds. Label values must come from a small fixed set: route patterns, never paths; names of
 * projections and queues; never ids.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #refreshers: (() => void | Promise<void>)[] = []

  // children by their joined labels: looking labels up again for every observation costs more than observing
  readonly #requests = new Map<string, Observed>()
  readonly #told = new Map<string, { readonly over: Counter.Internal; readonly seconds: Counter.Internal }>()

  readonly #requestTime = this.#histogram(
    'http_request_duration_seconds',
    'Time from the request to the end of its answer',
    ['interface', 'method', 'route', 'status'],
  )
  readonly #refused = this.#counter(
    'http_refused_total',
    'Requests refused at once because there were more than could be answered soon',
    [],
  )
  readonly #appendEvents = this.#histogram(
    'log_append_batch_events',
    'Events stored by one transaction',
    [],
    BATCH,
  )
  readonly #appendTime = this.#histogram('log_append_duration_seconds', 'Time of one append transaction', [])
  readonly #projectionEvents = this.#counter('projection_events_total', 'Events applied', ['projection'])
  readonly #projectionPages = this.#counter('projection_pages_total', 'Pages applied', ['projection'])
  readonly #projectionTime = this.#histogram('projection_page_duration_seconds', 'Time of one page', [
    'projection',
  ])
  readonly #lagEvents = this.#gauge('projection_lag_events', 'Events behind the log', ['projection'])
  readonly #lagSeconds = this.#gauge('projection_lag_seconds', 'Time behind the log', ['projection'])
  readonly #projectionUp = this.#gauge('projection_up', 'Whether a process runs it, without error: 1 or 0', [
    'projection',
  ])
  readonly #managerUp = this.#gauge(
    'process_manager_up',
    'Whether a process runs it, without problem: 1 or 0',
    ['process_manager'],
  )
  readonly #managerLagEvents = this.#gauge('process_manager_lag_events', 'Events behind the log', [
    'process_manager',
  ])
  readonly #managerLagSeconds = this.#gauge('process_manager_lag_seconds', 'Time behind the log', [
    'process_manager',
  ])
  /** `parked_streams` is the former name, kept for one release. */
  readonly #deadLettered = ['dead_lettered_streams', 'parked_streams'].map((name) =>
    this.#gauge(name, 'Streams that wait behind an event which cannot be handled', ['reader']),
  )
  readonly #workDue = this.#gauge('work_due', 'Work that is due and not taken', ['queue'])
  readonly #workFailed = this.#gauge('work_failed', 'Work that failed, waiting for the operator', ['queue'])
  readonly #workLeased = this.#gauge('work_leased', 'Work taken by a process', ['queue'])
  readonly #workOldestDue = this.#gauge(
    'work_oldest_due_seconds',
    'Since when the oldest work that is due and not taken is due, 0 where none is',
    ['queue'],
  )
  readonly #leasesLost = this.#counter(
    'leases_lost_total',
    'Work that was taken from this process while it was at it',
    [],
  )
  readonly #rebuildProgress = this.#gauge('projection_rebuild_progress', 'Done part of a rebuild, 0 to 1', [
    'projection',
  ])
  readonly #rebuildLeft = this.#gauge(
    'projection_rebuild_events_left',
    'Events that a rebuild has before it',
    ['projection'],
  )
  readonly #poolInUse = this.#gauge('database_pool_in_use', 'Connections to PostgreSQL at work', ['pool'])
  readonly #poolWaiting = this.#gauge('database_pool_waiting', 'Statements that wait for a connection', [
    'pool',
  ])
  readonly #statements = this.#counter(
    'database_statements_total',
    'Prepared statements of this process that are over',
    ['statement'],
  )
  readonly #statementTime = this.#counter(
    'database_statement_seconds_total',
    'Time of those, their answers included',
    ['statement'],
  )
  readonly #looks = this.#counter(
    'log_looks_total',
    'Looks of requests at what the log has: at its changes, or at its head',
    ['at'],
  )
  readonly #appendsWaiting = this.#gauge('log_appends_waiting', 'Appends that have no answer yet', [])
  readonly #workTotal = this.#counter('work_total', 'Work that ended, for now or for good', [
    'queue',
    'outcome',
  ])
  readonly #alertsOpen = this.#gauge('operator_alerts_open', 'Alerts that no operator has acknowledged', [
    'kind',
  ])
  readonly #webhookAttempts = this.#counter('webhook_attempts_total', 'Attempts to deliver webhooks', [
    'outcome',
  ])
  readonly #webhookDelay = this.#histogram(
    'webhook_first_attempt_seconds',
    'Time from a webhook event to its first attempt',
    [],
  )
  readonly #webhookDeliveries = this.#counter(
    'webhook_deliveries_total',
    'Webhook deliveries that were accepted, failed five times in a row, or were dropped or missed after 48 hours',
    ['outcome'],
  )
  readonly #webhooksDisabled = this.#counter(
    'webhook_subscriptions_disabled_total',
    'Webhook subscriptions that were disabled because their receivers kept failing',
    [],
  )
  /** What becomes of webhooks. */
  readonly webhooks = {
    attempted: (attempt: {
      readonly isFirst: boolean
      readonly isAccepted: boolean
      readonly sinceRaisedMs: number
    }) => {
      if (attempt.isFirst) this.#webhookDelay.observe(attempt.sinceRaisedMs / 1000)
      this.#webhookAttempts.inc({ outcome: attempt.isAccepted ? 'accepted' : 'failed' })
      if (attempt.isAccepted) this.#webhookDeliveries.inc({ outcome: 'delivered' })
    },
    failed: () => this.#webhookDeliveries.inc({ outcome: 'failed' }),
    dropped: () => this.#webhookDeliveries.inc({ outcome: 'dropped' }),
    missed: (deliveries: number) => this.#webhookDeliveries.inc({ outcome: 'missed' }, deliveries),
    disabled: () => this.#webhooksDisabled.inc(),
  }
  #clockSkew: Gauge | undefined
  #checkpointAge: Gauge | undefined
  #backupAge: Gauge | undefined
  /** Counts that others keep, by name. */
  readonly #kept = new Map<string, Counter>()
  /** On the clock of `performance.now()`. */
  #checkpointAt: number | null = null
  /** Whose dead-lettered streams are shown beside those of other readers. */
  #projections: readonly string[] = []
  #processManagers: readonly string[] = []
  #natsConnected: Gauge | undefined
  #bankFolderUp: Gauge<'folder'> | undefined
  #integrationPublished: Counter<'type'> | undefined
  #integrationBehind: Gauge | undefined

  /** @param options.process also measure memory, processor time and event loop lag of this process, default true. */
  constructor(options: { readonly process?: boolean } = {}) {
    // monitoring sees no increase in a series that begins above 0
    for (const outcome of ['delivered', 'failed', 'dropped', 'missed']) {
      this.#webhookDeliveries.inc({ outcome }, 0)
    }
    if (options.process ?? true) collectDefaultMetrics({ register: this.#registry, prefix: 'compstream_' })
  }

  /** An answered request of one of the hosts. */
  request(host: string, method: string, route: string, status: number, milliseconds: number): void {
    const key = `${host} ${method} ${status} ${route}`
    let observed = this.#requests.get(key)
    if (!observed) {
      observed = this.#requestTime.labels(host, method, route, String(status))
      this.#requests.set(key, observed)
    }
    observed.observe(milliseconds / 1000)
  }

  /** A request that was refused because there was too much to do. */
  refused(): void {
    this.#refused.inc()
  }

  /** A prepared statement; those of all generations of a projection, and of all that one page may touch, count together. */
  statement(name: string, milliseconds: number): void {
    let told = this.#told.get(name)
    if (!told) {
      const statement = name.replace(/\/\d+\//, '/').replace(/\/write\/.*/, '/write')
      told = { over: this.#statements.labels(statement), seconds: this.#statementTime.labels(statement) }
      this.#told.set(name, told)
    }
    told.over.inc()
    told.seconds.inc(milliseconds / 1000)
  }

  /** A request asked the log what others stored meanwhile, or how far it goes. */
  looked(at: 'changes' | 'head'): void {
    this.#looks.inc({ at })
  }

  /** One transaction of the event log. */
  append(events: number, milliseconds: number): void {
    this.#appendEvents.observe(events)
    this.#appendTime.observe(milliseconds / 1000)
  }

  /** One page that a projection or process manager applied. */
  page(projection: string, events: number, milliseconds: number): void {
    this.#projectionEvents.inc({ projection }, events)
    this.#projectionPages.inc({ projection })
    this.#projectionTime.observe({ projection }, milliseconds / 1000)
  }

  /** Where all projections stand; null while that is not known: then there is no figure rather than an old one. */
  projections(
    all:
      | readonly {
          readonly name: string
          readonly state: string
          readonly owner: string | null
          readonly lag: { readonly events: number; readonly seconds: number }
          readonly parked_streams: number
          readonly rebuild: {
            readonly position: number
            readonly head: number
            readonly events_left: number
          } | null
        }[]
      | null,
  ): void {
    if (all === null) {
      for (const gauge of [this.#lagEvents, this.#lagSeconds, this.#projectionUp]) gauge.reset()
      for (const gauge of [this.#rebuildProgress, this.#rebuildLeft]) gauge.reset()
      for (const reader of this.#projections) this.deadLettered(reader, null)
      return
    }
    this.#projections = all.map(({ name }) => name)
    for (const gauge of [this.#rebuildProgress, this.#rebuildLeft]) gauge.reset()
    for (const { name, state, owner, lag, parked_streams, rebuild } of all) {
      if (rebuild) {
        const { position, head, events_left } = rebuild
        this.#rebuildProgress.set({ projection: name }, head === 0 ? 1 : Math.min(1, position / head))
        this.#rebuildLeft.set({ projection: name }, events_left)
      }
      this.#lagEvents.set({ projection: name }, lag.events)
      this.#lagSeconds.set({ projection: name }, lag.seconds)
      this.#projectionUp.set({ projection: name }, owner !== null && state !== 'error' ? 1 : 0)
      this.deadLettered(name, parked_streams)
    }
  }

  /** Where all process managers stand; null while that is not known. */
  processManagers(
    all:
      | readonly {
          readonly name: string
          readonly state: string
          readonly lag: { readonly events: number; readonly seconds: number }
          readonly deadLetteredStreams: number
        }[]
      | null,
  ): void {
    if (all === null) {
      for (const gauge of [this.#managerUp, this.#managerLagEvents, this.#managerLagSeconds]) gauge.reset()
      for (const reader of this.#processManagers) this.deadLettered(reader, null)
      return
    }
    this.#processManagers = all.map(({ name }) => name)
    for (const { name: process_manager, state, lag, deadLetteredStreams } of all) {
      this.#managerUp.set({ process_manager }, state === 'active' ? 1 : 0)
      this.#managerLagEvents.set({ process_manager }, lag.events)
      this.#managerLagSeconds.set({ process_manager }, lag.seconds)
      this.deadLettered(process_manager, deadLetteredStreams)
    }
  }

  /**
   * What stands in a work queue; null while that is not known.
   * @param counts.oldestDueMs since when the oldest that nobody has taken is due; null: none is.
   */
  work(
    queue: string,
    counts: {
      readonly due: number
      readonly failed: number
      readonly leased: number
      readonly oldestDueMs: number | null
    } | null,
  ): void {
    if (counts === null) {
      for (const gauge of [this.#workDue, this.#workFailed, this.#workLeased, this.#workOldestDue]) {
        gauge.remove({ queue })
      }
      return
    }
    this.#workOldestDue.set({ queue }, (counts.oldestDueMs ?? 0) / 1000)
    this.#workDue.set({ queue }, counts.due)
    this.#workFailed.set({ queue }, counts.failed)
    this.#workLeased.set({ queue }, counts.leased)
  }

  /** Work was taken from this process. */
  leaseLost(): void {
    this.#leasesLost.inc()
  }

  /** Has connections and appends of this process shown whenever somebody looks. */
  watch(watched: {
    readonly pools: () => Iterable<{
      readonly name: string
      readonly inUse: number
      readonly waiting: number
    }>
    readonly appends: () => number
  }): void {
    this.refreshOnRead(() => {
      for (const { name: pool, inUse, waiting } of watched.pools()) {
        this.#poolInUse.set({ pool }, inUse)
        this.#poolWaiting.set({ pool }, waiting)
      }
      this.#appendsWaiting.set(watched.appends())
    })
  }

  /** Open alerts by kind; null while that is not known. */
  alertsOpen(counts: Readonly<Record<string, number>> | null): void {
    if (counts === null) this.#alertsOpen.reset()
    for (const [kind, open] of Object.entries(counts ?? {})) this.#alertsOpen.set({ kind }, open)
  }

  /** A piece of work of a process manager that came to an end, for now or for good. */
  worked(queue: string, outcome: string): void {
    this.#workTotal.inc({ queue, outcome })
  }

  /** How far this process's clock is ahead of PostgreSQL's, in milliseconds; null while that is not known. */
  clockSkew(ms: number | null): void {
    if (ms === null) {
      this.#clockSkew?.remove()
      return
    }
    this.#clockSkew ??= this.#gauge(
      'clock_skew_seconds',
      "How far this process's clock is ahead of PostgreSQL's; negative: behind",
      [],
    )
    this.#clockSkew.set(ms / 1000)
  }

  /** Milliseconds since the newest backup; null while there is none, or that is not known. */
  backupAge(ms: number | null): void {
    if (ms === null) this.#backupAge?.remove()
    else {
      this.#backupAge ??= this.#gauge('backup_age_seconds', 'Time since the newest backup', [])
      this.#backupAge.set(ms / 1000)
    }
  }

  /** What commits wait for, as PostgreSQL counts it; null while that is not known, or not told. */
  diskWaits(waits: DiskWaits | null): void {
    const syncs = 'How often PostgreSQL made its log reach the disk'
    this.#keep('database_disk_syncs_total', syncs, waits?.syncs ?? null)
    const seconds = 'How long PostgreSQL took to make its log reach the disk, which commits wait for'
    this.#keep('database_disk_sync_seconds_total', seconds, waits?.seconds ?? null)
  }

  /** Whether this process sees to checkpoints of the log, and has covered it by one just now. */
  covered(isCovered: boolean): void {
    if (!this.#checkpointAge) {
      this.#checkpointAge = this.#gauge(
        'audit_checkpoint_age_seconds',
        'Time since the log was last covered by a signed checkpoint, in the process that signs them',
        [],
      )
      this.refreshOnRead(() => {
        if (this.#checkpointAt === null) this.#checkpointAge!.remove()
        else this.#checkpointAge!.set((performance.now() - this.#checkpointAt) / 1000)
      })
    }
    this.#checkpointAt = isCovered ? performance.now() : null
  }

  /** Whether NATS is connected; only where it is configured. */
  nats(connected: boolean): void {
    this.#natsConnected ??= this.#gauge('nats_connected', 'Whether NATS is connected: 1 or 0', [])
    this.#natsConnected.set(connected ? 1 : 0)
  }

  /** Folders of the bank, by name. */
  bankFolders(all: readonly string[], unusable: readonly string[]): void {
    this.#bankFolderUp ??= this.#gauge('bank_folder_up', 'Whether a folder of the bank can be used: 1 or 0', [
      'folder',
    ])
    for (const folder of all) this.#bankFolderUp.set({ folder }, unusable.includes(folder) ? 0 : 1)
  }

  /** An integration event was published. */
  integrationEvent(type: string): void {
    this.#integrationPublished ??= this.#counter('integration_events_total', 'Integration events published', [
      'type',
    ])
    this.#integrationPublished.inc({ type })
  }

  /** How far publishing integration events is behind the log, in events of any type; null while that is not known. */
  integrationEventsBehind(events: number | null): void {
    if (events === null) {
      // a gauge without labels would be reset to 0
      this.#integrationBehind?.remove()
      return
    }
    this.#integrationBehind ??= this.#gauge(
      'integration_events_behind',
      'Events of the log that were not yet looked at for integration events',
      [],
    )
    this.#integrationBehind.set(events)
  }

  /** Streams that a reader of the log has set aside; null while that is not known. */
  deadLettered(reader: string, streams: number | null): void {
    for (const gauge of this.#deadLettered) {
      if (streams === null) gauge.remove({ reader })
      else gauge.set({ reader }, streams)
    }
  }

  /** Has `refresh` set gauges that are only worth reading when somebody looks; a failing one is left out. */
  refreshOnRead(refresh: () => void | Promise<void>): void {
    this.#refreshers.push(refresh)
  }

  /** Prometheus text of everything. */
  async text(): Promise<string> {
    await Promise.allSettled(this.#refreshers.map(async (refresh) => refresh()))
    return this.#registry.metrics()
  }

  /** Content type of {@link text}. */
  get contentType(): string {
    return this.#registry.contentType
  }

  #histogram<Label extends string>(name: string, help: string, labels: readonly Label[], buckets = SECONDS) {
    return new Histogram<Label>({
      name: `compstream_${name}`,
      help,
      labelNames: labels,
      buckets,
      registers: [this.#registry],
    })
  }

  #counter<Label extends string>(name: string, help: string, labels: readonly Label[]) {
    return new Counter<Label>({
      name: `compstream_${name}`,
      help,
      labelNames: labels,
      registers: [this.#registry],
    })
  }

  /** Shows a count that somebody else keeps; null: it is not known. */
  #keep(name: string, help: string, count: number | null): void {
    const shown = this.#kept.get(name)
    shown?.reset()
    if (count === null) {
      shown?.remove()
      return
    }
    const counter = shown ?? this.#counter(name, help, [])
    counter.inc(count)
    this.#kept.set(name, counter)
  }

  #gauge<Label extends string>(name: string, help: string, labels: readonly Label[]) {
    return new Gauge<Label>({
      name: `compstream_${name}`,
      help,
      labelNames: labels,
      registers: [this.#registry],
    })
  }
}

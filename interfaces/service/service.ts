import { bankAccounts } from '../../application/banking/accounts/bank-accounts-process-manager.ts'
import { displacedCredits } from '../../application/banking/credits/displaced-credits-process-manager.ts'
import { bankDebits } from '../../application/banking/debits/bank-debits-process-manager.ts'
import { debitCollections } from '../../application/banking/debits/debit-collections-process-manager.ts'
import { payrollDebits } from '../../application/banking/debits/payroll-debits-process-manager.ts'
import { bankFiles } from '../../application/banking/files/bank-files-process-manager.ts'
import { followFolders } from '../../application/banking/files/look-at-folders.ts'
import { moneyAccounted } from '../../application/banking/reconciliation/money-accounted-process-manager.ts'
import type { Application } from '../../application/commands/application.ts'
import { CommandHandler } from '../../application/commands/command-handler.ts'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import { scaleTechnicalDeadlines } from '../../application/commands/technical-deadlines.ts'
import {
  IntegrationPublisher,
  UNPUBLISHED_STREAM,
} from '../../application/followers/integration-publisher.ts'
import { ProcessManagerRunner } from '../../application/followers/runner.ts'
import { advanceClock } from '../../application/operations/advance-clock.ts'
import { type DrainParts, drain } from '../../application/operations/drain.ts'
import { erasure } from '../../application/operations/erasure-process-manager.ts'
import { followThroughput } from '../../application/operations/follow-throughput.ts'
import { recordClock, recordHeldBack } from '../../application/operations/machinery-alerts.ts'
import { openAlerts } from '../../application/operations/operator-alerts.ts'
import { discardWork } from '../../application/operations/unknown-work.ts'
import { checkoutSettings } from '../../application/payments/checkout-settings-process-manager.ts'
import { financingSessions } from '../../application/payments/financing/financing-sessions-process-manager.ts'
import { paymentLinks } from '../../application/payments/links/payment-links-process-manager.ts'
import { followNotices } from '../../application/payments/missed-notices.ts'
import { noticeSenders } from '../../application/payments/processor-notices.ts'
import { processorNotices } from '../../application/payments/processor-notices-process-manager.ts'
import { paymentSessions } from '../../application/payments/sessions/payment-sessions-process-manager.ts'
import { simulatedCardProcessor } from '../../application/payments/simulated-card-processor-process-manager.ts'
import { policyCancellations } from '../../application/payments/subscriptions/policy-cancellations-process-manager.ts'
import { subscriptions } from '../../application/payments/subscriptions/subscriptions-process-manager.ts'
import { payrollPipeline } from '../../application/payroll/payroll-pipeline-process-manager.ts'
import { policyIntakes } from '../../application/policies/policy-intakes-process-manager.ts'
import { NO_FAULTS } from '../../application/ports/faults.ts'
import { webhookDeliveries } from '../../application/webhooks/webhook-deliveries-process-manager.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { StoredConsoleSessions } from '../../infrastructure/access/console-sessions.ts'
import { PostgresLastUsed } from '../../infrastructure/access/last-used.ts'
import { ClockWatch } from '../../infrastructure/clock/clock-watch.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { VirtualClock } from '../../infrastructure/clock/virtual-clock.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import { FailFastLog } from '../../infrastructure/event-store/fail-fast.ts'
import { RememberedLog } from '../../infrastructure/event-store/remembered-log.ts'
import { backupAge } from '../../infrastructure/installation/backup/known-backups.ts'
import { prepareDataDirectory } from '../../infrastructure/installation/data-directory.ts'
import { PostgresLogMemory } from '../../infrastructure/installation/log-memory.ts'
import { pairWithLog } from '../../infrastructure/installation/pairing.ts'
import { GuardedWeb } from '../../infrastructure/outside-web/guarded-web.ts'
import { HeldLeases } from '../../infrastructure/ownership/leases.ts'
import { SimulatedFinancingProvider } from '../../infrastructure/providers/financing/simulated.ts'
import { MessagesByChannel } from '../../infrastructure/providers/messages/messages.ts'
import { RecordedOutbox } from '../../infrastructure/providers/messages/recorded-outbox.ts'
import { SystemRandomness } from '../../infrastructure/randomness.ts'
import { inThreads } from '../../infrastructure/read-models/catch-up-thread.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { PostgresReadDatabase } from '../../infrastructure/read-models/read-database.ts'
import { EncryptedPersonalData } from '../../infrastructure/secrets/personal-data.ts'
import { rewrapAll } from '../../infrastructure/secrets/rewrap.ts'
import { PostgresSecretVault } from '../../infrastructure/secrets/vault.ts'
import { diskWaits } from '../../infrastructure/telemetry/disk-waits.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'
import { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { PostgresThroughput } from '../../infrastructure/telemetry/throughput.ts'
import { PostgresDeliveryRecords } from '../../infrastructure/webhooks/delivery-records.ts'
import { keepHistory } from '../../infrastructure/webhooks/history.ts'
import { HttpsWebhookSender } from '../../infrastructure/webhooks/sender.ts'
import { PostgresDeadLetters } from '../../infrastructure/work/dead-letters.ts'
import { PostgresFaults } from '../../infrastructure/work/faults.ts'
import { PostgresWorkStore } from '../../infrastructure/work/work-store.ts'
import { projections as readModels } from '../../projections/index.ts'
import { Projections } from '../../projections/runtime/projections.ts'
import type { Listener } from '../http/server.ts'
import { keepCheckpoints, logTreeOf } from './audit.ts'
import { bankLinks } from './bank-links.ts'
import { bankRails } from './bank-rails.ts'
import { cardProcessors } from './card-processors.ts'
import { type Addresses, createHosts, type HostName, listenOnAll, portalHosts } from './hosts.ts'
import { watchLog } from './log-watch.ts'
import { openMessaging } from './messaging.ts'
import { Readiness } from './readiness.ts'
import { logEngineOf, openEventLog, openStorage } from './storage.ts'
import { openTracing, tracedProviders } from './tracing.ts'

/** A running service. */
export interface Service {
  readonly addresses: Addresses
  readonly app: Application
  /** Resolves with the reason when the service can no longer work. */
  readonly failure: Promise<string>
  /** Finishes what is in flight and closes everything. Idempotent. */
  stop(): Promise<void>
}

/**
 * The one composition root: opens storage, wires ports to adapters, starts what the roles ask for
 * and listens.
 * @throws ConfigError, EmbeddedPostgresError, DatabaseUnavailable, EventStoreUnavailable, OtherEventLog,
 *   LogTooShort, NatsUnavailable or CannotListen with one clear line.
 */
export async function startService(config: Config, logger: Logger): Promise<Service> {
  scaleTechnicalDeadlines(config.technicalDeadlineScale)
  for (const warning of config.warnings) logger.warn('setting', { text: warning })
  const closers: (() => Promise<void>)[] = []
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        logger.warn('stopping part failed', {}, error)
      }
    }
  }
  try {
    return await compose(config, logger, closers, closeAll)
  } catch (error) {
    await closeAll()
    throw error
  }
}

async function compose(
  config: Config,
  logger: Logger,
  closers: (() => Promise<void>)[],
  closeAll: () => Promise<void>,
): Promise<Service> {
  // ends last: traces name all else
  closers.push(await openTracing(config, logger))
  const secrets = await prepareDataDirectory(config)
  const metrics = new Metrics()
  const storage = await openStorage(config, logger, (name, ms) => metrics.statement(name, ms))
  closers.push(() => storage.close())
  const { database } = storage
  const { pool, background } = database
  const messaging = await openMessaging(config, background, logger)
  closers.push(() => messaging.close())
  const { notices, nats } = messaging
  const registry = new EventRegistry(aggregates)

  let lookAtLog: () => void = () => undefined
  const onAppend = (events: number, ms: number) => metrics.append(events, ms)
  const log = new RememberedLog(await openEventLog(config, database, logger, onAppend, () => lookAtLog()))
  metrics.watch({ pools: database.use, appends: () => log.appending })
  // a request does not wait for a log that is away; work in the background does
  const failFast = new FailFastLog(log, {
    // in the database, reads of the log may all be in line behind slow ones
    ...(config.eventStoreUrl === null ? { ask: () => database.leases.query('SELECT 1') } : {}),
    looks: (at) => metrics.looked(at),
  })
  closers.push(() => failFast.close())
  await pairWithLog({
    database,
    log,
    registry,
    masterKeys: secrets.masterKeys,
    report: (text) => logger.warn('events lost', { text }),
    engine: logEngineOf(config),
    setting: config.databaseUrl === null ? 'DATA_DIR' : 'DATABASE_URL',
  })
  // no other process can use an embedded database
  const isAlone = config.databaseUrl === null
  const clock = config.clock === 'virtual' ? await VirtualClock.open(log, registry, notices) : systemClock
  const vault = new PostgresSecretVault(pool, secrets.masterKeys, clock)
  const personalData = await EncryptedPersonalData.open({
    pool,
    vault,
    masterKeys: secrets.masterKeys,
    clock,
  })
  const lastUsed = new PostgresLastUsed(background, (error) => logger.warn('last use not written', {}, error))
  closers.push(() => lastUsed.close())
  // none are injected unless the clock is virtual
  if (config.clock === 'system') await PostgresFaults.clear(database)
  const faults =
    config.clock === 'virtual' ? await PostgresFaults.open(database, notices, () => isAlone) : NO_FAULTS
  const randomness = new SystemRandomness(clock)
  const commands = new CommandHandler(log, registry, clock)

  const owner = randomness.hex(12)
  // a process that no other can replace need not be replaced soon
  const ttlMs = config.databaseUrl === null ? 10_000 : 5_000
  const leases = await HeldLeases.open(database, { owner, ttlMs })
  closers.push(() => leases.close())
  // ends before the session does: a start that takes back what is lost waits for sessions to end
  const logMemory = new PostgresLogMemory(background)
  const logWatch = watchLog(() => logMemory.findLogWentBack(log))
  lookAtLog = () => logWatch.look()
  closers.push(async () => {
    logWatch.stop()
    if (log.last) await logMemory.remember({ ...log.last, events: null })
  })
  const logTree = await logTreeOf(config, database, { log, vault, clock })
  // after what appends has ended
  let endCheckpoints = async () => {}
  closers.push(() => endCheckpoints())
  const projections = new Projections({
    projections: readModels,
    log,
    askedLog: failFast,
    registry,
    store: new PostgresProjectionStore(database),
    leases,
    clock,
    notices,
    metrics: {
      onPage: ({ name, events, ms }) => metrics.page(name, events, ms),
    },
    heldBack: (rebuild) => recordHeldBack({ commands, randomness }, rebuild),
    catchUp: inThreads(
      {
        databaseUrl: storage.url,
        eventStoreUrl: config.eventStoreUrl,
        technicalDeadlineScale: config.technicalDeadlineScale,
      },
      (reason) => logger.warn('rebuild disturbed', { reason }),
    ),
  })
  const clockWatch = new ClockWatch({
    pool: database.leases,
    measured: (ms) => metrics.clockSkew(ms),
    differs: (ms) => recordClock({ commands, randomness }, { process_id: owner, skew_ms: ms }),
    failed: (error) => logger.warn('clocks not compared', {}, error),
  })
  closers.push(async () => clockWatch.stop())
  const outbox = new RecordedOutbox(pool, personalData, clock)
  const addresses: Partial<Record<HostName, string>> = {}
  const rails = await bankRails(config, {
    log,
    registry,
    commands,
    clock,
    vault,
    personalData,
    randomness,
    faults,
    pool: background,
  })
  const app: Application = {
    log: failFast,
    registry,
    commands: commands.over(failFast),
    clock,
    randomness,
    personalData,
    vault,
    read: new PostgresReadDatabase(pool),
    readModels: projections,
    lastUsed,
    faults,
    forwardCutoff: config.forwardCutoff,
    outsideWeb: new GuardedWeb(config.webhookTargets),
    bankFiles: rails.bankFiles,
    ...tracedProviders({
      ...(await bankLinks(config, { faults })),
      financing: new SimulatedFinancingProvider(faults),
      messages: new MessagesByChannel(config, outbox, faults),
      ...(await cardProcessors(config, { faults, personalData }, addresses)),
      bankRails: rails.bankRails,
    }),
    webhooks: {
      sender: new HttpsWebhookSender(config.webhookTargets),
      deliveries: new PostgresDeliveryRecords(pool),
    },
  }

  const patient: Application = { ...app, log, commands, read: new PostgresReadDatabase(background) }
  const workStore = new PostgresWorkStore(background)
  const records = new PostgresDeliveryRecords(background)
  const runner = new ProcessManagerRunner(
    {
      log,
      registry,
      clock,
      store: workStore,
      leases,
      notices,
      queue: messaging.queue,
      report: (what, fields) => {
        if (what === 'lease_lost') metrics.leaseLost()
        logger.warn(what.replaceAll('_', ' '), fields)
      },
      onEnded: (processManager, outcome) => metrics.worked(processManager, outcome),
    },
    [
      ...[payrollPipeline(patient), erasure(patient), checkoutSettings(patient)],
      ...[policyIntakes(patient), paymentLinks(patient)],
      ...[subscriptions(patient), policyCancellations(patient), processorNotices(patient)],
      simulatedCardProcessor(patient),
      ...[paymentSessions(patient), bankDebits(patient, config.debitBatchIntervalSeconds * 1_000)],
      ...[
        bankAccounts(patient),
        bankFiles(patient),
        payrollDebits(patient),
        moneyAccounted(patient),
        displacedCredits(patient),
      ],
      debitCollections(patient),
      financingSessions(patient),
      webhookDeliveries({
        ...patient,
        records,
        notices,
        heard: metrics.webhooks,
        sender: app.webhooks.sender,
      }),
    ],
  )
  const integrationEvents =
    messaging.integrationEvents &&
    new IntegrationPublisher({
      log,
      registry,
      commands,
      leases,
      store: workStore,
      channel: messaging.integrationEvents,
      published: (type) => metrics.integrationEvent(type),
      report: (what, fields) => logger.warn(what.replaceAll('_', ' '), fields),
    })
  /** Runs something in the background; stopping the service ends it, and waits for it. */
  const goOn = (work: (stopping: AbortSignal) => Promise<unknown>) => {
    const stopping = new AbortController()
    const ended = work(stopping.signal)
    closers.push(async () => {
      stopping.abort()
      await ended
    })
  }
  const following = new AbortController()
  closers.push(async () => following.abort())
  if (clock instanceof VirtualClock) {
    void clock
      .follow(log, registry, following.signal, (error) => logger.warn('clock event not read', {}, error))
      .catch((error) => logger.error('clock not followed', {}, error))
  }
  if (config.roles.has('projector')) {
    await projections.start()
    closers.push(() => projections.stop())
  }
  await runner.register()
  if (config.roles.has('worker')) {
    endCheckpoints = keepCheckpoints(logTree, { leases, logger, metrics })
    await runner.start()
    closers.push(() => runner.stop())
    integrationEvents?.start()
    closers.push(async () => integrationEvents?.stop())
    const failed = (error: unknown) => logger.warn('webhook history not pruned', {}, error)
    closers.push(keepHistory({ records, clock, days: config.webhookHistoryDays, failed }))
    for (const sender of noticeSenders(app)) {
      const missed = (error: unknown) => logger.warn('notices of the card processor missed', {}, error)
      goOn((stopping) => followNotices(patient, sender, { leases, failed: missed }, stopping))
    }
  }
  const { bankFiles: files } = patient
  if (config.roles.has('worker') && files !== null && config.bankRail.kind === 'nacha') {
    const failed = (error: unknown) => logger.warn('folders of the bank not looked into', {}, error)
    const everyMs = config.bankRail.pollSeconds * 1_000
    const parts = { ...patient, bankFiles: files }
    goOn((stopping) => followFolders(parts, { leases, everyMs, failed }, stopping))
  }
  void rewrapAll(background, secrets.masterKeys).then(
    ({ dataKeys, secrets: rewrapped }) => {
      if (dataKeys + rewrapped > 0)
        logger.info('master key rotated', { data_keys: dataKeys, secrets: rewrapped })
    },
    (error) => logger.warn('master key rotation failed', {}, error),
  )

  const drainParts: DrainParts = {
    log,
    clock,
    notices,
    work: workStore,
    processManagers: runner,
    ...(integrationEvents ? { integrationEvents } : {}),
    projections: { names: () => projections.names },
    readModels: projections,
  }
  const kinds = [...runner.kinds, ...(integrationEvents ? [UNPUBLISHED_STREAM] : [])]
  const readiness = new Readiness({
    log: failFast,
    ask: () => database.leases.query('SELECT 1'),
    projections,
    runner,
    work: workStore,
    kinds,
    clock,
    nats,
    integrationEvents,
    bankFolders: files?.folders ?? null,
    openAlerts: () => openAlerts(patient),
    backupAge: () => backupAge(background),
    diskWaits: () => diskWaits(background),
  })
  metrics.refreshOnRead(() => readiness.measure(metrics))

  const throughput = new PostgresThroughput(background)
  if (config.roles.has('worker')) {
    const failed = (error: unknown) => logger.warn('throughput not sampled', {}, error)
    const lag = () => readiness.lag()
    const parts = { log: failFast, samples: throughput, leases, lag, failed }
    goOn((stopping) => followThroughput(parts, stopping))
  }
  const hosts = createHosts({
    config,
    app,
    secrets,
    logger,
    metrics,
    addresses,
    operator: {
      patientLog: log,
      logMemory,
      logTree,
      outbox,
      throughput,
      needsSecondOperator: config.needsSecondOperator,
      consoleSessions: new StoredConsoleSessions(pool, clock),
      portalHosts: () => portalHosts(config, addresses),
      projections,
      work: {
        overview: () => readiness.workOverview(),
        redrive: (request) => runner.redrive(withKey(request)),
        discard: (request) => discardWork({ work: workStore, kinds }, request),
      },
      deadLetters: new PostgresDeadLetters(background, {
        projections: projections.names,
        processManagers: runner.names,
      }),
      advanceClock: (by, context) =>
        advanceClock(
          { commands, clock, work: workStore, leases, notices, settle: (ms) => drain(drainParts, ms) },
          by,
          context,
        ),
      drain: async (timeoutMs) => {
        const drained = await drain(drainParts, timeoutMs)
        return drained ? { drained } : { drained, waiting_for: await readiness.unfinished() }
      },
      health: () => ({ ok: true, checks: {} }),
      readiness: () => readiness.check(),
      metrics: async () => ({ contentType: metrics.contentType, text: await metrics.text() }),
    },
  })
  const listeners: Listener[] = []
  closers.push(async () => {
    await Promise.all(listeners.map((listener) => listener.close()))
  })
  await listenOnAll(hosts, config, listeners, addresses)
  logger.info('ready', {
    ...addresses,
    roles: [...config.roles].join(','),
    ...(secrets.operatorTokenFile === null ? {} : { operator_token_file: secrets.operatorTokenFile }),
  })
  let stopped: Promise<void> | undefined
  return {
    addresses,
    app,
    failure: Promise.race([storage.failure, logWatch.problem]),
    stop() {
      stopped ??= closeAll()
      return stopped
    },
  }
}

function withKey<Key>(request: { readonly key: Key | null; readonly dryRun: boolean }): {
  key?: Key
  dryRun: boolean
} {
  return request.key === null ? { dryRun: request.dryRun } : { key: request.key, dryRun: request.dryRun }
}

// @module-tag long: pipeline-kill kills under load, contract suites take servers away, integration/followers/process-manager-runner takes over
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'nats'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { INTEGRATION_SOURCES } from '../../application/followers/integration-messages.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../infrastructure/embedded-postgres/embedded-postgres.ts'
import { INTEGRATION_STREAM } from '../../infrastructure/messaging/nats/integration-events.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { fileSums, wholeFileTypes } from '../support/large-payroll.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { type NatsServer, natsCanBeKilled, startNats } from '../support/nats.ts'
import { operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts'
import type { RunningService } from '../support/service.ts'
import { deadlinesOfTheProduct } from '../support/technical-deadlines.ts'
import { until } from '../support/workbench.ts'
import { type AcknowledgedFile, changedRates, InsistentClients, sentRows } from './insistent-clients.ts'
import { type LoggedEvent, LoggedEvents } from './logged-events.ts'
import { expectRebuildsEqual } from './rebuilds.ts'
import { insistOnRestart, SupervisedProcesses } from './supervised-processes.ts'

deadlinesOfTheProduct()

/** How often each installation is disturbed; CHAOS_TIMES=300 for the long run. */
const TIMES = Number(process.env.CHAOS_TIMES ?? 9)
/** What is disturbed when, and what is sent; CHAOS_SEED repeats the choices of a run. */
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 2 ** 32)
const ROLES = ['api', 'api', 'projector', 'projector', 'worker', 'worker']
const DISTURBANCES = [
  ...['process', 'process', 'process', 'process', 'freeze', 'freeze', 'freeze'],
  ...['nats', 'nats', 'event store', 'event store', 'database session'],
] as const
const CHUNK_BY_CHUNK = [
  'PayrollRowsRecorded',
  'PayrollRowsValidated',
  'PayrollWagesCalculated',
  'PayrollPremiumCalculated',
]
/** Lists in events that are not looked at and would fill the memory. */
const BULK = ['rows', 'wages', 'premiums', 'results']
/** Requests that are answered before a disturbance counts as got over. */
const ANSWERS_BETWEEN = 5
/** For one disturbance; a limit for what hangs. */
const LIMIT_MS = 60_000
const DRAIN_SECONDS = 240
const CHECKS_MS = 1_200_000

const eventStore = await findEventStore()

/** An installation by role under load, disturbed at random; at the end nothing is lost, doubled or incomplete. */
function chaos(engine: 'PostgreSQL' | 'EventStoreDB'): void {
  describe(`many processes on ${engine} and NATS, disturbed at random under load`, () => {
    let dataDir: string
    let postgres: EmbeddedPostgres
    let store: EventStoreServer | null = null
    let nats: NatsServer
    let installation: Installation
    let processes: SupervisedProcesses
    let tenant: SeededTenant
    let database: pg.Client

    beforeAll(async () => {
      // killing a session restarts the whole server, so it is this test's own
      dataDir = await mkdtemp(join(tmpdir(), 'compstream-chaos-'))
      ;[postgres, nats, store] = await Promise.all([
        // six processes of up to 21 sessions, those of a restart counted twice
        startEmbeddedPostgres({ dataDir, durable: false, maxConnections: 300 }),
        startNats(),
        engine === 'EventStoreDB' ? startEventStore({ keepsData: true }) : null,
      ])
      installation = await createInstallation({
        databaseUrl: postgres.url,
        natsUrl: nats.url,
        eventStoreUrl: store?.url,
        env: { CLOCK: 'system' },
      })
      processes = new SupervisedProcesses(installation, ROLES)
      await processes.start()
      tenant = await seedTenant(api())
    }, 180_000)
    afterAll(async () => {
      await processes?.end()
      await installation?.stop()
      await database?.end()
      await Promise.all([postgres?.stop(), nats?.stop(), store?.stop()])
      await rm(dataDir, { recursive: true, force: true })
    })

    const api = (): RunningService => processes.running('api')[0]!

    /**
     * Disturbs so many times; then everything is there again. Two of three disturbances wait until the one before has
     * been got over: on a slow machine too, it is the service that is tried, and not the restart of servers.
     * @param answered how many requests have been answered.
     * @param hasFailed whether clients gave up, so that no more will be.
     * @returns how often by what.
     */
    async function disturb(
      random: SeededRandom,
      answered: () => number,
      hasFailed: () => boolean,
    ): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (let times = 0; times < TIMES && !hasFailed(); ) {
        await delay(random.between(300, 3_000))
        const before = answered()
        const what = await disturbance(random)
        if (what === null) continue
        times += 1
        counts[what] = (counts[what] ?? 0) + 1
        if (random.between(1, 3) > 1) await until(() => hasFailed() || answered() >= before + ANSWERS_BETWEEN)
      }
      await processes.settle()
      return counts
    }

    async function disturbance(random: SeededRandom): Promise<string | null> {
      const what = random.pick(DISTURBANCES)
      const place = random.between(0, processes.size - 1)
      const pause = random.between(100, 1_500)
      switch (what) {
        case 'process': {
          const killed = await processes.kill(place, pause)
          return killed && `kill -9 of ${killed}`
        }
        case 'freeze': {
          // on both sides of the leases' 5 seconds
          const frozen = processes.freeze(place, random.between(1_000, 12_000))
          return frozen && `SIGSTOP of ${frozen}`
        }
        case 'nats': {
          const emptied = random.between(1, 4) === 1
          await nats.own!.kill()
          await delay(pause)
          await nats.own!.restart({ emptied })
          return emptied ? 'kill -9 of nats-server, emptied' : 'kill -9 of nats-server'
        }
        case 'event store':
          if (!store) return null
          await store.kill()
          await delay(pause)
          await insistOnRestart(store)
          return 'kill -9 of eventstored'
        case 'database session':
          return (await killSession()) ? 'kill -9 of a database session' : null
      }
    }

    /** The server cuts all other sessions too, and recovers. */
    async function killSession(): Promise<boolean> {
      const client = new pg.Client(postgres.url)
      client.on('error', () => undefined)
      try {
        await client.connect()
        const { rows } = await client.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity
           WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
           ORDER BY random() LIMIT 1`,
        )
        if (!rows[0]) return false
        process.kill(rows[0].pid, 'SIGKILL')
        return true
      } catch {
        // it is recovering just then
        return false
      } finally {
        await client.end().catch(() => undefined)
      }
    }

    test(
      'nothing is lost, nothing is doubled, every file is complete',
      async () => {
        process.stderr.write(`chaos on ${engine}: CHAOS_TIMES=${TIMES} CHAOS_SEED=${SEED}\n`)
        const random = seededRandom(SEED)
        const clients = new InsistentClients(
          () => processes.running('api'),
          tenant,
          api().operatorToken,
          random.branch(),
        )
        const running = clients.run()
        let hasFailed = false
        running.catch(() => {
          hasFailed = true
        })
        const disturbances = await disturb(
          random.branch(),
          () => clients.account.answered,
          () => hasFailed,
        )
        clients.end()
        const failure = await running.then(
          () => null,
          (error: Error) => error,
        )
        if (process.env.CHAOS_COMPLAINTS) {
          for (const [line, times] of processes.complaints) process.stderr.write(`${times} x ${line}\n`)
        }
        tell(disturbances, clients)
        if (failure) throw failure
        const { acknowledged } = clients
        await operate(api(), 'POST', '/drain', { timeout_seconds: DRAIN_SECONDS })
        database = new pg.Client(postgres.url)
        await database.connect()

        const log = await LoggedEvents.read({
          url: postgres.url,
          eventStoreUrl: store?.url,
          leaveOut: BULK,
        })
        process.stderr.write(`${log.all.length} events\n`)
        expect(processes.endedByThemselves).toEqual([])

        // the log: everything that was acknowledged, once
        expect(log.repeatedIds).toEqual([])
        expect(await operate(api(), 'POST', '/audit/verify')).toMatchObject({
          verified: true,
          events: log.all.length,
        })
        const received = log.streams('payrollFile')
        const ids = new Set(acknowledged.files.map(({ fileId }) => fileId))
        expect(ids.size).toBe(acknowledged.files.length)
        expect([...ids].filter((id) => !received.has(id))).toEqual([])
        // an upload that broke off for too long fails its file, and its sender goes on with another one
        const leftBehind = [...received.keys()].filter((id) => !ids.has(id))
        for (const id of leftBehind) checkLeftBehind(received.get(id)!)
        process.stderr.write(
          `${leftBehind.length} uploads that broke off for too long were sent as another file\n`,
        )
        for (const file of acknowledged.files) checkFile(file, received.get(file.fileId)!, log)
        const syncs = log.streams('employeeSync')
        expect([...syncs.keys()].sort()).toEqual(acknowledged.syncs.map(({ fileId }) => fileId).sort())
        for (const { fileId, records } of acknowledged.syncs) checkSync(syncs.get(fileId)!, records)
        expect(policyChanges(log)).toEqual(acknowledged.policyChanges)
        const registered = [...log.streams('employer').values()].map(([first]) => first!.data)
        for (const [name, id] of acknowledged.employers) {
          expect(
            registered.filter((one) => one.legal_name === name).map((one) => one.employer_id),
            name,
          ).toEqual([id])
        }
        for (const [id, events] of log.streams('idempotencyKey')) {
          // the answer of a large upload is kept without a claim
          const types = events.map(({ type }) => type.replace('IdempotencyKey', '')).join()
          expect(['Claimed,Answered', 'Answered'], id).toContain(types)
        }

        // what was made of it
        await checkReadModels(acknowledged.files, leftBehind, log)
        const work = await operate(api(), 'GET', '/work')
        expect(work.counts).toEqual({ due: 0, leased: 0, held: 0, later: 0, failed: 0 })
        expect(work.failed).toEqual([])
        for (const manager of work.process_managers) {
          expect(manager).toMatchObject({ state: 'active', problem: null })
        }
        await checkPublished(log)
        await expectRebuildsEqual(api(), database)
      },
      TIMES * LIMIT_MS + DRAIN_SECONDS * 1000 + CHECKS_MS,
    )

    function tell(disturbances: Record<string, number>, { acknowledged, account }: InsistentClients): void {
      const figures = {
        engine,
        seed: SEED,
        disturbances,
        refused_starts: processes.refusedStarts,
        requests: account.requests,
        answered: account.answered,
        retries: Object.fromEntries(account.retries),
        files: acknowledged.files.length,
        rows: acknowledged.files.reduce((sum, file) => sum + file.rows, 0),
        employee_syncs: acknowledged.syncs.length,
        policy_changes: acknowledged.policyChanges.length,
        employers: acknowledged.employers.size,
      }
      process.stderr.write(`${JSON.stringify(figures, null, 1)}\n`)
    }

    function policyChanges(log: LoggedEvents): number[] {
      return log
        .streams('policy')
        .get(tenant.policyId)!
        .filter(({ type }) => type === 'PolicyTermsChanged')
        .map(({ data }) => data.fees[0].amount_cents)
    }

    /** What has to come out of a file under the rates of its policy's revision, computed apart from the service. */
    function expected({ rows, seed }: AcknowledgedFile, revision: number, log: LoggedEvents) {
      const policy = log.streams('policy').get(tenant.policyId)!
      const rates: { class_code: string; state: string; rate_per_100: string }[] =
        revision === 0 ? policy[0]!.data.rates : changedRates(policy[revision]!.data.fees[0].amount_cents)
      const hundredths = new Map(
        rates.map((one) => [one.class_code + one.state, BigInt(Math.round(Number(one.rate_per_100) * 100))]),
      )
      let red = 0
      let wageCents = 0
      let premiumCents = 0n
      for (const { classCode, state, cents } of sentRows(rows, seed)) {
        const rate = hundredths.get(classCode + state)
        if (rate === undefined) red += 1
        else {
          wageCents += cents
          premiumCents += (BigInt(cents) * rate + 5_000n) / 10_000n
        }
      }
      return { green: rows - red, red, wageCents, premiumCents: Number(premiumCents) }
    }

    /** Each step once, in order, and the right sums. */
    function checkFile(file: AcknowledgedFile, events: readonly LoggedEvent[], log: LoggedEvents): void {
      const { chunk_count: chunks, row_count } = events[0]!.data
      expect(row_count, file.fileId).toBe(file.rows)
      expect(
        events.map(({ type }) => type),
        file.fileId,
      ).toEqual(wholeFileTypes(chunks))
      const isProcessedAtOnce = chunks === 1
      for (const type of isProcessedAtOnce ? [] : CHUNK_BY_CHUNK) {
        expect(
          events.filter((event) => event.type === type).map(({ data }) => data.chunk),
          `${file.fileId} ${type}`,
        ).toEqual(Array.from({ length: chunks }, (_, chunk) => chunk))
      }
      const { policyRevision, ...sums } = fileSums(events)
      expect(sums, file.fileId).toEqual(expected(file, policyRevision, log))
    }

    /** Given up while rows were missing, and nothing was made of those that were there. */
    function checkLeftBehind(events: readonly LoggedEvent[]): void {
      const types = events.map(({ type }) => type)
      expect(types.at(-1)).toBe('PayrollFileFailed')
      expect(new Set(types.slice(1, -1))).toEqual(new Set(types.length > 2 ? ['PayrollRowsRecorded'] : []))
      expect(types.length - 2).toBeLessThan(events[0]!.data.chunk_count)
    }

    function checkSync(events: readonly LoggedEvent[], records: number): void {
      const [first, ...chunks] = events.map(({ data }) => data)
      expect(first).toMatchObject({ record_count: records, chunk_count: chunks.length })
      expect(chunks.map(({ chunk }) => chunk)).toEqual(chunks.map((_, at) => at))
      expect(chunks.reduce((sum, { changes }) => sum + changes.length, 0)).toBe(records)
    }

    // ---- read models

    async function checkReadModels(
      files: readonly AcknowledgedFile[],
      leftBehind: readonly string[],
      log: LoggedEvents,
    ): Promise<void> {
      const { rows } = await database.query(
        `SELECT file_id, status, error, row_count, green_rows, red_rows,
                total_auditable_wages_cents::float8 AS wages, total_premium_cents::float8 AS premium
         FROM read_model.payroll_files WHERE kind = 'payroll'`,
      )
      const shown = new Map(rows.map((row) => [row.file_id, row]))
      expect(shown.size).toBe(files.length + leftBehind.length)
      for (const id of leftBehind) expect(shown.get(id).status, id).toBe('failed')
      const streams = log.streams('payrollFile')
      for (const file of files) {
        const { policyRevision } = fileSums(streams.get(file.fileId)!)
        const { green, red, wageCents, premiumCents } = expected(file, policyRevision, log)
        expect(shown.get(file.fileId)).toEqual({
          file_id: file.fileId,
          status: 'NORMALIZED',
          error: null,
          row_count: file.rows,
          green_rows: green,
          red_rows: red,
          wages: wageCents,
          premium: premiumCents,
        })
      }
    }

    // ---- integration events

    /** Ids of events of which other systems hear. */
    function toPublish(log: LoggedEvents): string[] {
      return log.all
        .filter(
          ({ type, data }) =>
            INTEGRATION_SOURCES.includes(type) &&
            !(type === 'PayrollPremiumCalculated' && !data.last) &&
            !(type === 'PayrollFileProcessed' && !data.premium),
        )
        .map(({ id }) => id)
    }

    /** Every event that others hear of is in the stream; what is there more than once says the same. */
    async function checkPublished(log: LoggedEvents): Promise<void> {
      const worker = processes.running('worker')[0]!
      await until(
        async () =>
          /^compstream_integration_events_behind 0$/m.test((await send(`${worker.opsUrl}/metrics`)).text),
        300_000,
      )
      const connection = await connect({ servers: nats.url })
      const jetStream = connection.jetstream()
      const { state } = await (await jetStream.jetstreamManager()).streams.info(INTEGRATION_STREAM)
      const messages = await (await jetStream.consumers.get(INTEGRATION_STREAM)).consume()
      const published = new Map<string, string>()
      for await (const message of messages) {
        const id = message.headers!.get('Nats-Msg-Id')
        const text = message.string()
        expect(JSON.parse(text).id).toBe(id)
        expect(published.get(id) ?? text, id).toBe(text)
        published.set(id, text)
        if (message.seq >= state.last_seq) break
      }
      await connection.close()
      expect([...published.keys()].sort()).toEqual(toPublish(log).sort())
    }
  })
}

if (!natsCanBeKilled) {
  describe.skip('many processes, disturbed at random under load', () =>
    void test('need nats-server on the PATH', () => undefined))
} else {
  chaos('PostgreSQL')
  if (eventStore?.kind === 'program') chaos('EventStoreDB')
  else {
    describe.skip('many processes on EventStoreDB and NATS, disturbed at random under load', () =>
      void test('need eventstored on the PATH', () => undefined))
  }
}

// @module-tag long: integration/webhooks/webhook-deliveries has the deliveries, end-to-end/payments/links/payment-links-live a provider that was asked and did not answer
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { signal } from '../../infrastructure/embedded-postgres/processes.ts'
import { PostgresSecretVault } from '../../infrastructure/secrets/vault.ts'
import { databaseProcesses } from '../support/chaos.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { newClient } from '../support/intake.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { type NatsServer, natsSource, startNats } from '../support/nats.ts'
import { enableCheckout } from '../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts'
import { type RunningService, startProcess } from '../support/service.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { until } from '../support/workbench.ts'
import { InsistentCaller } from './insistent-caller.ts'
import { insistOnDatabase } from './insistent-database.ts'
import { LoggedEvents } from './logged-events.ts'
import { checkKeys, checkPayments, expectLastingState } from './payment-account.ts'
import { PaymentClients, type PaymentsKey } from './payment-clients.ts'
import { expectRebuildsEqual } from './rebuilds.ts'
import { checkSessions, SessionClients } from './session-clients.ts'
import { insistOnRestart, SupervisedProcesses } from './supervised-processes.ts'
import { acceptedBySubscription, checkAttempts, keyOf, owedBy, sentAndDue } from './webhook-account.ts'
import { WebhookListeners } from './webhook-listeners.ts'

/** How often something is killed; CHAOS_TIMES=120 for the long run. */
const TIMES = Number(process.env.CHAOS_TIMES ?? 7)
/** What is sent and what receivers answer; CHAOS_SEED repeats the choices of a run. */
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 2 ** 32)
/** Between two kills, 5 seconds on average: not always in the same place of a start. A single process is there again first. */
const BETWEEN_KILLS_MS = [1_000, 9_000] as const
/** Requests that are answered in between: on a slow machine too, it is the service that is tried, and not its start. */
const ANSWERS_BETWEEN = 5
/** Sales at a time, of each key. */
const SELLERS = 3
/** Kills go on until so many sales are done. */
const SALES_AT_LEAST = 10
/** What receivers let fail is tried a last time half a minute later. */
const TAIL_MS = 240_000
/** For one kill; a limit for what hangs. */
const LIMIT_MS = 60_000
const DRAIN_SECONDS = 240
const CHECKS_MS = 900_000

const eventStore = await findEventStore()

/** Something that is killed, and how. @returns what it was. */
type Kill = () => Promise<string>

/** An installation that sells and delivers under load while one after the other is killed. */
function chaos(engine: 'one embedded process' | 'three processes on EventStoreDB and NATS'): void {
  describe(`${engine}, killed again and again under load`, () => {
    const isEmbedded = engine === 'one embedded process'
    const masterKey = randomBytes(32)
    const env = {
      CLOCK: 'system',
      MASTER_KEY: masterKey.toString('base64'),
      OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    }
    const kills: string[] = []
    let dataDir: string
    let installation: Installation | null = null
    let store: EventStoreServer | null = null
    let nats: NatsServer | null = null
    let processes: SupervisedProcesses
    let receiver: Receiver

    beforeAll(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'compstream-payments-'))
      receiver = await startReceiver()
      if (isEmbedded) {
        processes = new SupervisedProcesses({ start: () => startProcess({ dataDir, env }) }, [
          'api,projector,worker',
        ])
      } else {
        ;[store, nats] = await Promise.all([startEventStore({ keepsData: true }), startNats()])
        installation = await createInstallation({ eventStoreUrl: store.url, natsUrl: nats.url, env })
        processes = new SupervisedProcesses(installation, ['api', 'projector', 'worker'])
      }
      await processes.start()
    }, 180_000)
    afterAll(async () => {
      await processes?.end()
      if (isEmbedded) await Promise.all(processes.running('api').map((one) => one.stop()))
      await installation?.stop()
      await Promise.all([receiver?.stop(), nats?.stop(), store?.stop()])
      await rm(dataDir, { recursive: true, force: true })
    })

    const api = (): RunningService => processes.running('api')[0]!

    /** Kills in turn until enough was sold, or clients gave up; then everything is there again. */
    async function disturb(
      random: SeededRandom,
      answered: () => number,
      isEnough: () => boolean,
      hasFailed: () => boolean,
    ): Promise<void> {
      const turn = killsInTurn()
      while (!hasFailed() && (kills.length < TIMES || !isEnough())) {
        const before = answered()
        await delay(random.between(...BETWEEN_KILLS_MS))
        await until(() => hasFailed() || answered() >= before + ANSWERS_BETWEEN)
        kills.push(await turn[kills.length % turn.length]!())
        if (isEmbedded) await processes.settle()
      }
      await processes.settle()
    }

    function killsInTurn(): readonly Kill[] {
      const inPlace = (place: number) => async () => {
        for (;;) {
          const killed = await processes.kill(place, 0)
          if (killed !== null) return killed
          // it has not come back from the last time
          await delay(100)
        }
      }
      if (isEmbedded) {
        return [
          inPlace(0),
          // with its database
          async () => {
            const database = await databaseProcesses(dataDir)
            const killed = inPlace(0)()
            for (const pid of database) signal(pid, 'SIGKILL')
            return `${await killed} and its database`
          },
        ]
      }
      const killStore = async () => {
        await store!.kill()
        await insistOnRestart(store!)
        return 'eventstored'
      }
      const [killApi, killProjector, killWorker] = [inPlace(0), inPlace(1), inPlace(2)]
      return [killApi, killProjector, killWorker, killApi, killProjector, killWorker, killStore]
    }

    const inDatabase = <T>(ask: (client: pg.Client) => Promise<T>) =>
      insistOnDatabase(() => installation?.databaseUrl ?? processes.running('api')[0]?.databaseUrl, ask)

    function secretsInVault(subscriptionId: string): Promise<readonly string[]> {
      return inDatabase(async (client) => {
        const vault = new PostgresSecretVault(
          client as unknown as pg.Pool,
          new MasterKeys([masterKey]),
          systemClock,
        )
        const { rows } = await client.query<{ ref: string }>(
          'SELECT ref FROM runtime.secrets WHERE ref LIKE $1',
          [`webhook-subscription/${subscriptionId}/%`],
        )
        const secrets: string[] = []
        for (const { ref } of rows) secrets.push((await vault.get(ref)) ?? '')
        return secrets
      })
    }

    /** How policies read when `payment.completed` arrives; null where nobody could be asked. */
    const readOnArrival = new Map<string, Promise<string | null>>()
    function heard({ headers, body }: ReceivedRequest): void {
      const eventId = headers['x-webhook-id']!
      if (headers['x-webhook-event'] !== 'payment.completed' || readOnArrival.has(eventId)) return
      const { policy_id } = JSON.parse(body.toString())
      const read = async () => {
        const answer = await fetch(`${api().opsUrl}/ops/v1/policies/${policy_id}`, {
          headers: { Authorization: `Bearer ${env.OPERATOR_TOKEN}` },
        })
        return answer.ok ? (JSON.parse(await answer.text()).data.status as string) : null
      }
      readOnArrival.set(
        eventId,
        read().catch(() => null),
      )
    }

    test(
      'nothing is lost, nothing is altered, everything is told once it is so',
      async () => {
        process.stderr.write(`chaos on ${engine}: CHAOS_TIMES=${TIMES} CHAOS_SEED=${SEED}\n`)
        const random = seededRandom(SEED)
        const caller = new InsistentCaller(() => processes.running('api'), random.branch())
        const keys = await seedKeys()
        const clients = new PaymentClients(caller, env.OPERATOR_TOKEN, random.branch())
        const listeners = new WebhookListeners({
          receiver,
          caller,
          random: random.branch(),
          secretsInVault,
          heard,
        })
        for (const key of keys.all) {
          for (const temper of ['steady', 'flaky', 'silent'] as const) {
            await listeners.register(key, temper, 'everything')
          }
        }
        await listeners.register(keys.ofOneCarrier, 'steady', 'of-one-carrier')
        await listeners.register(keys.all[0]!, 'flaky', 'refunds', ['payment.refunded'])

        const sessions = new SessionClients(caller, env.OPERATOR_TOKEN, random.branch())
        const running = Promise.all([
          clients.run(keys.all, SELLERS),
          sessions.run(keys.all[1]!, keys.seller, SELLERS),
          listeners.run(keys.all),
        ])
        let hasFailed = false
        running.catch(() => {
          hasFailed = true
        })
        await disturb(
          random.branch(),
          () => caller.account.answered,
          () => Math.min(clients.sales.length, sessions.sales.length) >= SALES_AT_LEAST,
          () => hasFailed,
        )
        clients.end()
        sessions.end()
        listeners.end()
        const failure = await running.then(
          () => null,
          (error: Error) => error,
        )
        if (process.env.CHAOS_COMPLAINTS) {
          for (const [line, times] of processes.complaints) process.stderr.write(`${times} x ${line}\n`)
        }
        const { account } = caller
        tell({
          engine,
          seed: SEED,
          kills: kills.length,
          killed: counted(kills),
          refused_starts: processes.refusedStarts,
          requests: account.requests,
          answered: account.answered,
          retries: Object.fromEntries(account.retries),
        })
        if (failure) throw failure

        const drain = () => operate(api(), 'POST', '/drain', { timeout_seconds: DRAIN_SECONDS })
        await drain()
        await until(async () => (await undelivered()) === 0, TAIL_MS)
        await drain()
        const log = await LoggedEvents.read({
          url: installation?.databaseUrl ?? api().databaseUrl,
          eventStoreUrl: store?.url,
        })
        expect(processes.endedByThemselves).toEqual([])
        expect(log.repeatedIds).toEqual([])
        expect(await operate(api(), 'POST', '/audit/verify')).toMatchObject({
          verified: true,
          events: log.all.length,
        })

        // what was acknowledged is there, once, and lasts
        checkPayments(log, clients)
        checkSessions(log, sessions)
        checkKeys(log, { lostSecrets: listeners.lostSecrets + sessions.lostTokens })
        await expectLastingState(api(), keys.all, clients, listeners)

        // what happened is told, once, and by then it is so
        const { told, due } = sentAndDue(log)
        expect(told).toEqual(due)
        const statuses = await Promise.all(readOnArrival.values())
        const readable = statuses.filter((status) => status !== null)
        expect(new Set(readable)).toEqual(new Set(['active']))

        // and delivered to whoever listened then, byte for byte
        const owed = owedBy(log)
        const attempts = checkAttempts(receiver.requests, owed, listeners.secrets)
        const accepted = acceptedBySubscription(listeners, owed)
        const missing = [...owed.deliveries.values()].filter(
          (one) => !accepted.has(keyOf(one)) && !owed.deleted.has(one.subscriptionId),
        )
        expect(missing).toEqual([])
        await expectRecords(owed)
        const repeats = [...attempts].flatMap(([key, made]) => {
          const [first] = accepted.get(key) ?? []
          return first === undefined ? [] : made.filter(({ at }) => at > first)
        })
        tell({
          engine,
          events: log.all.length,
          sales: clients.sales.length,
          paid: log.ofType('PaymentLinkPaid').length,
          refunds: log.ofType('PaymentLinkRefunded').length,
          subscriptions: log.ofType('SubscriptionStarted').length,
          charges: log.ofType('SubscriptionChargePaid').length,
          webhook_subscriptions: listeners.listeners.length,
          changes_of_them: log.all.filter(({ category }) => category === 'webhookSubscriptions').length,
          secrets_lost_with_a_process: listeners.lostSecrets,
          payment_sessions: log.streams('paymentSession').size,
          sales_by_sessions: counted(sessions.sales.map(({ status }) => status)),
          tokens_lost_with_a_process: sessions.lostTokens,
          webhook_events: told.length,
          deliveries: owed.deliveries.size,
          attempts: receiver.requests.length,
          let_fail: Object.fromEntries(listeners.refused),
          accepted_and_sent_again: repeats.length,
          policies_read_on_arrival: readable.length,
        })
        await expectRest()
      },
      TIMES * LIMIT_MS + 2 * DRAIN_SECONDS * 1000 + TAIL_MS + CHECKS_MS,
    )

    async function seedKeys(): Promise<{
      all: readonly PaymentsKey[]
      ofOneCarrier: PaymentsKey
      seller: SeededTenant
    }> {
      const seller = await seedTenant(api())
      await enableCheckout(api(), seller)
      const { tenantId, carrierId } = seller
      const other = { tenant_id: tenantId, name: 'Other Mutual', settlement_type: null }
      const { carrier_id: otherId } = await operate(api(), 'POST', '/carriers', other)
      const key = async (environment: PaymentsKey['environment'], ...carrierIds: string[]) => {
        const scope = carrierIds.length === 1 ? { carrier_ids: carrierIds } : {}
        const { headers } = await newClient(api(), tenantId, { environment, ...scope })
        return { environment, headers, carrierIds }
      }
      return {
        all: [await key('sandbox', carrierId, otherId), await key('live', carrierId, otherId)],
        ofOneCarrier: await key('live', otherId),
        seller,
      }
    }

    function undelivered(): Promise<number> {
      return inDatabase(async (client) => {
        const { rows } = await client.query<{ left: number }>(
          'SELECT count(*)::int AS left FROM webhooks.deliveries WHERE next_attempt_at IS NOT NULL',
        )
        return rows[0]!.left
      })
    }

    /** The records say what the receivers say. */
    async function expectRecords(owed: ReturnType<typeof owedBy>): Promise<void> {
      const rows = await inDatabase(
        async (client) =>
          (
            await client.query<{ event_id: string; subscription_id: string; status: string; body: string }>(
              `SELECT event_id, subscription_id, status, body
               FROM webhooks.deliveries JOIN webhooks.events USING (event_id) WHERE NOT test`,
            )
          ).rows,
      )
      expect(rows.length).toBe(owed.deliveries.size)
      for (const { event_id: eventId, subscription_id: subscriptionId, status, body } of rows) {
        const key = keyOf({ eventId, subscriptionId })
        expect(body, key).toBe(owed.deliveries.get(key)?.body)
        if (!owed.deleted.has(subscriptionId)) expect(status, key).toBe('delivered')
      }
    }

    /** Nothing is left to do, and the read models are what the log yields. */
    async function expectRest(): Promise<void> {
      const work = await operate(api(), 'GET', '/work')
      expect(work.counts).toMatchObject({ due: 0, leased: 0, held: 0, failed: 0 })
      expect(work.failed).toEqual([])
      for (const manager of work.process_managers) {
        expect(manager).toMatchObject({ state: 'active', problem: null })
      }
      await inDatabase((client) => expectRebuildsEqual(api(), client))
    }
  })
}

function counted(all: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) counts[one] = (counts[one] ?? 0) + 1
  return counts
}

function tell(figures: Record<string, unknown>): void {
  process.stderr.write(`${JSON.stringify(figures, null, 1)}\n`)
}

chaos('one embedded process')
if (eventStore?.kind === 'program' && natsSource !== null) chaos('three processes on EventStoreDB and NATS')
else {
  describe.skip('three processes on EventStoreDB and NATS, killed under load', () =>
    void test('need eventstored on the PATH, and NATS', () => undefined))
}

import { randomBytes, randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { CommandHandler } from '../application/commands/command-handler.ts'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { ProcessManagerRunner } from '../application/followers/runner.ts'
import type { Clock } from '../application/ports/clock.ts'
import { raiseWebhookEvent } from '../application/webhooks/raise.ts'
import { webhookDeliveries } from '../application/webhooks/webhook-deliveries-process-manager.ts'
import { aggregates } from '../domain/catalogue.ts'
import { isRejection } from '../domain/kernel/rejection.ts'
import { subscriptionsId, webhookSubscriptions } from '../domain/webhooks/webhook-subscriptions.ts'
import { systemClock } from '../infrastructure/clock/system-clock.ts'
import { MasterKeys } from '../infrastructure/crypto/master-keys.ts'
import { InProcessNotices } from '../infrastructure/messaging/in-process/notices.ts'
import { InProcessWorkQueue } from '../infrastructure/messaging/in-process/work-queue.ts'
import { HeldLeases } from '../infrastructure/ownership/leases.ts'
import { PostgresSecretVault } from '../infrastructure/secrets/vault.ts'
import { Metrics } from '../infrastructure/telemetry/metrics.ts'
import { PostgresDeliveryRecords } from '../infrastructure/webhooks/delivery-records.ts'
import { HttpsWebhookSender } from '../infrastructure/webhooks/sender.ts'
import { PostgresWorkStore } from '../infrastructure/work/work-store.ts'
import { openOurLog } from './our-log.ts'
import { RECEIVER_CERTIFICATE } from './peers/receiver-certificate.ts'

export const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`

/** Between two looks whether everything is done. */
const LOOK_AGAIN_MS = 50

/** What one event tells. */
export const PAYLOAD = {
  subscription_id: 'a'.repeat(24),
  payment_id: 'b'.repeat(24),
  installment_number: 3,
  amount_cents: 125_000,
  currency: 'usd' as const,
  paid_at: '2026-08-14T16:20:31.402Z',
} as const

/** A sender to this machine. @param isPlain without TLS. */
export function benchSender(isPlain: boolean): HttpsWebhookSender {
  return new HttpsWebhookSender({
    allowedRanges: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
    extraCa: RECEIVER_CERTIFICATE.cert,
    ...(isPlain ? { plainAgent: new Agent({ keepAlive: true, maxFreeSockets: 256 }) } : {}),
  })
}

/** A tenant's id. */
export function newTenant(): string {
  return randomBytes(12).toString('hex')
}

/**
 * Our deliveries, wired as a service has them that is alone with its log, on a database of their own.
 * @param options.clock default the machine's.
 */
export async function openOurDeliveries(
  url: string,
  options: { readonly isPlain: boolean; readonly clock?: Clock },
) {
  const { isPlain, clock = systemClock } = options
  const { log, database, close } = await openOurLog({ url }, { isExclusive: true })
  const registry = new EventRegistry(aggregates)
  const commands = new CommandHandler(log, registry, clock)
  const vault = new PostgresSecretVault(database.pool, new MasterKeys([Buffer.alloc(32, 1)]), clock)
  const own = newTenant()
  const contextOf = (tenantId: string) => ({
    actor: { type: 'operator', id: 'bench' } as const,
    tenantId,
    environment: 'live' as const,
    correlationId: 'bench',
    commandId: randomUUID(),
  })
  const store = new PostgresWorkStore(database.background)
  const notices = new InProcessNotices()
  const parts = { log, registry, commands, clock, vault, notices }
  const leases = await HeldLeases.open(database, { owner: randomBytes(8).toString('hex') })
  const runner = new ProcessManagerRunner(
    { ...parts, store, leases, queue: new InProcessWorkQueue(), report: () => undefined },
    [
      webhookDeliveries({
        ...parts,
        heard: new Metrics({ process: false }).webhooks,
        records: new PostgresDeliveryRecords(database.background),
        sender: benchSender(isPlain),
      }),
    ],
  )
  await vault.put('bench', SECRET)
  return {
    start: () => runner.start(),
    /** Registers a subscription at each target, a hundred of a tenant at the most. */
    async subscribe(targets: readonly string[], tenantId = own): Promise<void> {
      const outcome = await commands.execute(
        webhookSubscriptions,
        subscriptionsId(tenantId, 'live'),
        targets.map((target) => ({
          type: 'Register' as const,
          data: {
            subscription_id: randomBytes(12).toString('hex'),
            tenant_id: tenantId,
            environment: 'live',
            client_id: 'bench',
            url: target,
            events: ['installment.paid'],
            secret_ref: 'bench',
            at: 0,
            carrier_ids: 'all',
            employer_ids: 'all',
          },
        })),
        contextOf(tenantId),
      )
      if (isRejection(outcome)) throw new Error(outcome.message)
    },
    /** @returns the id of the event, when it is committed. */
    raise: (tenantId = own) =>
      raiseWebhookEvent(
        { commands },
        {
          type: 'installment.paid',
          of: { tenant_id: tenantId, environment: 'live', carrier_id: null, employer_id: null },
          payload: PAYLOAD,
        },
        contextOf(tenantId),
      ),
    /** Waits until everything is done that is due at the present time of the clock. */
    async settled(): Promise<void> {
      for (;;) {
        const head = await log.head()
        const positions = [...(await runner.positions()).values()]
        const { due, leased } = await store.counts({ now: clock.now() })
        if (positions.every((position) => position >= head) && due + leased === 0) return
        await delay(LOOK_AGAIN_MS)
      }
    },
    /** When the next piece of work is due, null when there is none. */
    nextDue: () => store.nextDue(clock.now()),
    /** To be called when the clock was moved. */
    wake: () => notices.wake('work'),
    async close() {
      await runner.stop()
      await leases.close()
      await close()
    },
  }
}

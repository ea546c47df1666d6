import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ProcessManagerRunner, RunnerOptions } from '../../application/followers/runner.ts'
import { advanceClock } from '../../application/operations/advance-clock.ts'
import type { WebhookSender } from '../../application/ports/webhooks.ts'
import { raiseWebhookEvent } from '../../application/webhooks/raise.ts'
import { webhookDeliveries } from '../../application/webhooks/webhook-deliveries-process-manager.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import {
  subscriptionOf,
  subscriptionsId,
  type WebhookScope,
  type WebhookSubscriptionCommand,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { PostgresSecretVault } from '../../infrastructure/secrets/vault.ts'
import { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { PostgresDeliveryRecords } from '../../infrastructure/webhooks/delivery-records.ts'
import { HttpsWebhookSender } from '../../infrastructure/webhooks/sender.ts'
import { authorityFile } from './certificates.ts'
import type { Workbench } from './workbench.ts'

/** The master key of the secrets that a {@link WebhookBench} keeps. */
const WEBHOOK_BENCH_KEY = Buffer.alloc(32, 7)

/** An id as the service makes them. */
export const newId = () => randomBytes(12).toString('hex')

/** Who vouches for receivers of tests, as PEM text. */
export const authority = () => readFileSync(authorityFile(), 'utf8')

/** Sends to receivers on this machine. @param options.attemptMs how long an answer is waited for, default as the service does. */
export function localSender(options: { readonly attemptMs?: number } = {}): HttpsWebhookSender {
  return new HttpsWebhookSender({
    ...options,
    allowedRanges: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
    extraCa: authority(),
  })
}

/** What webhooks are delivered with, on a workbench: subscriptions of one tenant, events, and the process manager. */
export class WebhookBench {
  readonly tenantId = newId()
  readonly records: PostgresDeliveryRecords
  readonly metrics = new Metrics({ process: false })
  readonly #bench: Workbench
  readonly #vault: PostgresSecretVault
  runner!: ProcessManagerRunner

  constructor(bench: Workbench) {
    this.#bench = bench
    this.records = new PostgresDeliveryRecords(bench.database.pool)
    this.#vault = new PostgresSecretVault(
      bench.database.pool,
      new MasterKeys([WEBHOOK_BENCH_KEY]),
      bench.clock,
    )
  }

  /** Starts delivering. */
  async deliver(
    sender: WebhookSender = localSender(),
    clock = this.#bench.clock,
    options: RunnerOptions = {},
  ): Promise<ProcessManagerRunner> {
    const { log, registry, commands, notices } = this.#bench
    const manager = webhookDeliveries({
      log,
      registry,
      commands,
      clock,
      notices,
      sender,
      vault: this.#vault,
      records: this.records,
      heard: this.metrics.webhooks,
    })
    this.runner = await this.#bench.run([manager], options)
    return this.runner
  }

  /** Registers a subscription. @returns its id. */
  async subscribe(
    url: string,
    options: { events?: readonly WebhookEventType[]; scope?: Partial<WebhookScope>; tenantId?: string } = {},
  ): Promise<string> {
    const subscription_id = newId()
    const secret_ref = await this.newSecret(subscription_id)
    await this.command({
      type: 'Register',
      data: {
        subscription_id,
        tenant_id: options.tenantId ?? this.tenantId,
        environment: 'live',
        client_id: 'client',
        url,
        secret_ref,
        at: this.#bench.clock.now(),
        events: [...(options.events ?? ['payment.completed', 'installment.paid'])],
        carrier_ids: 'all',
        employer_ids: 'all',
        ...(options.scope as object),
      },
    })
    return subscription_id
  }

  /** @returns where the secret lies: what {@link secretOf} a subscription gives. */
  async newSecret(subscriptionId: string): Promise<string> {
    const ref = `webhook/${subscriptionId}/${newId()}`
    await this.#vault.put(ref, `whsec_${randomBytes(32).toString('base64')}`)
    return ref
  }

  async secretOf(subscriptionId: string): Promise<string> {
    return (await this.#vault.get((await this.subscription(subscriptionId))!.secret_ref))!
  }

  async subscription(subscriptionId: string) {
    const id = subscriptionsId(this.tenantId, 'live')
    return subscriptionOf((await this.#bench.commands.load(webhookSubscriptions, id)).state, subscriptionId)
  }

  /** Changes a subscription of the tenant. */
  async command(command: WebhookSubscriptionCommand): Promise<void> {
    const tenantId = command.type === 'Register' ? command.data.tenant_id : this.tenantId
    const id = subscriptionsId(tenantId, 'live')
    const done = await this.#bench.commands.execute(webhookSubscriptions, id, command, this.#context())
    if (isRejection(done)) throw new Error(done.message)
  }

  verb(type: 'Enable' | 'Delete', subscriptionId: string): Promise<void> {
    return this.command({ type, subscriptionId, at: this.#bench.clock.now() })
  }

  disable(subscriptionId: string): Promise<void> {
    return this.command({ type: 'Disable', subscriptionId, by: 'partner', at: this.#bench.clock.now() })
  }

  /** Raises an event. @returns its id. */
  raise(
    options: {
      of?: string
      carrierId?: string | null
      employerId?: string | null
      tenantId?: string
      commandId?: string
    } = {},
  ): Promise<string> {
    const { of: subscription = newId(), tenantId: tenant_id = this.tenantId } = options
    const { carrierId: carrier_id = null, employerId: employer_id = null } = options
    return raiseWebhookEvent(
      this.#bench,
      {
        type: 'installment.paid',
        of: { tenant_id, environment: 'live', carrier_id, employer_id },
        payload: {
          subscription_id: subscription,
          payment_id: newId(),
          installment_number: 1,
          amount_cents: 12_345,
          currency: 'usd',
          paid_at: '2026-01-02T03:04:05.678Z',
        },
      },
      { ...this.#context(), ...(options.commandId === undefined ? {} : { commandId: options.commandId }) },
    )
  }

  /** Waits until nothing is due. */
  async settled(): Promise<void> {
    if (!(await this.#bench.drain(this.runner))) throw new Error('The deliveries did not come to rest')
  }

  /** Moves the clock on, with everything that falls due on the way. */
  async advance(seconds: number): Promise<void> {
    await this.pass(seconds, (ms) => this.#bench.drain(this.runner, ms))
    await this.settled()
  }

  /** Moves the clock on while nobody is at work. */
  async pass(seconds: number, settle: (ms: number) => Promise<boolean> = async () => true): Promise<void> {
    const { commands, clock, store: work, leases, notices } = this.#bench
    const parts = { commands, clock, work, leases, notices, settle, turnMs: 600_000 }
    const moved = await advanceClock(parts, { seconds }, this.#context())
    if (isRejection(moved)) throw new Error(moved.message)
  }

  #context() {
    return {
      actor: { type: 'operator', id: 'test' } as const,
      tenantId: this.tenantId,
      environment: 'live' as const,
      correlationId: 'c',
      commandId: randomUUID(),
    }
  }
}

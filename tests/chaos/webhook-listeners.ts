import { setTimeout as delay } from 'node:timers/promises'
import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../domain/webhooks/event-types.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { ReceivedRequest, Receiver, ReceiverAnswer } from '../support/webhook-receiver.ts'
import type { InsistentAnswer, InsistentCaller, InsistentRequest } from './insistent-caller.ts'
import type { PaymentsKey } from './payment-clients.ts'

/** How a receiver answers at times: the first part of its path. */
export type Temper = 'steady' | 'flaky' | 'silent'

/** A subscription that was registered, as its partner was answered at last. */
export interface Listener {
  readonly id: string
  readonly key: PaymentsKey
  path: string
  events: readonly WebhookEventType[]
  isDeleted: boolean
}

/** Attempts of a delivery that a receiver lets fail: the next ones are a second, 5 and 25 later. */
const MOST_FAILURES = 3
const FAILURES = [500, 503, 404, 302, 'reset'] as const
/** Subscriptions that stay of each partner who registers and deletes. */
const MOST_KEPT = 3

/** Which event was sent to which path. */
export function pairOf({ headers, path }: Pick<ReceivedRequest, 'headers' | 'path'>): string {
  return `${headers['x-webhook-id']} ${path}`
}

/** Partners who listen: their subscriptions, which some of them keep changing, and what their receivers answer. */
export class WebhookListeners {
  readonly listeners: Listener[] = []
  /** Secrets that were handed out or put into the vault, by subscription. */
  readonly secrets = new Map<string, Set<string>>()
  /** When deliveries were accepted, epoch milliseconds, by {@link pairOf}. */
  readonly accepted = new Map<string, number[]>()
  /** Attempts that were let fail, by how. */
  readonly refused = new Map<string, number>()
  /** Secrets whose answers were lost with a process. */
  lostSecrets = 0
  readonly #receiver: Receiver
  readonly #caller: InsistentCaller
  readonly #random: SeededRandom
  readonly #secretsInVault: (subscriptionId: string) => Promise<readonly string[]>
  readonly #failures = new Map<string, number>()
  #over = false

  /**
   * @param options.secretsInVault finds the secret of a subscription whose answer was lost with a process.
   * @param options.heard hears of each request before it is answered.
   */
  constructor(options: {
    readonly receiver: Receiver
    readonly caller: InsistentCaller
    readonly random: SeededRandom
    readonly secretsInVault: (subscriptionId: string) => Promise<readonly string[]>
    readonly heard: (request: ReceivedRequest) => void
  }) {
    const { receiver, caller, random, secretsInVault, heard } = options
    this.#receiver = receiver
    this.#caller = caller
    this.#random = random
    this.#secretsInVault = secretsInVault
    receiver.answerWith((request) => {
      heard(request)
      return this.#answer(request)
    })
  }

  /** Registers, changes and deletes subscriptions until {@link end} was called and everything is answered. */
  async run(keys: readonly PaymentsKey[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#keepChanging(key)))
  }

  /** From here on every receiver accepts everything. */
  end(): void {
    this.#over = true
  }

  /** @param name of the receiver, with which the request can be repeated. */
  async register(
    key: PaymentsKey,
    temper: Temper,
    name: string,
    events: readonly WebhookEventType[] = WEBHOOK_EVENT_TYPES,
  ): Promise<Listener> {
    const path = `/${temper}/${key.environment}-${name}`
    const { body } = await this.#ask(key, 'register', 'POST', '/webhooks', {
      body: { url: `${this.#receiver.url}${path}`, events },
      idempotencyKey: `register-${path}`,
    })
    const id = body.data?.id ?? body.id
    const listener = { id, key, path, events, isDeleted: false }
    this.listeners.push(listener)
    await this.#keepSecret(id, body.data?.secret)
    return listener
  }

  async #keepChanging(key: PaymentsKey): Promise<void> {
    const { between, pick } = this.#random
    const kept: Listener[] = []
    for (let n = 0; !this.#over; n += 1) {
      const listener = await this.register(key, pick(['steady', 'flaky']), `changing-${n}`, this.#someTypes())
      for (let step = 0; step < 4; step += 1) {
        await delay(between(200, 1_500))
        await this.#change(listener, `${n}-${step}`)
      }
      if (kept.length < MOST_KEPT) kept.push(listener)
      else await this.#delete(listener)
    }
  }

  async #change(listener: Listener, name: string): Promise<void> {
    const { id, key } = listener
    switch (this.#random.between(1, 4)) {
      case 1:
        listener.events = this.#someTypes()
        await this.#patch(listener, { events: listener.events })
        return
      case 2:
        listener.path = `${listener.path}-moved-${name}`
        await this.#patch(listener, { url: `${this.#receiver.url}${listener.path}` })
        return
      case 3:
        await this.#patch(listener, { status: 'disabled' })
        await delay(this.#random.between(100, 1_000))
        await this.#patch(listener, { status: 'active' })
        return
      default: {
        const { body } = await this.#ask(key, 'rotate', 'POST', `/webhooks/${id}/rotate`, {
          idempotencyKey: `rotate-${id}-${name}`,
        })
        await this.#keepSecret(id, body.data?.secret)
      }
    }
  }

  async #patch({ id, key }: Listener, body: unknown): Promise<void> {
    await this.#ask(key, 'change', 'PATCH', `/webhooks/${id}`, { body })
  }

  async #delete(listener: Listener): Promise<void> {
    const { id, key } = listener
    // an earlier try has done it
    await this.#ask(key, 'delete', 'DELETE', `/webhooks/${id}`, { isAnswer: (status) => status === 404 })
    listener.isDeleted = true
  }

  #someTypes(): WebhookEventType[] {
    const some = WEBHOOK_EVENT_TYPES.filter(() => this.#random.between(1, 3) > 1)
    return some.length > 0 ? some : ['payment.completed']
  }

  /** An answer that was lost took the secret with it: a partner would rotate it, the vault knows it. */
  async #keepSecret(id: string, secret: string | undefined): Promise<void> {
    const secrets = this.secrets.get(id) ?? new Set()
    this.secrets.set(id, secrets)
    if (secret === undefined) this.lostSecrets += 1
    for (const one of secret === undefined ? await this.#secretsInVault(id) : [secret]) secrets.add(one)
  }

  #ask(
    { headers }: PaymentsKey,
    kind: string,
    method: string,
    path: string,
    options: Pick<InsistentRequest, 'body' | 'isAnswer'> & { readonly idempotencyKey?: string },
  ): Promise<InsistentAnswer> {
    const { body, idempotencyKey, isAnswer = handedOut } = options
    return this.#caller.ask(kind, {
      method,
      to: ({ paymentsUrl }) => `${paymentsUrl}/api/v1${path}`,
      isAnswer,
      ...(body !== undefined && { body }),
      headers: { ...headers, ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }) },
    })
  }

  #answer(request: ReceivedRequest): ReceiverAnswer {
    const pair = pairOf(request)
    const failed = this.#failures.get(pair) ?? 0
    const how = this.#over || failed >= MOST_FAILURES ? null : this.#failure(request.path)
    if (how === null) {
      this.accepted.set(pair, [...(this.accepted.get(pair) ?? []), request.at])
      return 200
    }
    this.#failures.set(pair, failed + 1)
    this.refused.set(String(how), (this.refused.get(String(how)) ?? 0) + 1)
    return how
  }

  #failure(path: string): ReceiverAnswer | null {
    const { between, pick } = this.#random
    switch (path.split('/')[1] as Temper) {
      case 'steady':
        return null
      case 'flaky':
        return between(1, 4) === 1 ? pick(FAILURES) : null
      case 'silent':
        return between(1, 12) === 1 ? 'silent' : null
    }
  }
}

/** The secret was handed out to an earlier try. */
function handedOut(status: number, body: { readonly id?: string }): boolean {
  return status === 409 && body.id !== undefined
}

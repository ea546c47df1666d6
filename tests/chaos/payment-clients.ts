import { setTimeout as delay } from 'node:timers/promises'
import { intakeBody } from '../support/intake.ts'
import { linkBody } from '../support/payments.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { InsistentAnswer, InsistentCaller, InsistentRequest } from './insistent-caller.ts'

/** A key of the payments API, for everything of a tenant in its environment. */
export interface PaymentsKey {
  readonly environment: 'live' | 'sandbox'
  readonly headers: Record<string, string>
  /** Carriers for which it sells. */
  readonly carrierIds: readonly string[]
}

/** A policy that was taken in and a link for it, as its partner was answered at last. */
export interface Sale {
  readonly name: string
  readonly environment: PaymentsKey['environment']
  readonly employerId: string
  readonly policyId: string
  readonly linkId: string
  readonly status: 'paid' | 'cancelled' | 'expired'
  readonly isPlan: boolean
  /** Cents, oldest first. */
  readonly refunds: readonly number[]
}

/** A subscription that was asked for, as its partner was answered at last. */
export interface Subscribed {
  readonly environment: PaymentsKey['environment']
  readonly id: string
  readonly isCancelled: boolean
  /** Numbers of the charges that were shown as paid. */
  readonly paid: readonly number[]
}

const REASONS = ['duplicate', 'fraudulent', 'requested_by_customer', undefined] as const

/** Partners of a tenant who sell policies: each sale goes on, one request after the other, until every step is answered. */
export class PaymentClients {
  readonly sales: Sale[] = []
  readonly subscriptions: Subscribed[] = []
  readonly #caller: InsistentCaller
  readonly #operator: Record<string, string>
  readonly #random: SeededRandom
  #over = false

  constructor(caller: InsistentCaller, operatorToken: string, random: SeededRandom) {
    this.#caller = caller
    this.#operator = { Authorization: `Bearer ${operatorToken}` }
    this.#random = random
  }

  /**
   * Sells until {@link end} was called and everything is answered.
   * @param sellers at a time, for each key.
   * @throws when something is refused for good.
   */
  async run(keys: readonly PaymentsKey[], sellers: number): Promise<void> {
    await Promise.all(
      keys.flatMap((key) =>
        Array.from({ length: sellers }, async (_, seller) => {
          for (let n = 0; !this.#over; n += 1) await this.#sell(key, `${key.environment}-${seller}-${n}`)
        }),
      ),
    )
  }

  end(): void {
    this.#over = true
  }

  async #sell(key: PaymentsKey, name: string): Promise<void> {
    const { between, pick } = this.#random
    const { environment } = key
    const isSandbox = environment === 'sandbox'
    const carrierId = pick(key.carrierIds)
    const intake = intakeBody({
      idempotency_key: name,
      carrier_id: carrierId,
      policy: { effective_date: new Date().toISOString().slice(0, 10) },
    })
    const taken = await this.#partner(key, 'intake', 'POST', '/intake/policies', intake)
    const { employer_id: employerId, policy_id: policyId } = taken.body.data

    const isPlan = between(1, 4) === 1
    const link = linkBody(
      { employerId, carrierId, policyId },
      {
        premium_cents: between(10_000, 90_000),
        fee_cents: pick([0, 500]),
        metadata: { sale: name },
        customer: { name: 'Tidewater Joinery LLC', email: `${name}@payer.example` },
        ...(isPlan && { payment_type: 'DIRECT_BILLING', payment_context: 'down_payment' }),
        ...(isPlan && { total_installments: 6, down_payment_months: 2 }),
      },
    )
    const created = await this.#partner(key, 'link', 'POST', '/payment-links', link, `link-${name}`)
    const { _id: linkId, link_amount_cents } = created.body.data
    const sold = (status: Sale['status'], refunds: readonly number[] = []) =>
      this.sales.push({ name, environment, employerId, policyId, linkId, status, isPlan, refunds })

    const fate = between(1, 10)
    if (fate === 1) {
      await this.#partner(key, 'cancel link', 'DELETE', `/payment-links/${linkId}`)
      sold('cancelled')
      return
    }
    if (fate === 2 && isSandbox) {
      await this.#partner(key, 'expire', 'POST', `/sandbox/payment-links/${linkId}/expire`, {})
      sold('expired')
      return
    }
    if (fate <= 4) {
      if (isSandbox) await this.#partner(key, 'decline', 'POST', `/sandbox/payment-links/${linkId}/fail`, {})
      else await this.#simulate(linkId, 'decline')
    }
    if (isSandbox && !isPlan) {
      const simulate = () =>
        this.#partner(key, 'complete', 'POST', `/payment-links/${linkId}/simulate-completion`, {})
      await simulate()
      if (fate === 5) await simulate()
    } else await this.#simulate(linkId, 'succeed')
    await this.#pause(200)

    const refunds: number[] = []
    for (let n = between(0, 2); n > 0; n -= 1) {
      const amount_cents = between(1, Math.floor(link_amount_cents / 3))
      const refund = { amount_cents, reason: pick(REASONS) }
      const path = `/payment-links/${linkId}/refund`
      const { body } = await this.#partner(key, 'refund', 'POST', path, refund, `refund-${name}-${n}`)
      refunds.push(amount_cents)
      // what is answered counts what was answered before
      if (body.data.refunded_cents !== refunds.reduce((sum, one) => sum + one)) {
        throw new Error(`${refunds} were refunded, and ${body.data.refunded_cents} was answered`)
      }
    }
    sold('paid', refunds)
    if (between(1, 3) === 1) await this.#subscribe(key, name, { employerId, carrierId, policyId })
    await this.#pause(300)
  }

  async #subscribe(
    key: PaymentsKey,
    name: string,
    of: { readonly employerId: string; readonly carrierId: string; readonly policyId: string },
  ): Promise<void> {
    const { between } = this.#random
    const { environment } = key
    const body = {
      employer_id: of.employerId,
      carrier_id: of.carrierId,
      policy_id: of.policyId,
      amount_cents: between(1_000, 9_000),
      payment_method_id: 'pm_card_visa',
      metadata: { sale: name },
    }
    const started = await this.#partner(key, 'subscribe', 'POST', '/subscriptions', body, `sub-${name}`)
    const { _id: id } = started.body.data
    const paid = new Set<number>()
    for (let n = between(0, 3); n > 0; n -= 1) {
      const fails = between(1, 4) === 1
      if (environment === 'live') {
        await this.#simulate(id, fails ? 'decline' : 'succeed')
        continue
      }
      const path = `/sandbox/subscriptions/${id}/${fails ? 'fail' : 'charge'}`
      const { body } = await this.#partner(key, 'charge', 'POST', path, {}, null, isConflict)
      for (const { status, installment_number } of body.data?.scheduled_payments ?? []) {
        if (status === 'paid') paid.add(installment_number)
      }
    }
    const isCancelled = between(1, 2) === 1
    if (isCancelled) await this.#partner(key, 'cancel subscription', 'DELETE', `/subscriptions/${id}`)
    this.subscriptions.push({ environment, id, isCancelled, paid: [...paid] })
  }

  /** What a payer does, or the card processor. It carries no key: what was not answered may be done twice. */
  async #simulate(id: string, what: 'succeed' | 'decline'): Promise<void> {
    await this.#caller.ask('play', {
      to: ({ opsUrl }) => `${opsUrl}/ops/v1/card-processor/${id}/${what}`,
      headers: this.#operator,
      body: {},
      isAnswer: isConflict,
    })
  }

  #partner(
    { headers }: PaymentsKey,
    kind: string,
    method: string,
    path: string,
    body?: unknown,
    idempotencyKey: string | null = null,
    isAnswer?: InsistentRequest['isAnswer'],
  ): Promise<InsistentAnswer> {
    return this.#caller.ask(kind, {
      method,
      to: ({ paymentsUrl }) => `${paymentsUrl}/api/v1${path}`,
      body,
      headers: { ...headers, ...(idempotencyKey !== null && { 'Idempotency-Key': idempotencyKey }) },
      ...(isAnswer && { isAnswer }),
    })
  }

  #pause(most: number): Promise<void> {
    return delay(this.#random.between(0, most))
  }
}

/** Nothing is charged any more: payments kept failing. */
function isConflict(status: number, body: { readonly message?: string }): boolean {
  return status === 409 && /canceled/.test(body.message ?? '')
}

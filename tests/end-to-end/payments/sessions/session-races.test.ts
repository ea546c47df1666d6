import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allEvents } from '../../../support/core.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { webhookEvents } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'
import type { RunningService } from '../../../support/service.ts'
import { SoldSession } from '../../../support/session-payer.ts'
import { Refusal, type StripeAct } from '../../../support/stripe-answers.ts'
import { StripeStandIn } from '../../../support/stripe-stand-in.ts'
import type { Json } from '../../../support/subscriptions.ts'

/** Sales at a time; each is paid and ended by several at once. */
const SALES = 12
/** Milliseconds that anything may take on its way, at the most. */
const LONGEST = 60

let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  stripe = await StripeStandIn.start()
  service = await stripe.startService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})
afterAll(() => stripe?.stop())

/** A sale: the session that was sold first, and those that replaced it. */
class Sale {
  readonly sessions: SoldSession[]
  readonly secrets: string[] = []
  readonly #random: SeededRandom
  readonly #heardLater: StripeAct[][]

  constructor(first: SoldSession, random: SeededRandom, heardLater: StripeAct[][]) {
    this.sessions = [first]
    this.#random = random
    this.#heardLater = heardLater
  }

  /** Everybody at once does what they please. */
  async race(): Promise<void> {
    const { between, pick } = this.#random
    const actors = [this.#card, this.#card, this.#bank, this.#cancel, this.#reissue]
    const chosen = Array.from({ length: between(2, 5) }, () => pick(actors))
    await Promise.all(
      chosen.map(async (act) => {
        await this.#pause()
        await act.call(this, this.sessions.at(-1)!)
      }),
    )
  }

  /** A tab in which somebody pays by card, or by a bank debit of the card processor, perhaps after a decline. */
  async #card(session: SoldSession): Promise<void> {
    const { between } = this.#random
    const { status, body } = await session.checkout()
    expect([200, 409]).toContain(status)
    if (status === 409) return
    const secret = body.data.client_secret
    this.secrets.push(secret)
    await this.#pause()
    try {
      if (between(1, 3) === 1) await this.#hear(stripe.atCheckout.decline(secret))
      await this.#pause()
      const isByBank = between(1, 3) === 1
      await this.#hear(isByBank ? stripe.atCheckout.payByBank(secret) : stripe.atCheckout.payByCard(secret))
    } catch (error) {
      // the form says that nobody can pay there any more
      if (!(error instanceof Refusal)) throw error
    }
  }

  async #bank(session: SoldSession): Promise<void> {
    expect([200, 409]).toContain((await session.payFromBank()).status)
  }

  async #cancel(session: SoldSession): Promise<void> {
    expect([200, 409]).toContain((await session.cancel()).status)
  }

  async #reissue(session: SoldSession): Promise<void> {
    const { status } = await session.reissue().then(async (answer) => {
      if (answer.status === 201) this.sessions.push(new SoldSession(service, tenant, answer.body.data))
      return answer
    })
    expect([201, 409]).toContain(status)
    if (status === 201) await this.#card(this.sessions.at(-1)!)
  }

  /** Stripe tells at once, or later and in any order. */
  async #hear(acts: readonly StripeAct[]): Promise<void> {
    if (this.#random.between(1, 2) === 1) this.#heardLater.push(...acts.map((act) => [act]))
    else await stripe.tell(acts)
  }

  #pause(): Promise<void> {
    return delay(this.#random.between(0, LONGEST))
  }
}

// one seed in the gate, further ones at night
for (const [seed, tags] of [
  [1, []],
  [2, ['long']],
  [3, ['long']],
  [4, ['long']],
] as const)
  test(`nobody is charged twice, and everybody is told the truth (${seed})`, {
    tags: [...tags],
  }, async () => {
    const random = seededRandom(seed)
    stripe.meanwhile = () => delay(random.between(0, LONGEST))
    const heardLater: StripeAct[][] = []
    const sold = Array.from({ length: SALES }, () => SoldSession.sell(service, tenant))
    const sales = (await Promise.all(sold)).map((one) => new Sale(one, random.branch(), heardLater))
    await Promise.all(sales.map((sale) => sale.race()))
    stripe.meanwhile = null
    for (const acts of shuffled(heardLater, random)) await stripe.tell(acts)
    // bank debits come to their end days later
    const secrets = [...new Set(sales.flatMap((sale) => sale.secrets))]
    for (const secret of secrets) {
      const { status, payment_status, payment_intent } = stripe.atCheckout.of(secret)
      const isWaiting = status === 'complete' && payment_status === 'unpaid' && payment_intent !== null
      if (!isWaiting) continue
      await stripe.tell(stripe.atCheckout.settle(secret, random.pick(['succeeded', 'failed'])))
    }
    await operate(service, 'POST', '/drain')

    const debitIds = (await allEvents(service, 'BankDebitCreated')).map(({ data }) => data as Json)
    const told = await webhookEvents(service, tenant.tenantId)
    for (const sale of sales) {
      let charges = 0
      for (const session of sale.sessions) {
        const page = await session.page()
        const { status } = await session.shown()
        expect(page.status).toBe(status)
        const taken = [...stripe.atCheckout.payments.values()].filter(
          (one) => one.metadata.session_id === session.id && one.status === 'succeeded',
        )
        const debits = debitIds.filter((one) => one.payment_session_id === session.id)
        charges += taken.length + debits.length
        const completed = told.filter(
          ([type, payload]) => type === 'payment.completed' && payload.payment_session_id === session.id,
        )
        expect([session.id, completed.length]).toEqual([session.id, taken.length])
        if (taken.length > 0) expect([session.id, status]).toEqual([session.id, 'paid'])
        else if (debits.length > 0) expect(['scheduled', 'cancelled']).toContain(status)
        else expect(['pending', 'opened', 'cancelled']).toContain(status)
      }
      const [{ id }] = sale.sessions as [SoldSession]
      expect([id, charges]).toEqual([id, Math.min(charges, 1)])
      // whoever still has a secret can pay only where the session waits for it
      const open = sale.secrets.filter((secret) => stripe.atCheckout.of(secret).status === 'open')
      for (const secret of open) {
        const { session_id } = stripe.atCheckout.of(secret).metadata!
        const session = sale.sessions.find((one) => one.id === session_id)!
        expect(['pending', 'opened']).toContain(await session.status())
      }
    }
    const kinds = (await operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}`)).map(
      ({ kind }: Json) => kind,
    )
    expect(kinds).toEqual([])
  })

function shuffled<One>(all: readonly One[], { between }: SeededRandom): readonly One[] {
  const left = [...all]
  return all.map(() => left.splice(between(0, left.length - 1), 1)[0]!)
}

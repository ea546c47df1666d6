import { expect } from 'vitest'
import { BANK_ACCOUNT, sessionBody, tokenOf } from '../support/payment-sessions.ts'
import type { SeededTenant } from '../support/seed.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { InsistentAnswer, InsistentCaller, InsistentRequest } from './insistent-caller.ts'
import type { LoggedEvents } from './logged-events.ts'
import type { PaymentsKey } from './payment-clients.ts'

type Seller = Pick<SeededTenant, 'employerId' | 'carrierId' | 'policyId'>
type Json = ReturnType<typeof JSON.parse>

/** A sale by payment sessions, as its partner was answered at last. */
export interface SessionSale {
  readonly name: string
  /** The session that was created, and those that replaced it. */
  readonly ids: readonly string[]
  /** Of the last one. */
  readonly status: 'paid' | 'scheduled' | 'cancelled'
}

/** A session as its partner knows it; who missed the answer that has its token issues it anew. */
interface Known {
  readonly id: string
  readonly token: string | null
}

/** Partners who sell by payment sessions, and their payers: each sale goes on until every step is answered. */
export class SessionClients {
  readonly sales: SessionSale[] = []
  /** Answers with a token that were lost with a process. */
  lostTokens = 0
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
   * @param sellers at a time. @throws when something is refused for good.
   */
  async run(key: PaymentsKey, of: Seller, sellers: number): Promise<void> {
    await Promise.all(
      Array.from({ length: sellers }, async (_, seller) => {
        for (let n = 0; !this.#over; n += 1) await this.#sell(key, of, `session-${seller}-${n}`)
      }),
    )
  }

  end(): void {
    this.#over = true
  }

  async #sell(key: PaymentsKey, of: Seller, name: string): Promise<void> {
    const { between } = this.#random
    const body = sessionBody(of, {
      amount_cents: between(100, 90_000),
      description: name,
      deliver: { email: true },
      customer: { name: 'Tidewater Joinery LLC', email: `${name}@payer.example` },
    })
    const created = await this.#partner(key, 'session', 'POST', '', body, name, isNamed)
    let known = this.#known(created)
    const ids = [known.id]
    const issueAnew = async () => {
      known = await this.#reissue(key, known.id)
      ids.push(known.id)
    }
    while (known.token === null) await issueAnew()
    if (between(1, 4) === 1) {
      await this.#checkout(known)
      await issueAnew()
      while (known.token === null) await issueAnew()
    }
    const status = await this.#end(key, known)
    this.sales.push({ name, ids, status })
  }

  /** What becomes of a session. */
  async #end(key: PaymentsKey, known: Known): Promise<SessionSale['status']> {
    const { between } = this.#random
    const fate = between(1, 6)
    if (fate > 1) await this.#checkout(known)
    if (fate <= 2) {
      await this.#cancel(key, known)
      return 'cancelled'
    }
    if (fate === 3) {
      await this.#payFromBank(known)
      return 'scheduled'
    }
    if (fate === 4) await this.#simulate(known, 'decline')
    if (fate <= 5) {
      await this.#simulate(known, 'succeed')
      return 'paid'
    }
    // everybody at once: one of them wins
    await Promise.all([this.#simulate(known, 'succeed'), this.#payFromBank(known), this.#cancel(key, known)])
    const { body } = await this.#partner(key, 'show session', 'GET', `/${known.id}`)
    return body.data.status
  }

  async #reissue(key: PaymentsKey, id: string): Promise<Known> {
    return this.#known(
      await this.#partner(key, 'reissue', 'POST', `/${id}/reissue`, {}, `reissue-${id}`, isNamed),
    )
  }

  #known({ status, body }: InsistentAnswer): Known {
    if (status === 201) return { id: body.data.id, token: tokenOf(body.data) }
    this.lostTokens += 1
    return { id: body.replaced_by ?? body.id, token: null }
  }

  async #cancel(key: PaymentsKey, { id }: Known): Promise<void> {
    await this.#partner(key, 'cancel session', 'DELETE', `/${id}`, undefined, null, is('is paid'))
  }

  async #checkout(known: Known): Promise<void> {
    await this.#payer(known, 'checkout', {})
  }

  /** The debit may be arranged already, by a try whose answer was lost. */
  async #payFromBank(known: Known): Promise<void> {
    await this.#payer(known, 'bank-debit', BANK_ACCOUNT, is('scheduled|cancelled|is paid'))
  }

  async #payer(
    { token }: Known,
    what: 'checkout' | 'bank-debit',
    body: unknown,
    isAnswer?: InsistentRequest['isAnswer'],
  ): Promise<void> {
    await this.#caller.ask(what, {
      to: ({ paymentsUrl }) => `${paymentsUrl}/public/payment-sessions/${token}/${what}`,
      headers: {},
      body,
      ...(isAnswer && { isAnswer }),
    })
  }

  /** What a payer does at the checkout. It carries no key: what was not answered may be done twice. */
  async #simulate({ id }: Known, what: 'succeed' | 'decline'): Promise<void> {
    await this.#caller.ask('play session', {
      to: ({ opsUrl }) => `${opsUrl}/ops/v1/card-processor/${id}/${what}`,
      headers: this.#operator,
      body: {},
      isAnswer: is('scheduled|cancelled|closed'),
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
      to: ({ paymentsUrl }) => `${paymentsUrl}/api/v1/payment-sessions${path}`,
      body,
      headers: { ...headers, ...(idempotencyKey !== null && { 'Idempotency-Key': idempotencyKey }) },
      ...(isAnswer && { isAnswer }),
    })
  }
}

/** The answer was lost, with the token in it: what was made is named. */
function isNamed(status: number, body: Json): boolean {
  return status === 409 && (body.replaced_by ?? body.id) !== undefined
}

/** How things stand already. */
function is(words: string) {
  return (status: number, body: Json) => status === 409 && new RegExp(words).test(body.message ?? '')
}

/** Steps that would say that something was charged twice, or could not be done. */
const NEVER = ['PaymentSessionPaidAgain', 'PaymentSessionAmountDiffered', 'AlertRaised']

/** Holds the log against what partners were answered: every session is there, and every sale is charged once at the most. */
export function checkSessions(log: LoggedEvents, { sales }: Pick<SessionClients, 'sales'>): void {
  for (const type of NEVER) expect(log.ofType(type), type).toEqual([])
  const streams = log.streams('paymentSession')
  expect([...streams.keys()].sort()).toEqual(sales.flatMap(({ ids }) => ids).sort())
  const debits = log.ofType('BankDebitCreated').map(({ data }) => data.payment_session_id)
  for (const { name, ids, status } of sales) {
    const ofType = (id: string, type: string) => streams.get(id)!.filter((event) => event.type === type)
    const paid = ids.flatMap((id) => ofType(id, 'PaymentSessionPaid'))
    const charges = {
      paid: paid.length,
      late: paid.filter(({ data }) => data.late).length,
      debited: debits.filter((id) => ids.includes(id)).length,
    }
    const last = ids.at(-1)!
    // one that is cancelled may have been scheduled before
    const isDebited = ofType(last, 'PaymentSessionDebitArranged').length > 0
    expect(charges, name).toEqual({ paid: status === 'paid' ? 1 : 0, late: 0, debited: isDebited ? 1 : 0 })
    expect(status === 'paid' && isDebited, name).toBe(false)
    if (status === 'scheduled') expect(isDebited, name).toBe(true)
    for (const id of ids.slice(0, -1)) expect(ofType(id, 'PaymentSessionReplaced'), name).toHaveLength(1)
  }
}

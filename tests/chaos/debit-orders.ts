import { expect } from 'vitest'
import { employeeRecord, report } from '../support/core.ts'
import { partner } from '../support/payments.ts'
import { type Answer, askOperator, operate } from '../support/seed.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import { dayAfter, newYorkDay, slotAt } from './bank-calendar.ts'
import { ROUTINGS } from './bank-word.ts'
import type { BookAccount, BookEmployer, BookPolicy, Debit, DebitBook, LegacyRecord } from './debit-book.ts'
import type { MortalService } from './mortal-service.ts'

type Json = ReturnType<typeof JSON.parse>

/** Something that a partner or an operator asks for, the same however often it is sent. */
export interface Order {
  send(): Promise<Json>
  /** Takes it into the book. @param answer the last one. */
  book(answer: Json): void
}

/** Rates of policies are 2.50 for each 100. */
const dollarsOfWages = (premiumCents: number) => (premiumCents * 2) / 5
const LEGACY_STATUSES = [
  ...['pending', 'at_sb', 'file_transmitted', 'sb_remit', 'legacy_collected'],
  ...['returned', 'failed', 'canceled'],
] as const

/** What partners ask for, by chance. Amounts are cents, moments epoch milliseconds. */
export class DebitOrders {
  readonly employers: BookEmployer[] = []
  readonly #mortal: MortalService
  readonly #book: DebitBook
  readonly #random: SeededRandom
  #serial = 0

  constructor(mortal: MortalService, book: DebitBook, random: SeededRandom) {
    this.#mortal = mortal
    this.#book = book
    this.#random = random
  }

  /** What is asked for on a day. @param most debits by calls at the most; of the others there are less. */
  ofDay(now: number, most: number): readonly Order[] {
    const { between, pick } = this.#random
    const orders: Order[] = []
    for (let left = between(Math.ceil(most / 2), most); left > 0; left -= 1) {
      const employer = pick(this.#live())
      const farAbove = 12 * employer.usualCents
      const isUnusual = this.#chance(7) && this.#book.isFarAboveMean(employer, farAbove, now)
      orders.push(this.#debit(employer, now, isUnusual ? { cents: farAbove, isUnusual } : {}))
    }
    for (let left = between(0, Math.ceil(most / 4)); left > 0; left -= 1) {
      orders.push(this.#collection(pick(this.#live()), now))
    }
    const payers = this.#live().filter(
      ({ accounts }) => accounts.at(-1)!.isActive && !accounts.at(-1)!.isDisabled,
    )
    for (let left = between(0, 2); left > 0; left -= 1) {
      orders.push(...this.#payroll(pick(payers), now, this.#chance(12)))
    }
    if (this.#chance(25)) orders.push(...this.#collectedTwice(now))
    const [sandboxed] = this.employers.filter(({ environment }) => environment === 'sandbox')
    if (this.#chance(20)) orders.push(this.#debit(sandboxed!, now))
    return orders
  }

  /** Calls some debits off, also some for which it is too late. */
  async callOff(now: number): Promise<void> {
    for (const debit of this.#book.debits) {
      const isOpen = this.#book.isOpen(debit, now)
      if (debit.standing === 'pending' || this.#random.between(1, 1_000) > (isOpen ? 20 : 2)) continue
      const { status } = await this.#tried(debit.employer, 'POST', `/ach/debits/${debit.id}/cancel`, {})
      expect(status).toBe(isOpen || debit.standing === 'cancelled' ? 200 : 409)
      if (isOpen) debit.standing = 'cancelled'
    }
  }

  /** Opens accounts where one cannot be debited any more, and tells what was paid to verify them. */
  async seeToAccounts(now: number): Promise<void> {
    for (const employer of this.employers) {
      const account = employer.accounts.at(-1)!
      const { id, credits, isDisabled, isActive, isWritable } = account
      const hasFailed = this.#book.debits.some(
        (debit) => debit.account === account && debit.standing === 'failed',
      )
      if (isDisabled || (!isWritable && hasFailed)) {
        const opened = await this.openAccount(employer)
        await this.#asked(employer, 'POST', `/bank-accounts/ach/${opened.id}/micro-deposits`, {})
        opened.credits = { batch: slotAt(now, null).batch, cents: [] }
      } else if (!isActive && credits?.cents.length === 2 && this.#chance(50)) {
        const amounts = { amounts_cents: credits.cents }
        const { status } = await this.#asked(employer, 'POST', `/bank-accounts/ach/${id}/verify`, amounts)
        expect(status).toBe('active')
        account.isActive = true
      }
    }
  }

  /** Policies are cancelled, and billed otherwise for a while; what the legacy service collected comes back. */
  async seeToPolicies(): Promise<void> {
    const { service } = this.#mortal
    // payroll is reported for the first ones
    for (const policy of this.#live().flatMap(({ policies }) => policies.slice(1))) {
      if (policy.isCancelled) continue
      if (this.#chance(policy.isBilledDirectly ? 20 : 1)) {
        policy.isBilledDirectly = !policy.isBilledDirectly
        const billing_type = policy.isBilledDirectly ? 'DIRECT_BILLING' : 'PAY_AS_YOU_GO'
        await operate(service, 'PATCH', `/policies/${policy.id}`, { billing_type })
      } else if (this.#random.between(1, 600) === 1) {
        await operate(service, 'POST', `/policies/${policy.id}/cancel`, { reason: 'Sold' })
        policy.isCancelled = true
      }
    }
    const landed = this.#book.legacy.filter(({ status }) => status === 'sb_remit' || status === 'at_sb')
    if (landed.length > 0 && this.#chance(10)) await this.#returnLegacy(this.#random.pick(landed))
  }

  #live(): readonly BookEmployer[] {
    return this.employers.filter(({ environment }) => environment === 'live')
  }

  #chance(percent: number): boolean {
    return this.#random.between(1, 100) <= percent
  }

  /** What the legacy service collects as well: it is known before the debit is asked for, or before it goes to the bank. */
  #collectedTwice(now: number): readonly Order[] {
    const { between, pick } = this.#random
    const later = this.#book.debits.filter(
      (debit) =>
        debit.standing === 'Scheduled' &&
        this.#book.isOpen(debit, now) &&
        debit.period === null &&
        debit.employer.environment === 'live',
    )
    if (later.length > 0 && this.#chance(40)) {
      const { employer, cents, day } = pick(later)
      return [this.#legacy(employer, cents, { start: dayAfter(day, -3), end: day })]
    }
    const employer = pick(this.#live())
    const cents = this.#usual(employer)
    const wanted = dayAfter(newYorkDay(now), between(0, 5))
    const period = { start: dayAfter(wanted, -between(0, 6)), end: dayAfter(wanted, between(0, 6)) }
    return [this.#legacy(employer, cents, period), this.#debit(employer, now, { cents, wanted })]
  }

  /** @returns what was answered with a status that is expected. */
  async #asked(of: BookEmployer, method: string, path: string, body: Json): Promise<Json> {
    const answer = await this.#tried(of, method, path, body)
    expect([answer.status < 300, answer.text]).toEqual([true, expect.any(String)])
    return answer.body.data
  }

  #tried({ tenant }: BookEmployer, method: string, path: string, body: Json): Promise<Answer> {
    return partner(this.#mortal.service, tenant.clientHeaders, method, path, body)
  }

  /** Opens an account that is debited from now on. @param isWritable false: with a wrong check digit. */
  async openAccount(employer: BookEmployer, isWritable = true): Promise<BookAccount> {
    const { between, pick } = this.#random
    const numbers = {
      routing: isWritable ? pick(ROUTINGS) : '021000029',
      number: String(between(10 ** 6, 10 ** 9)),
      type: pick(['checking', 'savings'] as const),
    }
    const body = {
      owner_type: 'employer',
      owner_id: employer.id,
      is_primary: true,
      bank_name: 'First Bank',
      routing_number: numbers.routing,
      account_number: numbers.number,
      account_type: numbers.type,
    }
    const { _id: id } = await this.#asked(employer, 'POST', '/bank-accounts/ach', body)
    const account = { id, ...numbers, isActive: false, isDisabled: false, isWritable, credits: null }
    employer.accounts.push(account)
    return account
  }

  #usual({ usualCents }: BookEmployer): number {
    return usualCents + 5 * this.#random.between(0, usualCents / 10)
  }

  /** A debit by a call. */
  #debit(
    employer: BookEmployer,
    now: number,
    given: { readonly cents?: number; readonly wanted?: string | null; readonly isUnusual?: boolean } = {},
  ): Order {
    const { cents = this.#usual(employer), wanted = this.#wantedDay(now), isUnusual = false } = given
    const policy = this.#random.pick(employer.policies)
    const account = employer.accounts.at(-1)!
    const body = {
      employer_id: employer.id,
      carrier_id: policy.carrier.id,
      policy_id: policy.id,
      bank_account_id: account.id,
      amount_cents: cents,
      payment_purpose: 'paygo',
      idempotency_key: this.#key(),
      ...(wanted === null ? {} : { effective_date: wanted }),
    }
    return {
      send: () => this.#asked(employer, 'POST', '/ach/debits', body),
      book: ({ transaction_id: id }) =>
        this.#accept({ id, cents, employer, policy, account, now, wanted, isUnusual }),
    }
  }

  /** A collection of some policies at once. */
  #collection(employer: BookEmployer, now: number): Order {
    const account = employer.accounts.at(-1)!
    const entries = employer.policies.map((policy) => ({
      policy,
      cents: this.#usual(employer),
      key: this.#key(),
    }))
    const body = {
      employerId: employer.id,
      bankAccountId: account.id,
      policyCollections: entries.map(({ policy, cents, key }) => ({
        policyId: policy.id,
        totalInDollars: cents / 100,
        description: 'Premium',
        idempotencyKey: key,
      })),
    }
    return {
      send: () => this.#asked(employer, 'POST', '/ach/collections', body),
      book: ({ accepted, transactions }) => {
        expect(accepted).toBe(entries.length)
        for (const [index, { policy, cents }] of entries.entries()) {
          const { transaction_id: id, policy_id, amount } = transactions[index]
          expect([policy_id, amount]).toEqual([policy.id, cents])
          this.#accept({ id, cents, employer, policy, account, now, wanted: null })
        }
      },
    }
  }

  /** A payroll file whose premium is debited. @param legacyToo the legacy service has collected it. */
  #payroll(employer: BookEmployer, now: number, legacyToo: boolean): readonly Order[] {
    const { between } = this.#random
    const [policy, account] = [employer.policies[0]!, employer.accounts.at(-1)!]
    const [cents, key] = [this.#usual(employer), this.#key()]
    const today = newYorkDay(now)
    const checkDate = dayAfter(today, between(0, 14))
    const period = { start: dayAfter(today, -between(14, 20)), end: dayAfter(today, -between(1, 7)) }
    const employees = [employeeRecord({ gross_wages: dollarsOfWages(cents), check_date: checkDate })]
    const body = { employees, pay_period: { start_date: period.start, end_date: period.end } }
    const of = { ...employer.tenant, fein: employer.fein, policyNumber: policy.number }
    const order: Order = {
      send: async () => {
        const {
          status,
          text,
          body: answer,
        } = await report(this.#mortal.service, of, body, { 'Idempotency-Key': key })
        expect([status < 300, text]).toEqual([true, expect.any(String)])
        return answer
      },
      book: ({ file_id }) => {
        const raised = this.#mortal.events.filter(
          ({ type, data }) => type === 'BankDebitCreated' && data.file_id === file_id,
        )
        expect(raised.map(({ data }) => data.amount_cents)).toEqual([cents])
        const { entryDate: wanted } = slotAt(now, checkDate)
        const id = String(raised[0]!.data.leg_id)
        this.#accept({ id, cents, employer, policy, account, now, wanted, day: checkDate, period })
      },
    }
    return legacyToo ? [this.#legacy(employer, cents, period), order] : [order]
  }

  /** A record of the legacy service. */
  #legacy(employer: BookEmployer, cents: number, { start, end }: { start: string; end: string }): Order {
    const status = this.#random.pick(LEGACY_STATUSES)
    const body = {
      employer_id: employer.id,
      policy_id: employer.policies[0]!.id,
      premium_cents: cents,
      status,
      period_start: start,
      period_end: end,
    }
    const key = this.#key()
    return {
      send: async () => {
        const { service } = this.#mortal
        const answer = await askOperator(service, 'POST', '/legacy-collections', body, {
          'Idempotency-Key': key,
        })
        expect([answer.status < 300, answer.text]).toEqual([true, expect.any(String)])
        return answer.body.data
      },
      book: ({ transaction_id: id }) => this.#book.legacy.push({ id, employer, cents, start, end, status }),
    }
  }

  /** The bank sends back what the legacy service collected. */
  async #returnLegacy(record: LegacyRecord): Promise<void> {
    const path = `/bank-rail/${record.id}/return`
    const { status } = await operate(this.#mortal.service, 'POST', path, { return_code: 'R01' })
    expect(status).toBe('returned')
    record.status = status
  }

  #accept({
    now,
    period = null,
    isUnusual = false,
    ...debit
  }: Pick<Debit, 'id' | 'cents' | 'employer' | 'account' | 'wanted'> & {
    readonly policy: BookPolicy
    readonly now: number
    readonly day?: string
    readonly period?: Debit['period']
    readonly isUnusual?: boolean
  }): void {
    const { day = debit.wanted ?? new Date(now).toISOString().slice(0, 10) } = debit
    this.#book.accept({ ...debit, createdAt: now, day, period, isUnusual })
  }

  #key(): string {
    this.#serial += 1
    return `order-${this.#serial}`
  }

  /** As soon as it can be, in the past, or in the next weeks. */
  #wantedDay(now: number): string | null {
    const { between } = this.#random
    const roll = between(1, 100)
    if (roll <= 50) return null
    return dayAfter(newYorkDay(now), roll <= 60 ? -between(1, 30) : between(0, 21))
  }
}

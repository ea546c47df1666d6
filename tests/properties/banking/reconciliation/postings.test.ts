import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type BankCredit,
  type BankCreditCommand,
  type BankCreditEvent,
  bankCredit,
} from '../../../../domain/banking/credits/bank-credit.ts'
import { type BankDebitCommand, bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitEvent } from '../../../../domain/banking/debits/bank-debit-events.ts'
import {
  type BankDebit,
  DEBIT_STATUSES,
  type DebitStatus,
} from '../../../../domain/banking/debits/bank-debit-state.ts'
import {
  type Balances,
  bookCredit,
  bookDebit,
  CARRIER_ACCOUNTS,
  type CarrierAccount,
  type Posting,
  placeOf,
  posted,
} from '../../../../domain/banking/reconciliation/postings.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { carrierBalances } from '../../../../projections/banking/debits/carrier-balances.ts'
import { createdDebit } from '../../../support/created-debits.ts'
import { runs } from '../../../support/generated.ts'
import { type Happened, specifyProjection, TENANT } from '../../../support/projection-spec.ts'

/** Whatever happens to debits and credits, the accounts say what their states say. */

const idOf = (n: number) => n.toString(16).padStart(24, '0')
const CARRIERS = [
  { carrier_id: idOf(0xc1), settlement_type: 'fbo' },
  { carrier_id: idOf(0xc2), settlement_type: 'direct' },
  { carrier_id: idOf(0xc3), settlement_type: null },
] as const
const START = Date.parse('2026-11-02T15:00:00Z')
const HOUR = 3_600_000
const DEBITS = 4

type Step = (at: number, debit: BankDebit | null) => BankDebitCommand
const stop =
  (gate: 'billing' | 'legacy' | 'cutoff' | 'anomaly', status: string, reason: string): Step =>
  (at) => ({ type: 'Gate', stop: { gate, status, reason } as never, at })
const simple =
  (type: string): Step =>
  (at) =>
    ({ type, note: null, at }) as BankDebitCommand
/** What comes next for a debit that goes its way. */
const forward: Step = (at, debit) => {
  const next = { pending: 'Schedule', Scheduled: 'Acknowledge', submitted: 'Process', quarantined: 'Release' }
  return simple(next[debit!.status as keyof typeof next] ?? 'Process')(at, debit)
}
/** What a debit that exists can be told. */
const STEPS: readonly Step[] = [
  stop('billing', 'failed', 'non_paygo_blocked'),
  stop('legacy', 'legacy_collected', 'legacy_collected'),
  stop('cutoff', 'cancelled', 'before_forward_cutoff'),
  stop('anomaly', 'quarantined', 'amount_anomaly_above_100pct_of_recent_average'),
  ...['Release', 'Reject', 'Cancel', 'Process'].map(simple),
  ...Array.from({ length: 12 }, () => forward),
  (at) => ({ type: 'Fail', note: 'The account is disabled', at }),
  (at) => ({ type: 'LeaveOut', note: 'The account cannot be read', at }),
  (at) => ({
    type: 'Report',
    processor_status: 'SBRemit',
    transmission_date: null,
    effective_date: null,
    at,
  }),
  (at) => ({
    type: 'Report',
    processor_status: 'Who knows',
    transmission_date: null,
    effective_date: null,
    at,
  }),
  ...Array.from({ length: 2 }, (): Step => (at) => ({ type: 'Return', return_code: 'R01', at })),
  ...Array.from({ length: 2 }, () => simple('Represent')),
  (at) => ({ type: 'Fail', note: 'The bank rejected the file', byBank: true, at }),
]
/** A debit in a batch is put into a file for the bank; others never are. */
const inFile: Step = (at, debit) => ({
  ...({ type: 'PutInFile', fileId: idOf(at), traceNumber: '021000020000001' } as const),
  ofBatch: debit!.batch_closes_at!,
  entryDate: '2026-11-03',
  at,
})

type One = typeof step extends fc.Arbitrary<infer Value> ? Value : never
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ debit: fc.nat(DEBITS - 1), step: fc.nat(STEPS.length - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      /** Of a transaction of the bank; the same again changes nothing. */
      credit: fc.nat(5),
      /** The debit that it is found to be the money of; null: none, and what is refused goes to nobody. */
      of: fc.option(fc.nat(DEBITS - 1)),
      confidence: fc.constantFrom('high' as const, 'medium' as const),
    }),
  },
)

function story() {
  const debits = new Map<string, BankDebit>()
  const credits = new Map<string, BankCredit>()
  const history: Happened[] = []
  const balances = new Map<string, Balances>()
  let now = START

  const post = (carrierId: string, postings: readonly Posting[]) => {
    expect(postings.reduce((sum, { cents }) => sum + cents, 0)).toBe(0)
    balances.set(carrierId, posted(balances.get(carrierId) ?? {}, postings))
  }
  /** Decides as the service would; a refusal changes nothing. @returns whether it was none. */
  function carryOut(debitId: string, command: BankDebitCommand): boolean {
    const decided = bankDebit.decide(command, debits.get(debitId) ?? null)
    if (isRejection(decided)) return false
    for (const event of decided) {
      const before = debits.get(debitId)
      const booked = before ? { ...before, place: placeOf(before) } : null
      const { place, postings } = bookDebit(event as BankDebitEvent, booked)
      const after = bankDebit.evolve(before ?? null, event)!
      expect([event.type, place]).toEqual([event.type, placeOf(after)])
      debits.set(debitId, after)
      post(after.carrier_id, postings)
      history.push({ stream: `bankDebit-${debitId}`, events: [event] })
    }
    return true
  }
  function receive(creditId: string, command: BankCreditCommand): BankCredit {
    const decided = bankCredit.decide(command, credits.get(creditId) ?? null)
    if (isRejection(decided)) throw new Error(decided.message)
    for (const event of decided) {
      const before = credits.get(creditId)
      const booked = before ? { ...before, leg_id: before.match?.debitId ?? null } : null
      const after = bankCredit.evolve(before ?? null, event)!
      post(after.carrier_id, bookCredit(event as BankCreditEvent, booked))
      credits.set(creditId, after)
      history.push({ stream: `bankCredit-${creditId}`, events: [event] })
    }
    return credits.get(creditId)!
  }

  return {
    history,
    balances,
    debits,
    credits,
    create(n: number, amount_cents: number) {
      const leg_id = idOf(n + 1)
      const of = {
        tenant_id: TENANT,
        ...CARRIERS[n % CARRIERS.length]!,
        bank_account_id: leg_id,
        amount_cents,
      }
      carryOut(leg_id, { type: 'Create', data: createdDebit(leg_id, isoTime(now), of) })
    },
    take(one: One) {
      now += HOUR
      if ('step' in one) {
        const named = idOf(one.debit + 1)
        const debit = debits.get(named)!
        const isToBeSent = debit.status === 'Scheduled' && debit.in_file === null && one.step % 2 === 0
        carryOut(named, (isToBeSent ? inFile : STEPS[one.step]!)(now, debit))
        return
      }
      const creditId = idOf(0xd0 + one.credit)
      const named = one.of === null ? null : idOf(one.of + 1)
      const { carrier_id, amount_cents } = debits.get(named ?? idOf(1))!
      const transaction = `BT-${one.credit}`
      const data = {
        credit_id: creditId,
        tenant_id: TENANT,
        carrier_id,
        bank_transaction_id: transaction,
        bank_date: '2026-11-03',
        amount_cents,
        reference: named,
        received_at: isoTime(now),
      }
      const before = receive(creditId, { type: 'Receive', data })
      const debitId = before.match?.debitId ?? named
      const confidence = before.match?.confidence ?? one.confidence
      const match = named === null ? null : { debitId: named, confidence: one.confidence }
      const credit = receive(creditId, { type: 'Decide', match, named: named, refusedBy: null, at: now })
      if (credit.match === null) return
      const matched = {
        ...({ type: 'Match', matchId: creditId, bankTransactionId: transaction } as const),
        bankDate: '2026-11-03',
        confidence,
        at: now,
      }
      if (carryOut(debitId!, matched)) return
      receive(creditId, { type: 'Decide', match: null, named: named, refusedBy: debitId, at: now })
    },
  }
}

const isReceived = ({ settlement_type, match, settlement }: BankDebit) =>
  match !== null || (settlement_type !== 'fbo' && settlement !== null)
const OF_STATUS: Readonly<Record<DebitStatus, (debit: BankDebit) => CarrierAccount | null>> = {
  pending: () => 'due',
  quarantined: () => 'due',
  Scheduled: ({ in_file }) => (in_file === null ? 'due' : 'in_file'),
  submitted: (debit) => (isReceived(debit) ? 'received' : 'at_bank'),
  processed: (debit) => (isReceived(debit) ? 'received' : 'at_bank'),
  returned: () => 'returned',
  failed: () => null,
  cancelled: () => null,
  legacy_collected: () => null,
}

test('every balance is the sum of its debits by status, and of the credits that are no debit’s money', () => {
  const seen = new Set<DebitStatus>()
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 9_999_999_999 }), { minLength: DEBITS, maxLength: DEBITS }),
      fc.array(step, { minLength: 20, maxLength: 50 }),
      (amounts, steps) => {
        const told = story()
        for (const [n, amount] of amounts.entries()) told.create(n, amount)
        const expectSums = () => {
          for (const { carrier_id } of CARRIERS) {
            const sums = Object.fromEntries(CARRIER_ACCOUNTS.map((name) => [name, 0]))
            for (const debit of told.debits.values()) {
              seen.add(debit.status)
              const account = debit.carrier_id === carrier_id ? OF_STATUS[debit.status](debit) : null
              if (account !== null) sums[account]! += debit.amount_cents
            }
            for (const credit of told.credits.values()) {
              if (credit.carrier_id === carrier_id && credit.match === null)
                sums.unmatched! += credit.amount_cents
            }
            const balances = told.balances.get(carrier_id) ?? {}
            const found = Object.fromEntries(CARRIER_ACCOUNTS.map((name) => [name, balances[name] ?? 0]))
            expect(found).toEqual(sums)
          }
        }
        expectSums()
        for (const one of steps) {
          told.take(one)
          expectSums()
        }
        const { carrier_balances } = specifyProjection(carrierBalances)
          .given(...told.history)
          .rows()
        expect(carrier_balances![0]!.carriers).toEqual(Object.fromEntries(told.balances))
      },
    ),
    // a seed of its own: that every status is reached must not be left to chance
    runs(40, 500),
  )
  expect([...seen].sort()).toEqual([...DEBIT_STATUSES].sort())
})

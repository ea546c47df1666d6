import { expect, test } from 'vitest'
import {
  BankCreditMatched,
  BankCreditReceived,
  BankCreditUnmatched,
  bankCredit,
  bankDatesOf,
  effectiveDatesOf,
} from '../../../../domain/banking/credits/bank-credit.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { decisions } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [ID, LEG, OTHER] = ['a', '1', '2'].map((digit) => digit.repeat(24)) as [string, string, string]
const NOW = Date.UTC(2026, 10, 30, 12)
const at = isoTime(NOW)
const received = BankCreditReceived.of({
  credit_id: ID,
  tenant_id: ID,
  carrier_id: ID,
  bank_transaction_id: 'bt_1',
  bank_date: '2026-11-30',
  amount_cents: 10_500,
  reference: null,
  received_at: at,
})
const matched = (leg_id: string) => BankCreditMatched.of({ credit_id: ID, leg_id, confidence: 'medium', at })
const unmatchedOf = (leg_id: string | null) => BankCreditUnmatched.of({ credit_id: ID, leg_id, at })
const unmatched = unmatchedOf(null)
const receive = { type: 'Receive', data: received.data } as const
const decide = (debitId: string | null, refusedBy: string | null = null, named: string | null = null) =>
  ({
    ...({ type: 'Decide', named, refusedBy, at: NOW } as const),
    match: debitId === null ? null : ({ debitId, confidence: 'medium' } as const),
  }) as const

decisions(bankCredit, [
  ['is received', [], receive, received],
  ['is received once', [received], receive, []],
  ['is received once, with another amount too', [received, unmatched], receive, []],
  ['is not there before', [], decide(LEG), 'bank_credit_not_found'],
  ["is a debit's money", [received], decide(LEG), matched(LEG)],
  ["is nobody's money", [received], decide(null), unmatched],
  ['keeps which debit it names and does not fit', [received], decide(null, null, LEG), unmatchedOf(LEG)],
  ["stays a debit's money", [received, matched(LEG)], decide(OTHER), []],
  ["stays nobody's money", [received, unmatched], decide(null), []],
  ["is a debit's money that is submitted later", [received, unmatched], decide(LEG), matched(LEG)],
  ["is a debit's money that it names, once it fits", [received, unmatchedOf(LEG)], decide(LEG), matched(LEG)],
  ['goes to another debit when one refuses', [received, matched(LEG)], decide(OTHER, LEG), matched(OTHER)],
  ['goes to nobody when one refuses', [received, matched(LEG)], decide(null, LEG), unmatched],
  ['does not hear of an earlier refusal', [received, matched(LEG), matched(OTHER)], decide(null, LEG), []],
])

test('a credit is looked for from five days before a debit takes effect to two weeks after', () => {
  expect(effectiveDatesOf('2026-03-10')).toEqual({ from: '2026-02-24', to: '2026-03-15' })
  expect(bankDatesOf('2026-02-24').to).toBe('2026-03-10')
  expect(bankDatesOf('2026-03-15').from).toBe('2026-03-10')
})

import { expect, test } from 'vitest'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { payrollDebits } from '../../../../application/banking/debits/payroll-debits-process-manager.ts'
import type { RecordedEvent } from '../../../../application/commands/event-registry.ts'
import type { ProcessManager } from '../../../../application/followers/process-manager.ts'
import {
  BankDebitCancelled,
  BankDebitFailed,
  BankDebitGated,
  BankDebitRejected,
} from '../../../../domain/banking/debits/bank-debit-events.ts'
import type { DomainEvent } from '../../../../domain/kernel/event-type.ts'
import {
  PayrollFileProcessed,
  PayrollPremiumCalculated,
} from '../../../../domain/payroll/payroll-file-events.ts'

const FILE = 'f'.repeat(24)
const ACCOUNT = 'a'.repeat(24)
const AT = '2026-11-24T17:00:00.000Z'
const whose = { employer_id: FILE, policy_id: FILE, policy_number: 'WC-100', row_count: 1, period: null }
const nothing = {} as Parameters<typeof payrollDebits>[0]

// reacting is pure: whatever the work needs is not touched
function wantedBy({ on }: ProcessManager, event: DomainEvent) {
  const { react } = on.find(({ type }) => type.name === event.type)!
  return react(event as unknown as RecordedEvent, undefined as never)
}
const processed = (premium_cents: number, account?: string | null) =>
  PayrollFileProcessed.of({
    file_id: FILE,
    ...whose,
    policy_revision: 0,
    validation: { green: 1, red: 0, failures: [] },
    wages: { rows_processed: 1, auditable_cents: 100_000, wages: [] },
    premium: { rows_processed: 1, premium_cents, premiums: [] },
    ...(account !== undefined && { debit_account_id: account }),
  })
const calculated = (completed?: { premium_cents: number; debit_account_id?: string | null }) =>
  PayrollPremiumCalculated.of({
    file_id: FILE,
    chunk: 1,
    last: true,
    rows_processed: 1,
    premium_cents: 1,
    premiums: [],
    ...(completed && {
      completed: { ...whose, green_rows: 1, red_rows: 0, auditable_cents: 1, ...completed },
    }),
  })

test.each([
  ['at once', processed(2_501, ACCOUNT)],
  ['chunk by chunk', calculated({ premium_cents: 2_501, debit_account_id: ACCOUNT })],
])('a premium that was calculated %s is debited, and a file has one debit', (_how, event) => {
  expect(wantedBy(payrollDebits(nothing), event)).toEqual([
    {
      intent: 'perform',
      kind: 'raise-debit',
      key: FILE,
      payload: { amount_cents: 2_501, ach_account_id: ACCOUNT },
    },
  ])
})

test.each([
  ['without a premium', processed(0)],
  ['without an account', processed(2_501, null)],
  ['of an earlier release', processed(2_501)],
  ['with more chunks to come', calculated()],
  ['of several chunks without an account', calculated({ premium_cents: 1, debit_account_id: null })],
])('of a file %s nothing is', (_what, event) => {
  expect(wantedBy(payrollDebits(nothing), event)).toEqual([])
})

test('it collects nothing for files from before it was there', () => {
  expect(payrollDebits(nothing).startAt).toBe('registration')
})

const gated = (status: 'failed' | 'cancelled' | 'legacy_collected' | 'quarantined') =>
  BankDebitGated.of({ leg_id: FILE, gate: 'cutoff', status, reason: 'x', at: AT })

test.each([
  [BankDebitCancelled.of({ leg_id: FILE, at: AT })],
  [BankDebitFailed.of({ leg_id: FILE, note: 'x', at: AT })],
  [BankDebitRejected.of({ leg_id: FILE, note: null, at: AT })],
  [gated('failed')],
  [gated('cancelled')],
  [gated('legacy_collected')],
])('partners hear once of a debit that ended unsent: %j', (event) => {
  const [intent, ...others] = wantedBy(bankDebits(nothing, 60_000), event)
  expect(intent).toMatchObject({ kind: 'tell-cancelled', key: FILE, payload: { at: AT } })
  expect(others).toEqual([])
})

test('a debit in quarantine has not ended', () => {
  expect(wantedBy(bankDebits(nothing, 60_000), gated('quarantined'))).toEqual([])
})

import type { DebitStatus } from '../../domain/banking/bank-debit.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { bigint, boolean, orNull, table, text } from './table.ts'

/** What bank debits are found by; what they are stands in the log. */
export const bankDebits = table('bank_debits', {
  key: ['leg_id'],
  columns: {
    leg_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    policy_id: text(),
    status: text<DebitStatus>(),
    amount_cents: bigint(),
    /** When its batch closes, and the day on which it takes effect; null until it is in a batch. */
    batch_closes_at: orNull(text()),
    effective_date: orNull(text()),
    /** The carrier's money comes into an account of the service, and none was matched yet. */
    awaits_credit: boolean(),
    created_at: text(),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [
    ['tenant_id', 'environment', 'seq desc'],
    ['employer_id', 'seq desc'],
    ['status', 'seq'],
    // of a plan's many debits of one amount, those whose money may come now
    ['carrier_id', 'amount_cents', 'awaits_credit', 'effective_date'],
    ['batch_closes_at', 'seq'],
  ],
})

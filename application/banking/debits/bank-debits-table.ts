import type { BankDebitData, DebitSource } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { DebitStatus } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { bigint, boolean, integer, jsonb, orNull, type RowOf, table, text } from '../../queries/table.ts'

/** Bank debits as the ledger lists them, and as they are looked for; what is decided about them is decided by the log. */
export const bankDebits = table('bank_debits', {
  key: ['leg_id'],
  columns: {
    leg_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    policy_id: text(),
    source: text<DebitSource>(),
    payment_session_id: orNull(text()),
    /** Of an installment, from 1. */
    installment_number: orNull(integer()),
    /** The batch collection, or the payroll file, that it comes from. */
    collection_id: orNull(text()),
    file_id: orNull(text()),
    /** The ACH account that is debited; null of sessions. */
    bank_account_id: orNull(text()),
    account_last4: text(),
    payment_purpose: text<BankDebitData<'BankDebitCreated'>['payment_purpose']>(),
    description: orNull(text()),
    metadata: jsonb<Readonly<Record<string, string>>>(),
    status: text<DebitStatus>(),
    /** Why a gate stopped it. */
    reason: orNull(text()),
    return_code: orNull(text()),
    amount_cents: bigint(),
    /** The day that was asked for. */
    asked_date: orNull(text()),
    /** The day on which it takes effect, as it is shown: as was asked for, else that of its entry. */
    effective_date: orNull(text()),
    /** The run of the batch worker that put it into its batch, or stopped it. */
    run_id: orNull(text()),
    /** When its batch closes, and the banking day of its entry; null until it is in a batch. */
    batch_closes_at: orNull(text()),
    entry_date: orNull(text()),
    /** The carrier's money comes into an account of the service, and none was matched yet. */
    awaits_credit: boolean(),
    created_at: text(),
    updated_at: text(),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [
    // of the ledger: its sort orders, with statuses and carriers behind them, so that filters are answered by the index
    ['tenant_id', 'environment', 'created_at', 'seq'],
    ['tenant_id', 'environment', 'status', 'created_at', 'seq', 'carrier_id'],
    ['tenant_id', 'environment', 'amount_cents', 'seq', 'status', 'carrier_id'],
    ['tenant_id', 'environment', 'effective_date', 'seq', 'status', 'carrier_id'],
    ['tenant_id', 'environment', 'carrier_id', 'created_at', 'seq', 'status'],
    // what matches is counted by it: many rows share a key, which makes it a tenth as large as the others
    ['tenant_id', 'environment', 'carrier_id', 'status'],
    ['employer_id', 'created_at', 'seq'],
    ['policy_id', 'created_at', 'seq'],
    ['status', 'seq'],
    ['seq desc'],
    // of a plan's many debits of one amount, those whose money may come now
    ['carrier_id', 'amount_cents', 'awaits_credit', 'entry_date'],
    ['batch_closes_at', 'seq'],
    ['bank_account_id', 'seq'],
  ],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    bank_debits: RowOf<typeof bankDebits>
  }
}

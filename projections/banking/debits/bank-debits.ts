import { bankDebits as table } from '../../../application/banking/debits/bank-debits-table.ts'
import type { RowOf } from '../../../application/queries/table.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  BankDebitFailed,
  BankDebitGated,
  BankDebitHeldUp,
  BankDebitInFile,
  BankDebitLeftOut,
  BankDebitMatched,
  BankDebitProcessed,
  BankDebitRejected,
  BankDebitReleased,
  BankDebitReported,
  BankDebitRepresented,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
} from '../../../domain/banking/debits/bank-debit-events.ts'
import { changing, projection } from '../../runtime/projection.ts'

const ofDebit = changing(table)
const touched = ({ data: { at } }: { readonly data: { readonly at: string } }) => ({ updated_at: at })

/** The day of an entry, and the day that is shown for it. */
function entryOn(entry_date: string, debit: Pick<RowOf<typeof table>, 'asked_date'> | undefined) {
  return { entry_date, effective_date: debit?.asked_date ?? entry_date }
}

/** Bank debits as the ledger lists them and as they are looked for; of an account that is debited only its last digits are here. */
export const bankDebits = projection({
  name: 'bank-debits',
  version: 7,
  tables: [table],
  handlers: (on) => [
    on(BankDebitCreated, {
      apply: ({ data, position }, { bank_debits }) =>
        bank_debits.put({
          ...data,
          account_last4: data.account.account_last4,
          asked_date: data.effective_date,
          status: 'pending',
          seq: position,
          awaits_credit: data.settlement_type === 'fbo',
          updated_at: data.created_at,
        }),
    }),
    ofDebit(BankDebitGated, ({ data: { status, reason, run_id = null, at } }) => ({
      status,
      reason,
      run_id,
      updated_at: at,
    })),
    ofDebit(BankDebitReleased, ({ data }) => ({ status: 'pending', reason: null, updated_at: data.at })),
    ofDebit(BankDebitRejected, ({ data }) => ({ status: 'failed', updated_at: data.at })),
    ofDebit(BankDebitFailed, ({ data }) => ({ status: 'failed', updated_at: data.at })),
    ofDebit(BankDebitCancelled, ({ data }) => ({ status: 'cancelled', updated_at: data.at })),
    ofDebit(BankDebitScheduled, ({ data }, row) => {
      const { batch_closes_at, effective_date, run_id = null, at } = data
      return {
        status: 'Scheduled',
        batch_closes_at,
        ...entryOn(effective_date, row),
        run_id,
        updated_at: at,
      }
    }),
    ofDebit(BankDebitLeftOut, touched),
    ofDebit(BankDebitHeldUp, touched),
    ofDebit(BankDebitInFile, ({ data: { entry_date, at } }, row) => ({
      ...entryOn(entry_date, row),
      updated_at: at,
    })),
    ofDebit(BankDebitSubmitted, ({ data }) => ({ status: 'submitted', updated_at: data.at })),
    ofDebit(BankDebitReported, ({ data: { settled_on, at } }, row) => {
      const isProcessed = settled_on !== null && row?.status === 'submitted'
      return { ...(isProcessed && { status: 'processed' as const }), updated_at: at }
    }),
    ofDebit(BankDebitProcessed, ({ data }) => ({ status: 'processed', updated_at: data.at })),
    ofDebit(BankDebitMatched, ({ data }) => ({ awaits_credit: false, updated_at: data.at })),
    ofDebit(BankDebitReturned, ({ data: { return_code, at } }) => ({
      status: 'returned',
      return_code,
      awaits_credit: false,
      updated_at: at,
    })),
    ofDebit(BankDebitRepresented, ({ data }, row) => {
      const { batch_closes_at, effective_date, settlement_type, at } = data
      return {
        status: 'Scheduled',
        batch_closes_at,
        ...entryOn(effective_date, row),
        return_code: null,
        awaits_credit: settlement_type === 'fbo',
        updated_at: at,
      }
    }),
  ],
})

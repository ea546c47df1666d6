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
import { type FoldedTable, projection } from '../../runtime/projection.ts'

const ofDebit = ({ data }: { data: { leg_id: string } }) => ({ bank_debits: [[data.leg_id]] }) as const

type Touched = { readonly data: { readonly leg_id: string; readonly at: string } }
const touched = (
  { data: { leg_id, at } }: Touched,
  { bank_debits }: { readonly bank_debits: FoldedTable<typeof table> },
) => bank_debits.change([leg_id], { updated_at: at })

/** The day of an entry, and the day that is shown for it. */
function entryOn(entry_date: string, debit: Pick<RowOf<typeof table>, 'asked_date'> | null | undefined) {
  return { entry_date, effective_date: debit?.asked_date ?? entry_date }
}

/** Bank debits as the ledger lists them and as they are looked for; of an account that is debited only its last digits are here. */
export const bankDebits = projection({
  name: 'bank-debits',
  version: 7,
  tables: [table],
  handlers: (on) => [
    on(BankDebitCreated, {
      apply({ data, position }, { bank_debits }) {
        const { leg_id, tenant_id, environment, employer_id, carrier_id, policy_id, source } = data
        const { payment_session_id, installment_number, collection_id, file_id, bank_account_id } = data
        const { payment_purpose, description, metadata, amount_cents, created_at } = data
        const { effective_date } = data
        bank_debits.put({
          leg_id,
          tenant_id,
          environment,
          employer_id,
          carrier_id,
          policy_id,
          source,
          payment_session_id,
          installment_number,
          collection_id,
          file_id,
          bank_account_id,
          account_last4: data.account.account_last4,
          payment_purpose,
          description,
          metadata,
          status: 'pending',
          amount_cents,
          asked_date: effective_date,
          effective_date,
          seq: position,
          awaits_credit: data.settlement_type === 'fbo',
          created_at,
          updated_at: created_at,
        })
      },
    }),
    on(BankDebitGated, {
      reads: ofDebit,
      apply: ({ data: { leg_id, status, reason, run_id = null, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status, reason, run_id, updated_at: at }),
    }),
    on(BankDebitReleased, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'pending', reason: null, updated_at: at }),
    }),
    on(BankDebitRejected, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'failed', updated_at: at }),
    }),
    on(BankDebitFailed, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'failed', updated_at: at }),
    }),
    on(BankDebitCancelled, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'cancelled', updated_at: at }),
    }),
    on(BankDebitScheduled, {
      reads: ofDebit,
      apply({ data }, { bank_debits }) {
        const { leg_id, batch_closes_at, effective_date, run_id = null, at } = data
        const inBatch = { batch_closes_at, ...entryOn(effective_date, bank_debits.get(leg_id)) }
        bank_debits.change([leg_id], { status: 'Scheduled', ...inBatch, run_id, updated_at: at })
      },
    }),
    on(BankDebitLeftOut, { reads: ofDebit, apply: touched }),
    on(BankDebitHeldUp, { reads: ofDebit, apply: touched }),
    on(BankDebitInFile, {
      reads: ofDebit,
      apply({ data: { leg_id, entry_date, at } }, { bank_debits }) {
        const entry = entryOn(entry_date, bank_debits.get(leg_id))
        bank_debits.change([leg_id], { ...entry, updated_at: at })
      },
    }),
    on(BankDebitSubmitted, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'submitted', updated_at: at }),
    }),
    on(BankDebitReported, {
      reads: ofDebit,
      apply({ data: { leg_id, settled_on, at } }, { bank_debits }) {
        const isProcessed = settled_on !== null && bank_debits.get(leg_id)?.status === 'submitted'
        bank_debits.change([leg_id], { ...(isProcessed && { status: 'processed' }), updated_at: at })
      },
    }),
    on(BankDebitProcessed, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'processed', updated_at: at }),
    }),
    on(BankDebitMatched, {
      reads: ofDebit,
      apply: ({ data: { leg_id, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], { awaits_credit: false, updated_at: at }),
    }),
    on(BankDebitReturned, {
      reads: ofDebit,
      apply: ({ data: { leg_id, return_code, at } }, { bank_debits }) =>
        bank_debits.change([leg_id], {
          status: 'returned',
          return_code,
          awaits_credit: false,
          updated_at: at,
        }),
    }),
    on(BankDebitRepresented, {
      reads: ofDebit,
      apply({ data }, { bank_debits }) {
        const { leg_id, batch_closes_at, effective_date, settlement_type, at } = data
        const again = {
          batch_closes_at,
          ...entryOn(effective_date, bank_debits.get(leg_id)),
          return_code: null,
          awaits_credit: settlement_type === 'fbo',
        }
        bank_debits.change([leg_id], { status: 'Scheduled', ...again, updated_at: at })
      },
    }),
  ],
})

import { z } from 'zod'
import {
  failureReasonOf,
  groupOf,
  STATUS_GROUPS,
  TRANSACTION_STATUSES,
  type Transaction,
} from '../../../../application/banking/debits/transactions.ts'
import type { LedgerRow } from '../../../../application/banking/reconciliation/ledger.ts'
import { debitSource } from '../../../../domain/banking/debits/bank-debit-events.ts'
import {
  datedAt,
  type LegacyCollection,
  legacyGroupOf,
} from '../../../../domain/banking/legacy/legacy-collection.ts'
import { id, isoMoment } from '../../../endpoints/fields.ts'
import { withoutNulls } from '../../../endpoints/shown.ts'

/** What the word of a creation is to the one that is read. */
export const AT_CREATION =
  'The word of the creation alone. Reads have the same debit as `pending` until a batch takes it; lists find it by either'

/** How a transaction stands, as the status route shows it. */
const status = {
  transaction_id: id(),
  status: z
    .enum(TRANSACTION_STATUSES)
    .describe(
      '`pending` first, where creations answer `PENDING`, then as the debit moves; a record of the legacy service has its own words',
    ),
  status_group: z.enum(STATUS_GROUPS),
  reason: z.string().nullable().describe('Why a gate stopped it'),
  failure_reason: z.string().nullable().describe('The reason again, where the money did not move'),
  amount_cents: z.int(),
  employer_id: id(),
  policy_id: id().nullable().describe('Null: a record of the legacy service that names none'),
  carrier_id: id().nullable().describe('Null: a record of the legacy service that names none'),
  created_at: isoMoment(),
  updated_at: isoMoment(),
}

export const TransactionState = z.object(status).meta({ id: 'AchTransactionState' })

export const AchTransaction = z
  .object({
    ...status,
    leg_id: id(),
    source: z.enum([...debitSource.options, 'legacy']).describe('What raised it'),
    payment_session_id: id().optional(),
    installment_number: z.int().optional(),
    collection_id: id().optional().describe('The batch collection that it is of'),
    return_code: z.string().nullable(),
    currency: z.literal('usd'),
    payment_purpose: z.string().nullable(),
    description: z.string().nullable(),
    bank_account_id: id().nullable().describe('Null: the account that a payer gave is no account of the API'),
    account_last4: z.string().nullable(),
    effective_date: z.string().nullable().describe('When it takes effect; null until it is in a batch'),
    metadata: z.record(z.string(), z.string()).describe('Of the request that it was created by'),
  })
  .meta({ id: 'AchTransaction' })

export const HistoryEntry = z
  .object({
    at: isoMoment(),
    from_status: z.enum(TRANSACTION_STATUSES).nullable().describe('Null: it was created'),
    to_status: z.enum(TRANSACTION_STATUSES),
    reason: z.string().nullable().describe('Why a gate stopped it'),
    note: z
      .string()
      .nullable()
      .describe('What happened, in a sentence for people, with the note of an operator'),
  })
  .meta({ id: 'AchTransactionHistoryEntry' })

/** How a transaction stands. */
export function shownState(transaction: Transaction) {
  if (transaction.kind === 'debit') return shownDebit(transaction.debit)
  const { record } = transaction
  // a legacy record is dated by its period, until something happens to it
  const created_at = datedAt(record.period_end)
  const updated_at = record.changes.at(-1)?.at ?? created_at
  return { ...shownLegacy(record), amount_cents: record.premium_cents, created_at, updated_at }
}

function shownDebit<Debit extends Parameters<typeof failureReasonOf>[0] & { readonly leg_id: string }>(
  debit: Debit,
) {
  const [status_group, failure_reason] = [groupOf(debit.status), failureReasonOf(debit)]
  return { ...debit, transaction_id: debit.leg_id, status_group, failure_reason }
}

function shownLegacy<Record extends Pick<LegacyCollection, 'status'>>(record: Record) {
  return { ...record, status_group: legacyGroupOf(record.status), reason: null, failure_reason: null }
}

/** A row of the ledger. */
export function shownRow(row: LedgerRow) {
  const currency = 'usd' as const
  if (row.kind === 'debit') {
    const { payment_session_id, installment_number, collection_id, ...debit } = row.debit
    const origin = withoutNulls({ payment_session_id, installment_number, collection_id })
    return { ...shownDebit(debit), ...origin, currency }
  }
  const unknown = { payment_purpose: null, description: null, bank_account_id: null, account_last4: null }
  const record = shownLegacy(row.record)
  const leg_id = record.transaction_id
  return { ...record, ...unknown, leg_id, source: 'legacy' as const, currency, metadata: {} }
}

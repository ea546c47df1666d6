import { z } from 'zod'
import type { LedgerRow } from '../../application/banking/ledger.ts'
import {
  failureReasonOf,
  groupOf,
  STATUS_GROUPS,
  TRANSACTION_STATUSES,
  type Transaction,
} from '../../application/banking/transactions.ts'
import { debitSource } from '../../domain/banking/bank-debit-events.ts'
import { datedAt, type LegacyCollection, legacyGroupOf } from '../../domain/banking/legacy-collection.ts'
import { id } from '../endpoints/fields.ts'

const time = () => z.iso.datetime({ precision: 3 })

/** How a transaction stands, as the status route shows it. */
const status = {
  transaction_id: id(),
  status: z
    .enum(TRANSACTION_STATUSES)
    .describe('As it is kept; a record of the legacy service in its own words'),
  status_group: z.enum(STATUS_GROUPS),
  reason: z.string().nullable().describe('Why a gate stopped it'),
  failure_reason: z.string().nullable().describe('The reason again, where the money did not move'),
  amount_cents: z.int(),
  employer_id: id(),
  policy_id: id().nullable().describe('Null: a record of the legacy service that names none'),
  carrier_id: id().nullable().describe('Null: a record of the legacy service that names none'),
  created_at: time(),
  updated_at: time(),
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
    at: time(),
    from_status: z.enum(TRANSACTION_STATUSES).nullable().describe('Null: it was created'),
    to_status: z.enum(TRANSACTION_STATUSES),
    reason: z.string().nullable(),
    note: z.string().nullable(),
  })
  .meta({ id: 'AchTransactionHistoryEntry' })

/** How a transaction stands. */
export function shownState(transaction: Transaction) {
  if (transaction.kind === 'debit') {
    const { debit } = transaction
    return {
      transaction_id: debit.leg_id,
      status: debit.status,
      status_group: groupOf(debit.status),
      reason: debit.reason,
      failure_reason: failureReasonOf(debit),
      ...moneyOf(debit),
    }
  }
  const { record } = transaction
  const amount_cents = record.premium_cents
  return {
    transaction_id: record.transaction_id,
    status: record.status,
    status_group: legacyGroupOf(record.status),
    reason: null,
    failure_reason: null,
    ...moneyOf({ ...record, ...timesOf(record), amount_cents }),
  }
}

/** A legacy record is dated by its period, until something happens to it. */
function timesOf({ period_end, changes }: LegacyCollection) {
  const created_at = datedAt(period_end)
  return { created_at, updated_at: changes.at(-1)?.at ?? created_at }
}

interface Money {
  readonly amount_cents: number
  readonly employer_id: string
  readonly policy_id: string | null
  readonly carrier_id: string | null
  readonly created_at: string
  readonly updated_at: string
}

function moneyOf({ amount_cents, employer_id, policy_id, carrier_id, created_at, updated_at }: Money) {
  return { amount_cents, employer_id, policy_id, carrier_id, created_at, updated_at }
}

/** A row of the ledger. */
export function shownRow(row: LedgerRow) {
  if (row.kind === 'debit') {
    const { debit } = row
    const { leg_id, payment_session_id, installment_number, collection_id } = debit
    return {
      transaction_id: leg_id,
      leg_id,
      source: debit.source,
      ...(payment_session_id === null ? {} : { payment_session_id }),
      ...(installment_number === null ? {} : { installment_number }),
      ...(collection_id === null ? {} : { collection_id }),
      status: debit.status,
      status_group: groupOf(debit.status),
      reason: debit.reason,
      failure_reason: failureReasonOf(debit),
      return_code: debit.return_code,
      ...moneyOf(debit),
      currency: 'usd' as const,
      payment_purpose: debit.payment_purpose,
      description: debit.description,
      bank_account_id: debit.bank_account_id,
      account_last4: debit.account_last4,
      effective_date: debit.effective_date,
      metadata: debit.metadata,
    }
  }
  const { record } = row
  return {
    transaction_id: record.transaction_id,
    leg_id: record.transaction_id,
    source: 'legacy' as const,
    status: record.status,
    status_group: legacyGroupOf(record.status),
    reason: null,
    failure_reason: null,
    return_code: record.return_code,
    ...moneyOf(record),
    currency: 'usd' as const,
    payment_purpose: null,
    description: null,
    bank_account_id: null,
    account_last4: null,
    effective_date: record.effective_date,
    metadata: {},
  }
}

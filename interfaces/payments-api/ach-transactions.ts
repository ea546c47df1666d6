import { z } from 'zod'
import {
  groupOf,
  listTransactions,
  SORTS,
  STATUS_GROUPS,
  statusesOf,
} from '../../application/banking/transactions.ts'
import { type BankDebit, DEBIT_STATUSES } from '../../domain/banking/bank-debit.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { date, id, text, time, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { endpoint, partner } from './api.ts'

const Transaction = z
  .object({
    transaction_id: id(),
    leg_id: id(),
    payment_session_id: id().optional(),
    installment_number: z.int().optional(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    status: z.enum(DEBIT_STATUSES),
    status_group: z.enum(STATUS_GROUPS),
    reason: z.string().nullable(),
    failure_reason: z.string().nullable(),
    return_code: z.string().nullable(),
    amount_cents: z.int(),
    currency: z.literal('usd'),
    payment_purpose: z.string(),
    description: z.string().nullable(),
    bank_account_id: id().nullable().describe('Null: the account that a payer gave is no account of the API'),
    account_last4: z.string(),
    effective_date: z.string().nullable().describe('When it takes effect; null until it is in a batch'),
    metadata: z.record(z.string(), z.string()).describe('Empty: payment sessions have none'),
    created_at: z.iso.datetime({ precision: 3 }),
    updated_at: z.iso.datetime({ precision: 3 }),
  })
  .meta({ id: 'AchTransaction' })

const bound = (description: string) => z.union([date(), time()]).optional().describe(description)

export const achTransactionEndpoints = [
  endpoint({
    operation: 'listAchTransactions',
    method: 'GET',
    path: '/ach/transactions',
    summary: 'List bank debits, newest first unless sorted otherwise',
    description:
      '`status` takes, in any case, a status or a group (`in_flight`, `money_landed`, `failed`); `PENDING` is `in_flight`, ' +
      '`COMPLETED` is `money_landed`.',
    access: partner,
    query: z.object({
      ...page,
      carrier_id: id().optional(),
      employer_id: id().optional(),
      policy_id: id().optional(),
      status: text(40).optional(),
      from_date: bound('Created at or after; a date or a time'),
      to_date: bound('Created at or before; of a date its whole day, UTC'),
      sort_by: word(...SORTS).default('created_at'),
      sort_order: word('asc', 'desc').default('desc'),
    }),
    answers: { 200: z.array(Transaction).readonly() },
    pagination,
    async handle({ host: { app }, caller, query }) {
      const wanted = pageOf(query)
      const { carrier_id = null, employer_id = null, policy_id = null, status, from_date, to_date } = query
      const filter = {
        ...{ carrierId: carrier_id, employerId: employer_id, policyId: policy_id },
        statuses: status === undefined ? null : statusesOf(status),
        from: boundOf(from_date, 'T00:00:00.000Z'),
        to: boundOf(to_date, 'T23:59:59.999Z'),
      }
      const sorting = { sort: query.sort_by, order: query.sort_order }
      const { items, total } = await listTransactions(app, caller.client, filter, sorting, wanted)
      return listAnswer(wanted, { items: items.map(shown), total })
    },
  }),
]

/** A bound in ISO 8601. @param ofDate what a date is taken for. */
function boundOf(value: string | number | undefined, ofDate: string): string | null {
  if (value === undefined) return null
  return typeof value === 'number' ? isoTime(value) : `${value}${ofDate}`
}

function shown(debit: BankDebit) {
  const { leg_id, payment_session_id, installment_number } = debit
  return {
    ...{ transaction_id: leg_id, leg_id },
    ...(payment_session_id === null ? {} : { payment_session_id }),
    ...(installment_number === null ? {} : { installment_number }),
    ...{ employer_id: debit.employer_id, carrier_id: debit.carrier_id, policy_id: debit.policy_id },
    ...{ status: debit.status, status_group: groupOf(debit.status), reason: null, failure_reason: null },
    return_code: debit.return_code,
    ...{ amount_cents: debit.amount_cents, currency: 'usd' as const },
    ...{ payment_purpose: debit.payment_purpose, description: debit.description },
    ...{ bank_account_id: null, account_last4: debit.account.account_last4 },
    ...{ effective_date: debit.effective_date, metadata: {} },
    ...{ created_at: debit.created_at, updated_at: debit.updated_at },
  }
}

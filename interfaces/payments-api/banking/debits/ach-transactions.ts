import { z } from 'zod'
import { historyOf } from '../../../../application/banking/debits/transaction-history.ts'
import { statusesOf, transactionOf } from '../../../../application/banking/debits/transactions.ts'
import { readLedger, SORTS } from '../../../../application/banking/reconciliation/ledger.ts'
import { bound, FROM, firstMoment, inOrder, lastMoment, TO } from '../../../endpoints/bounds.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, ofOne, reference, text, word } from '../../../endpoints/fields.ts'
import { listAnswer, listed, listOf, narrowing, page, pageOfAll } from '../../../endpoints/lists.ts'
import { endpoint } from '../../host/api.ts'
import { AchTransaction, HistoryEntry, shownRow } from './ach-transaction-schemas.ts'

const one = ofOne('transaction_id', 'transaction')

export const achTransactionEndpoints = [
  endpoint({
    operation: 'listAchTransactions',
    route: 'GET /ach/transactions',
    summary: 'List bank debits and records of the legacy service, newest first unless sorted otherwise',
    description:
      '`status` takes, in any case, a status or a group (`in_flight`, `money_landed`, `failed`); `PENDING` is `in_flight`, ' +
      '`COMPLETED` is `money_landed`. A group finds the words of the legacy service, too; `at_sb` and `file_transmitted` ' +
      'are found as both of the first two.',
    ...listOf(AchTransaction),
    query: inOrder(
      z.object({
        ...page,
        carrier_id: narrowing(reference()),
        employer_id: narrowing(reference()),
        policy_id: narrowing(reference()),
        status: text(40).optional(),
        from_date: bound(`Created ${FROM}`),
        to_date: bound(`Created ${TO}`),
        sort_by: word(...SORTS).default('created_at'),
        sort_order: word('asc', 'desc').default('desc'),
      }),
      'from_date',
      'to_date',
    ),
    handle({ host: { app }, caller, query }) {
      const { status, from_date, to_date, sort_by: sort, sort_order: order } = query
      const filter = {
        ...query,
        statuses: status === undefined ? null : statusesOf(status),
        from: firstMoment(from_date),
        to: lastMoment(to_date),
      }
      return listed(
        query,
        (wanted) => readLedger(app, caller.client, filter, { sort, order }, wanted),
        shownRow,
      )
    },
  }),
  endpoint({
    operation: 'showAchTransactionHistory',
    route: 'GET /ach/transactions/{transaction_id}/history',
    summary: 'Show what happened to a transaction, oldest first',
    ...one,
    ...listOf(HistoryEntry),
    refuses: { 403: ['transaction_out_of_scope'] },
    async handle({ host: { app }, caller, params, query }) {
      const transaction = accepted(await transactionOf(app, caller.client, params.transaction_id))
      return listAnswer(query, pageOfAll(query, await historyOf(app, transaction)))
    },
  }),
  endpoint({
    operation: 'showAchTransactionFees',
    route: 'GET /ach/transactions/{transaction_id}/fees',
    summary: 'Show the fees of a transaction: the service takes none',
    ...one,
    answers: {
      200: z
        .object({
          transaction_id: id(),
          fees: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
          total_cents: z.int(),
        })
        .meta({ id: 'AchTransactionFees' }),
    },
    refuses: { 403: ['transaction_out_of_scope'] },
    async handle({ host: { app }, caller, params: { transaction_id } }) {
      accepted(await transactionOf(app, caller.client, transaction_id))
      return { transaction_id, fees: [], total_cents: 0 }
    },
  }),
]

import { z } from 'zod'
import { listDebits, resolveQuarantine, type Verdict } from '../../application/banking/operator-debits.ts'
import { debitSource } from '../../domain/banking/bank-debit-events.ts'
import { type BankDebit, DEBIT_STATUSES, effectiveDateOf } from '../../domain/banking/bank-debit-state.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { id, idOf, optional, text, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { contextOf, endpoint, notFound, operator } from './api.ts'
import { scope, scopeOf } from './lists.ts'
import { shownTime } from './values.ts'

const shownDate = () => z.string().meta({ format: 'date' })

const Debit = z
  .object({
    transaction_id: id(),
    tenant_id: id(),
    environment: z.enum(['live', 'sandbox']),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    source: debitSource.describe('Where it comes from'),
    status: z.enum(DEBIT_STATUSES),
    reason: z.string().nullable().describe('Why a gate stopped it; null where none did'),
    amount_cents: z.int(),
    account_last4: z.string(),
    effective_date: shownDate().nullable(),
    entry_date: shownDate().nullable().describe('The banking day of its entry; null until it is in a batch'),
    batch_closes_at: shownTime().nullable(),
    return_code: z.string().nullable(),
    ingested_at: shownTime().describe('When its source was first accepted'),
    created_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorDebit' })

const params = z.object({ transaction_id: idOf('bank debit') })
const body = z.object({
  note: optional(text()).describe(
    'Why, for the history of the debit, which partners read. Names nobody: it is kept as it is',
  ),
})
const errors = {
  404: 'There is no such bank debit',
  409: 'The verb does not fit how the debit stands; nothing is changed',
} as const

export const debitEndpoints = [
  endpoint({
    operation: 'listDebits',
    method: 'GET',
    path: '/debits',
    summary: 'List bank debits, newest first',
    description: 'Those with the status `quarantined` wait for an operator.',
    access: operator,
    query: z.object({
      ...page,
      ...scope,
      employer_id: id().optional(),
      status: word(...DEBIT_STATUSES).optional(),
    }),
    answers: { 200: z.array(Debit).readonly() },
    pagination,
    command: {
      name: 'debits list',
      columns: {
        'transaction id': 'transaction_id',
        created: 'created_at',
        source: 'source',
        status: 'status',
        reason: 'reason',
        amount: 'amount_cents',
        employer: 'employer_id',
        effective: 'effective_date',
      },
    },
    async handle({ host: { app }, query }) {
      const wanted = pageOf(query)
      const { employer_id: employerId = null, status = null } = query
      const { items, total } = await listDebits(app, { ...scopeOf(query), employerId, status }, wanted)
      return listAnswer(wanted, { items: items.map(shown), total })
    },
  }),
  endpoint({
    operation: 'releaseDebit',
    method: 'POST',
    path: '/debits/{transaction_id}/release',
    summary: 'Let a bank debit out of quarantine, or raise anew what a record of the legacy service stopped',
    description:
      'It waits for the next run of the batch worker, where every gate looks at it; of one out of quarantine all but ' +
      'the one that put it there. A record that still has its premium stops it again: correct the record first.',
    access: operator,
    params,
    body,
    answers: { 200: Debit },
    errors,
    command: { name: 'debits release' },
    handle: (call) => resolved(call, 'Release'),
  }),
  endpoint({
    operation: 'rejectDebit',
    method: 'POST',
    path: '/debits/{transaction_id}/reject',
    summary: 'End a bank debit in quarantine: it has failed',
    access: operator,
    params,
    body,
    answers: { 200: Debit },
    errors,
    command: { name: 'debits reject' },
    handle: (call) => resolved(call, 'Reject'),
  }),
]

type DebitCall = Parameters<typeof contextOf>[0] & {
  readonly params: { readonly transaction_id: string }
  readonly body: { readonly note: string | null }
}

async function resolved(call: DebitCall, verdict: Verdict['verdict']) {
  const { transaction_id } = call.params
  if (!isId(transaction_id)) throw notFound(errors[404])
  const { note } = call.body
  return shown(
    accepted(await resolveQuarantine(call.host.app, transaction_id, { verdict, note }, contextOf(call))),
  )
}

function shown(debit: BankDebit) {
  const { leg_id, tenant_id, environment, employer_id, carrier_id, policy_id, source, account } = debit
  const { status, reason, amount_cents, entry_date, batch_closes_at, return_code } = debit
  const { ingested_at, created_at, updated_at } = debit
  return {
    transaction_id: leg_id,
    tenant_id,
    environment,
    employer_id,
    carrier_id,
    policy_id,
    source,
    status,
    reason,
    amount_cents,
    account_last4: account.account_last4,
    effective_date: effectiveDateOf(debit),
    entry_date,
    batch_closes_at,
    return_code,
    ingested_at,
    created_at,
    updated_at,
  }
}

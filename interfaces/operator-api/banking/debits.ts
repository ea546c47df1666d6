import { z } from 'zod'
import {
  listDebits,
  resolveQuarantine,
  type Verdict,
} from '../../../application/banking/debits/operator-debits.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { debitSource } from '../../../domain/banking/debits/bank-debit-events.ts'
import {
  type BankDebit,
  DEBIT_STATUSES,
  effectiveDateOf,
} from '../../../domain/banking/debits/bank-debit-state.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne, optional, text, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { DEBIT_STATES } from '../../endpoints/state-codes.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { forSecond, PendingAction } from '../host/second-operator.ts'
import { shownTime, whose } from '../host/values.ts'

const shownDate = () => z.string().meta({ format: 'date' })

const Debit = z
  .object({
    transaction_id: id(),
    ...whose,
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

const one = ofOne('transaction_id', 'bank debit')
const body = z.object({
  note: optional(text()).describe(
    'Why, for the history of the debit, which partners read. Names nobody: it is kept as it is',
  ),
})
const errors = {
  ...one.errors,
  409: 'The verb does not fit how the debit stands; nothing is changed',
} as const

export const debitEndpoints = [
  endpoint({
    operation: 'listDebits',
    route: 'GET /debits',
    summary: 'List bank debits, newest first',
    description: 'Those with the status `quarantined` wait for an operator.',
    ...listOf(Debit, {
      ...scope,
      employer_id: narrowing(id()),
      status: narrowing(word(...DEBIT_STATUSES)),
    }),
    columns:
      'transaction_id created_at source status reason amount_cents employer_id effective:effective_date',
    handle: handleList(listDebits, shown),
  }),
  endpoint({
    operation: 'showDebit',
    route: 'GET /debits/{transaction_id}',
    summary: 'Show a bank debit',
    ...one,
    answers: { 200: Debit },
    handle: async ({ host, params }) =>
      shown(await loaded(host, bankDebit, params.transaction_id, 'bank debit')),
  }),
  endpoint({
    operation: 'releaseDebit',
    route: 'POST /debits/{transaction_id}/release',
    summary: 'Let a bank debit out of quarantine, or raise anew what a record of the legacy service stopped',
    description:
      'The debit waits for the next run of the batch worker, where every gate looks at it; of one out of quarantine all but ' +
      'the one that put it there. A record that still has its premium stops it again: correct the record first.',
    ...one,
    body,
    answers: { 200: Debit, 202: PendingAction },
    errors,
    refuses: {
      409: DEBIT_STATES,
    },
    async handle(call) {
      const { transaction_id } = call.params
      if (!call.host.services.needsSecondOperator) return new Answer(200, await resolved(call, 'Release'))
      const { app } = call.host
      const { note } = call.body
      const debit = await loaded(call.host, bankDebit, transaction_id, 'bank debit')
      accepted(bankDebit.decide({ type: 'Release', note, at: app.clock.now() }, debit))
      return forSecond(call, { operation: 'releaseDebit', targets: [transaction_id], reason: note })
    },
  }),
  endpoint({
    operation: 'rejectDebit',
    route: 'POST /debits/{transaction_id}/reject',
    summary: 'End a bank debit in quarantine: it has failed',
    ...one,
    body,
    answers: { 200: Debit },
    errors,
    refuses: {
      409: DEBIT_STATES,
    },
    handle: (call) => resolved(call, 'Reject'),
  }),
]

type DebitCall = Parameters<typeof contextOf>[0] & {
  readonly params: { readonly transaction_id: string }
  readonly body: { readonly note: string | null }
}

async function resolved(call: DebitCall, verdict: Verdict['verdict']) {
  const { host, params, body } = call
  const decided = { verdict, note: body.note }
  return shown(accepted(await resolveQuarantine(host.app, params.transaction_id, decided, contextOf(call))))
}

function shown(debit: BankDebit) {
  const { leg_id: transaction_id, account } = debit
  const { account_last4 } = account
  return { ...debit, transaction_id, account_last4, effective_date: effectiveDateOf(debit) }
}

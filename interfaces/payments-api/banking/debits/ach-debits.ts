import { z } from 'zod'
import {
  createApiDebit,
  debitOfRequest,
  MOST_DEBIT_CENTS,
  prepareApiDebit,
} from '../../../../application/banking/debits/api-debits.ts'
import { cancelDebit } from '../../../../application/banking/debits/cancel-debit.ts'
import { debitOf, transactionOf } from '../../../../application/banking/debits/transactions.ts'
import { reportDebit } from '../../../../application/banking/files/bank-rail.ts'
import type { RailReport } from '../../../../application/ports/bank-rail.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { PAYMENT_PURPOSES } from '../../../../domain/banking/debits/bank-debit-events.ts'
import type { BankDebit } from '../../../../domain/banking/debits/bank-debit-state.ts'
import { isCalendarDate } from '../../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { createOrFind } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, momentOf, ofOne, optional, reference, text, word, wrongType } from '../../../endpoints/fields.ts'
import { returned, settlement } from '../../../endpoints/rail-reports.ts'
import { DEBIT_STATES } from '../../../endpoints/state-codes.ts'
import { contextOf, endpoint, keyed, partnerIn } from '../../host/api.ts'
import { metadata } from '../../host/metadata.ts'
import { AT_CREATION, shownState, TransactionState } from './ach-transaction-schemas.ts'

const one = ofOne('transaction_id', 'transaction')
const AMOUNT = `must be a whole number of cents from 1 to ${MOST_DEBIT_CENTS}`
const DATE =
  'must be an existing date in ISO 8601, like 2026-01-31 or 2026-01-31T12:00:00Z, until the year 9998'
/** The banking day after it is in the year 9999 at the latest. */
const LAST_DATE = '9998-12-31'

/** Cents of one debit. */
function amountCents() {
  return z.int(wrongType(AMOUNT)).min(1, AMOUNT).max(MOST_DEBIT_CENTS, AMOUNT)
}

/** A key in a body. */
export function bodyKey() {
  return z
    .string()
    .regex(/\S/, 'must not be empty')
    .max(255)
    .describe(
      'Of the tenant and environment, for debits and entries of collections alike: the same again answers the first transaction',
    )
}

/** A day, also as the beginning of a time: it is taken as it is written there. */
function day() {
  return z
    .string(wrongType(DATE))
    .refine((value) => isCalendarDate(value) || momentOf(value) !== null, DATE)
    .refine((value) => value.slice(0, 10) <= LAST_DATE, DATE)
    .transform((value) => value.slice(0, 10))
    .meta({ description: 'A date, or a time, of which the date as it stands there counts' })
}

const newDebit = z.object({
  employer_id: reference(),
  carrier_id: reference(),
  policy_id: reference(),
  bank_account_id: reference().describe('An ACH account, or a bank account that is tied to exactly one'),
  amount_cents: amountCents(),
  payment_purpose: word(...PAYMENT_PURPOSES),
  description: optional(text()),
  idempotency_key: optional(bodyKey()),
  effective_date: optional(day()).describe('The day on which the bank shall book it, at the earliest'),
  metadata: metadata({ hasOwnPairs: false }),
})

const CreatedDebit = z
  .object({
    success: z.literal(true),
    transaction_id: id(),
    status: z.literal('PENDING').describe(AT_CREATION),
    amount: z.int().describe('Cents'),
  })
  .meta({ id: 'CreatedAchDebit' })

export const achDebitEndpoints = [
  endpoint({
    operation: 'createAchDebit',
    route: 'POST /ach/debits',
    summary: 'Debit a bank account of an employer',
    description:
      'Whether it is collected is decided later, by gates that no field of the request moves: read its status for a ' +
      '`reason`. No webhook tells of it.',
    body: newDebit,
    idempotent: 'The same key and body are answered as the first time, with 200; another body is 409',
    answers: {
      201: CreatedDebit,
      200: CreatedDebit.describe('The key was used before: this is its transaction'),
    },
    errors: {
      403: 'The key is not for payments, or does not reach employer or carrier',
      404: 'Employer, carrier, policy or account is not there; the message names which',
      409: 'The account is disabled, or the key was used for another debit: `id`',
    },
    refuses: {
      400: ['account_mismatch', 'policy_mismatch'],
      403: ['carrier_out_of_scope', 'employer_out_of_scope', 'out_of_scope', 'policy_out_of_scope'],
      404: ['ach_account_not_found', 'carrier_not_found', 'employer_not_found', 'policy_not_found'],
      409: ['account_disabled', 'account_unlisted', 'collection_refused', 'debit_key_reused'],
    },
    handle(call) {
      const { host, caller, body } = call
      const { app } = host
      const { client } = caller
      return createOrFind(keyed(call), 'POST /ach/debits', {
        prepare: (context) => prepareApiDebit(app, client, body, context),
        async create(context, prepared) {
          const arranged = await createApiDebit(app, client, body, prepared, context)
          if (isRejection(arranged)) return arranged
          const { debit, isNew } = arranged
          return { isNew, id: debit.leg_id, shown: showCreated(debit) }
        },
        tells: {
          decider: bankDebit,
          idOf: ({ debitId }) => debitId,
          async answerOf(id) {
            const debit = await debitOfRequest(app, client, body, id)
            return debit && { status: 201, body: showCreated(debit), createdId: id }
          },
        },
      })
    },
  }),
  endpoint({
    operation: 'showAchDebitStatus',
    route: 'GET /ach/debits/{transaction_id}/status',
    summary: 'Show how a debit stands',
    description: 'Of a debit that a gate stopped, `status_group` and `reason` tell so.',
    ...one,
    answers: { 200: TransactionState },
    refuses: { 403: ['transaction_out_of_scope'] },
    async handle({ host: { app }, caller, params }) {
      return shownState(accepted(await transactionOf(app, caller.client, params.transaction_id)))
    },
  }),
  endpoint({
    operation: 'cancelAchDebit',
    route: 'POST /ach/debits/{transaction_id}/cancel',
    summary: 'Cancel a debit before its batch closes; cancelling again changes nothing',
    ...one,
    body: z.object({}),
    answers: { 200: TransactionState },
    errors: { ...one.errors, 409: 'Its batch has closed, or it has ended' },
    refuses: {
      403: ['transaction_out_of_scope'],
      409: [
        ...DEBIT_STATES,
        'batch_closed',
        'debit_of_session',
        'debit_presented_again',
        'legacy_transaction',
      ],
    },
    async handle(call) {
      const { app } = call.host
      const debit = accepted(await debitOf(app, call.caller.client, call.params.transaction_id))
      const cancelled = accepted(await cancelDebit(app, debit.leg_id, contextOf(call)))
      return shownState({ kind: 'debit', debit: cancelled })
    },
  }),
]

function showCreated({ leg_id, amount_cents }: BankDebit) {
  return { success: true, transaction_id: leg_id, status: 'PENDING', amount: amount_cents } as const
}

const sandbox = partnerIn('sandbox', 'What banks report can be simulated with sandbox keys only')

/** What in the sandbox happens to debits as it otherwise would at the bank. */
function simulation<Body extends z.ZodObject>(
  declared: { readonly verb: RailReport['verb']; readonly operation: string; readonly summary: string },
  body: Body,
  reportOf: (body: z.output<Body>) => RailReport,
) {
  return endpoint({
    operation: declared.operation,
    route: `POST /sandbox/ach/debits/{transaction_id}/${declared.verb}`,
    summary: declared.summary,
    description:
      'A report that does not fit how the debit stands is 409, and changes nothing. With a sandbox key only.',
    access: sandbox,
    ...one,
    body,
    answers: { 200: TransactionState },
    errors: {
      ...one.errors,
      403: 'The key is not of the sandbox, or does not reach the debit',
      409: 'The report does not fit how the debit stands',
    },
    refuses: {
      403: ['transaction_out_of_scope'],
      404: ['transaction_not_found'],
      409: DEBIT_STATES,
    },
    async handle(call) {
      const { app } = call.host
      const debit = accepted(await debitOf(app, call.caller.client, call.params.transaction_id))
      const report = reportOf(call.body as z.output<Body>)
      const reported = accepted(await reportDebit(app, debit.leg_id, report, contextOf(call)))
      return shownState({ kind: 'debit', debit: reported })
    },
  })
}

export const debitSandboxEndpoints = [
  simulation(
    {
      verb: 'acknowledge',
      operation: 'simulateDebitAcknowledged',
      summary: 'Let the bank have the file with a debit',
    },
    z.object({}),
    () => ({ verb: 'acknowledge' }),
  ),
  simulation(
    {
      verb: 'settle',
      operation: 'simulateDebitSettled',
      summary: 'Let the processor report a debit settled',
    },
    settlement,
    (settlement) => ({ verb: 'settle', settlement }),
  ),
  simulation(
    { verb: 'return', operation: 'simulateDebitReturned', summary: 'Let the bank return a debit' },
    returned,
    ({ return_code }) => ({ verb: 'return', return_code }),
  ),
]

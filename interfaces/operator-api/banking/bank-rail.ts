import { z } from 'zod'
import { listCredits, receiveCredit } from '../../../application/banking/credits/bank-credits.ts'
import { runBatch } from '../../../application/banking/debits/batch-worker.ts'
import { reportDebit, representDebit } from '../../../application/banking/files/bank-rail.ts'
import { reportLegacyRecord } from '../../../application/banking/legacy/legacy-collections.ts'
import type { RailReport } from '../../../application/ports/bank-rail.ts'
import { type BankCredit, bankCredit, type CreditMatch } from '../../../domain/banking/credits/bank-credit.ts'
import {
  type BankDebit,
  DEBIT_STATUSES,
  effectiveDateOf,
} from '../../../domain/banking/debits/bank-debit-state.ts'
import { LEGACY_STATUSES, type LegacyCollection } from '../../../domain/banking/legacy/legacy-collection.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { date, id, ofOne, optional, text, wholeNumber, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing, page } from '../../endpoints/lists.ts'
import { returned, settlement } from '../../endpoints/rail-reports.ts'
import { DEBIT_STATES, LEGACY_STATES } from '../../endpoints/state-codes.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { withNote } from '../host/values.ts'

const Debit = z
  .object({
    transaction_id: id(),
    leg_id: id(),
    status: z.enum([...new Set([...DEBIT_STATUSES, ...LEGACY_STATUSES])]),
    reason: z.string().nullable(),
    amount_cents: z.int(),
    effective_date: z.string().nullable(),
    entry_date: z.string().nullable(),
    batch_closes_at: z.string().nullable(),
    return_code: z.string().nullable(),
    settled_on: z.string().nullable(),
    matched: z.boolean(),
  })
  .meta({ id: 'BankDebit' })

const match = {
  matched: z.boolean(),
  leg_id: id().nullable(),
  confidence: z.enum(['high', 'medium', 'low']).nullable(),
}
const Credit = z.object({ credit_id: id(), ...match }).meta({ id: 'BankCredit' })
const ListedCredit = z
  .object({
    credit_id: id(),
    tenant_id: id(),
    carrier_id: id(),
    bank_transaction_id: z.string(),
    bank_date: z.string().meta({ format: 'date' }),
    amount_cents: z.int(),
    reference: z.string().nullable(),
    received_at: z.string().meta({ format: 'date-time' }),
    ...match,
  })
  .meta({ id: 'ListedBankCredit' })

const BatchRun = z
  .object({
    scheduled: z.int().describe('Put into their batches'),
    failed: z.int().describe('Stopped by the billing gate'),
    legacy_collected: z.int(),
    cancelled: z.int().describe('Accepted before the cutoff'),
    quarantined: z.int(),
    unreadable: z
      .int()
      .describe('Left as they were: their events, or those of their policies, cannot be read'),
  })
  .describe('How many debits came to what')
  .meta({ id: 'DebitBatchRun' })

const one = ofOne('leg_id', 'bank debit')
const errors = {
  ...one.errors,
  409: 'The verb does not fit how the debit stands; nothing is changed',
} as const
const NOTE = 'Simulates what a bank reports, on the simulated bank rail.'
const OF_RECORDS =
  'What the bank reports of a debit that the legacy service has sent is told by its record, on every bank rail.'

const RAIL_STATES = [...DEBIT_STATES, 'debit_presented_again', 'rail_not_simulated'] as const
const REFUSED = [...RAIL_STATES, ...LEGACY_STATES] as const

export const bankRailEndpoints = [
  endpoint({
    operation: 'acknowledgeDebit',
    route: 'POST /bank-rail/{leg_id}/acknowledge',
    summary: 'The bank has the file with a debit',
    description: `${NOTE} ${OF_RECORDS}`,
    ...one,
    body: z.object({}),
    answers: { 200: Debit },
    errors,
    refuses: {
      409: REFUSED,
    },
    handle: (call) => reported(call, { verb: 'acknowledge' }),
  }),
  endpoint({
    operation: 'settleDebit',
    route: 'POST /bank-rail/{leg_id}/settle',
    summary: 'The processor reports how a debit stands',
    description: `${NOTE} No word, and the documented words of settlement, settle it; any other word is kept and settles nothing.`,
    ...one,
    body: settlement,
    answers: { 200: Debit },
    errors,
    refuses: {
      409: [...RAIL_STATES, 'legacy_collection_settles_itself'],
    },
    handle: (call) => reported(call, { verb: 'settle', settlement: call.body }),
  }),
  endpoint({
    operation: 'returnDebit',
    route: 'POST /bank-rail/{leg_id}/return',
    summary: 'The bank returns a debit',
    description: `${NOTE} ${OF_RECORDS}`,
    ...one,
    body: returned,
    answers: { 200: Debit },
    errors,
    refuses: {
      409: REFUSED,
    },
    handle: (call) => reported(call, { verb: 'return', ...call.body }),
  }),
  endpoint({
    operation: 'representDebit',
    route: 'POST /debits/{transaction_id}/represent',
    summary:
      'Present a debit again that was returned with R01 or R09: it goes with the batch that closes next',
    description: 'Twice at the most, within 180 days of its first entry; its statement says RETRY PYMT.',
    params: ofOne('transaction_id', 'bank debit').params,
    body: withNote,
    answers: { 200: Debit },
    errors: {
      ...one.errors,
      409: 'The debit was not returned, or with another code, or may not be presented again; nothing is changed',
    },
    refuses: {
      409: [
        ...DEBIT_STATES,
        'ach_account_disabled',
        'not_representable',
        'representment_too_late',
        'representments_used_up',
      ],
    },
    async handle(call) {
      const { host, params, body } = call
      return shown(
        accepted(await representDebit(host.app, params.transaction_id, body.note, contextOf(call))),
      )
    },
  }),
  endpoint({
    operation: 'runDebitBatch',
    route: 'POST /debit-batches',
    summary: 'Run the batch worker now: each debit that waits goes into its batch, or a gate stops it',
    body: z.object({}),
    answers: { 200: BatchRun },
    command: { name: 'debit-batches run' },
    handle: (call) => runBatch(call.host.app, contextOf(call)),
  }),
  endpoint({
    operation: 'receiveBankCredit',
    route: 'POST /bank-credits',
    summary: 'Record money in a carrier’s collection account, and find the debit that it is of',
    description: 'The same transaction of the bank again changes nothing.',
    body: z.object({
      carrier_id: id(),
      bank_transaction_id: text(200),
      bank_date: date(),
      amount_cents: wholeNumber().min(1),
      reference: optional(text(200)).describe('The debit that it is for'),
    }),
    answers: {
      201: Credit,
      200: Credit.describe('The credit had been received before'),
    },
    errors: { 404: 'There is no such carrier' },
    command: { name: 'bank-credits add' },
    refuses: { 404: ['carrier_not_found'] },
    async handle(call) {
      const received = accepted(await receiveCredit(call.host.app, call.body, contextOf(call)))
      const { credit_id, match } = received.credit
      return new Answer(received.isNew ? 201 : 200, { credit_id, ...shownMatch(match) })
    },
  }),
  endpoint({
    operation: 'listBankCredits',
    route: 'GET /bank-credits',
    summary: 'List the money in carriers’ collection accounts, and the debits that it is of, latest first',
    ...listOf(ListedCredit),
    query: z.object({
      tenant_id: narrowing(id()),
      carrier_id: narrowing(id()),
      matched: narrowing(word('true', 'false')).describe('Whether a debit was found that it is of'),
      ...page,
    }),
    columns: 'credit_id bank_date cents:amount_cents debit:leg_id confidence',
    handle({ host: { app }, query }) {
      const scope = { ...query, matched: query.matched && query.matched === 'true' }
      return listed(query, (wanted) => listCredits(app, scope, wanted), shownCredit)
    },
  }),
  endpoint({
    operation: 'showBankCredit',
    route: 'GET /bank-credits/{credit_id}',
    summary: 'Show money in the collection account of a carrier, and the debit that it is of',
    ...ofOne('credit_id', 'bank credit'),
    answers: { 200: ListedCredit },
    handle: async ({ host, params }) =>
      shownCredit(await loaded(host, bankCredit, params.credit_id, 'bank credit')),
  }),
]

function shownCredit(credit: BankCredit) {
  return { ...credit, ...shownMatch(credit.match) }
}

function shownMatch(match: CreditMatch | null) {
  const { debitId: leg_id = null, confidence = null } = match ?? {}
  return { matched: match !== null, leg_id, confidence }
}

type DebitCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly leg_id: string } }

async function reported(call: DebitCall, report: RailReport) {
  const { leg_id } = call.params
  const reported = await reportDebit(call.host.app, leg_id, report, contextOf(call))
  if (isRejection(reported) && reported.kind === 'not_found') {
    const record = await reportLegacyRecord(call.host.app, leg_id, report, contextOf(call))
    if (record) return shownRecord(accepted(record))
  }
  return shown(accepted(reported))
}

function shown(debit: BankDebit) {
  return {
    ...debit,
    transaction_id: debit.leg_id,
    effective_date: effectiveDateOf(debit),
    settled_on: debit.settlement?.settled_on ?? null,
    matched: debit.match !== null,
  }
}

/** A record of the legacy service, which the bank reports on as on any debit. */
function shownRecord({ transaction_id, premium_cents, period_end, ...record }: LegacyCollection) {
  const whose = { transaction_id, leg_id: transaction_id, amount_cents: premium_cents }
  const none = { reason: null, entry_date: null, batch_closes_at: null, settled_on: null, matched: false }
  return { ...record, ...whose, ...none, effective_date: period_end }
}

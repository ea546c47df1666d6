import { z } from 'zod'
import { type NewBankCredit, receiveCredit } from '../../application/banking/bank-credits.ts'
import { tellDebit } from '../../application/banking/bank-rail.ts'
import { runBatch } from '../../application/banking/debit-batches.ts'
import type { RailReport } from '../../application/ports/bank-rail.ts'
import { type BankDebit, DEBIT_STATUSES } from '../../domain/banking/bank-debit.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { Answer, accepted } from '../endpoints/endpoint.ts'
import { date, id, idOf, optional, text, wholeNumber } from '../endpoints/fields.ts'
import { contextOf, endpoint, notFound, operator } from './api.ts'

const Debit = z
  .object({
    transaction_id: id(),
    leg_id: id(),
    status: z.enum(DEBIT_STATUSES),
    amount_cents: z.int(),
    effective_date: z.string().nullable(),
    batch_closes_at: z.string().nullable(),
    return_code: z.string().nullable(),
    settled_on: z.string().nullable(),
    matched: z.boolean(),
  })
  .meta({ id: 'BankDebit' })

const Credit = z
  .object({
    credit_id: id(),
    matched: z.boolean(),
    leg_id: id().nullable(),
    confidence: z.enum(['high', 'medium', 'low']).nullable(),
  })
  .meta({ id: 'BankCredit' })

const params = z.object({ leg_id: idOf('bank debit') })
const errors = {
  404: 'There is no such bank debit',
  409: 'The verb does not fit how the debit stands; nothing is changed',
} as const
const NOTE = 'Plays what a bank reports, on the simulated bank rail.'

export const bankRailEndpoints = [
  endpoint({
    operation: 'acknowledgeDebit',
    method: 'POST',
    path: '/bank-rail/{leg_id}/acknowledge',
    summary: 'The bank has the file with a debit',
    description: NOTE,
    access: operator,
    params,
    body: z.object({}),
    answers: { 200: Debit },
    errors,
    command: { name: 'bank-rail acknowledge' },
    handle: (call) => told(call, { verb: 'acknowledge' }),
  }),
  endpoint({
    operation: 'settleDebit',
    method: 'POST',
    path: '/bank-rail/{leg_id}/settle',
    summary: 'The processor reports how a debit stands',
    description: `${NOTE} No word, and the documented words of settlement, settle it; any other word is kept and settles nothing.`,
    access: operator,
    params,
    body: z.object({
      processor_status: optional(text(100)),
      transmission_date: optional(date()),
      effective_date: optional(date()),
    }),
    answers: { 200: Debit },
    errors,
    command: { name: 'bank-rail settle' },
    handle: (call) =>
      told(call, {
        verb: 'settle',
        processorStatus: call.body.processor_status,
        transmissionDate: call.body.transmission_date,
        effectiveDate: call.body.effective_date,
      }),
  }),
  endpoint({
    operation: 'returnDebit',
    method: 'POST',
    path: '/bank-rail/{leg_id}/return',
    summary: 'The bank returns a debit',
    description: NOTE,
    access: operator,
    params,
    body: z.object({ return_code: z.string().regex(/^R\d{2}$/, 'must be a return code such as R01') }),
    answers: { 200: Debit },
    errors,
    command: { name: 'bank-rail return' },
    handle: (call) => told(call, { verb: 'return', returnCode: call.body.return_code }),
  }),
  endpoint({
    operation: 'runDebitBatch',
    method: 'POST',
    path: '/debit-batches',
    summary: 'Run the batch worker now: debits that wait go with the batch that closes next',
    access: operator,
    body: z.object({}),
    answers: { 200: z.object({ scheduled: z.int() }).meta({ id: 'DebitBatchRun' }) },
    command: { name: 'debit-batches run' },
    handle: (call) => runBatch(call.host.app, contextOf(call)),
  }),
  endpoint({
    operation: 'receiveBankCredit',
    method: 'POST',
    path: '/bank-credits',
    summary: 'Record money in a carrier’s collection account, and find the debit that it is of',
    description: 'The same transaction of the bank again changes nothing.',
    access: operator,
    body: z.object({
      carrier_id: id(),
      bank_transaction_id: text(200),
      bank_date: date(),
      amount_cents: wholeNumber().min(1),
      reference: optional(text(200)).describe('The leg that it is for'),
    }),
    answers: {
      201: Credit,
      200: Credit.describe('It had been received before'),
    },
    errors: { 404: 'There is no such carrier' },
    command: { name: 'bank-credits add' },
    async handle(call) {
      const { body } = call
      const credit: NewBankCredit = {
        carrierId: body.carrier_id,
        bankTransactionId: body.bank_transaction_id,
        bankDate: body.bank_date,
        amountCents: body.amount_cents,
        reference: body.reference,
      }
      const received = accepted(await receiveCredit(call.host.app, credit, contextOf(call)))
      const { credit_id, match } = received.credit
      const { legId: leg_id = null, confidence = null } = match ?? {}
      return new Answer(received.isNew ? 201 : 200, {
        ...{ credit_id, matched: match !== null, leg_id, confidence },
      })
    },
  }),
]

type DebitCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly leg_id: string } }

async function told(call: DebitCall, report: RailReport) {
  const { leg_id } = call.params
  if (!isId(leg_id)) throw notFound('There is no such bank debit')
  return shown(accepted(await tellDebit(call.host.app, leg_id, report, contextOf(call))))
}

function shown(debit: BankDebit) {
  const { leg_id, status, amount_cents, effective_date, batch_closes_at, return_code } = debit
  return {
    ...{ transaction_id: leg_id, leg_id, status, amount_cents, effective_date, batch_closes_at, return_code },
    settled_on: debit.settlement?.settled_on ?? null,
    matched: debit.match !== null,
  }
}

import { z } from 'zod'
import { applyByHand } from '../../../application/banking/files/apply-by-hand.ts'
import { listBankReports } from '../../../application/banking/files/list-files.ts'
import { decideReport } from '../../../application/banking/files/operator-decisions.ts'
import { RETURN_CODE_OF_RECEIVER } from '../../../domain/banking/debits/return-codes.ts'
import {
  BANK_REPORT_STATUSES,
  type BankReport,
  bankReport,
  PARKED_REPORTED,
} from '../../../domain/banking/files/bank-report.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { flagText, id, ofOne, text, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../endpoints/lists.ts'
import { inPath } from '../../endpoints/not-found.ts'
import { DEBIT_STATES } from '../../endpoints/state-codes.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { shownTime, withNote } from '../host/values.ts'

const Row = z
  .object({
    report_id: id(),
    name: z.string().describe('As it stood in the inbox'),
    status: z.enum(BANK_REPORT_STATUSES),
    format: z.enum(['nacha', 'answers']).nullable(),
    items: z.int(),
    applied: z.int(),
    repeated: z.int().describe('Items that told what was known'),
    parked: z.int().describe('Items that a person has yet to look at'),
    refusal: z.string().nullable().describe('Why nothing of it counts'),
    received_at: shownTime(),
  })
  .meta({ id: 'BankReportRow' })
const Item = z
  .object({
    line: z.int().describe('In the file'),
    kind: z.enum(['return', 'change', 'answer', 'other']),
    reason: z.string().describe('Why nothing followed from it'),
    code: z.string().nullable(),
    original_trace: z.string().nullable(),
    amount_cents: z.int().nullable(),
  })
  .meta({ id: 'ParkedBankItem' })
const Report = Row.omit({ parked: true })
  .extend({
    names: z.array(z.string()).readonly().describe('All names under which the same content came'),
    sha256: z.string(),
    bytes: z.int(),
    parked: z
      .array(Item)
      .readonly()
      .describe(
        `The first ${PARKED_REPORTED} at the most: others follow when it is read again, once these are resolved`,
      ),
    resolved: z.array(z.object({ line: z.int(), note: z.string().nullable(), at: shownTime() })).readonly(),
    applied_items: z
      .array(
        z.object({
          line: z.int(),
          transaction_id: id(),
          return_code: z.string(),
          reason: z.string(),
          at: shownTime(),
        }),
      )
      .readonly()
      .describe('Items that an operator applied to a debit; `applied` counts them as well'),
  })
  .meta({ id: 'BankReport' })

const one = ofOne('report_id', 'bank report')
const line = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'No item is parked under this line')
  .describe('The line of the report that brought the item')
const oneItem = one.params.extend({ line: inPath('parked_item_not_found', line) })

export const bankReportEndpoints = [
  endpoint({
    operation: 'listBankReports',
    route: 'GET /bank-reports',
    summary: 'List files that the bank reported with, newest first',
    ...listOf(Row, {
      status: narrowing(word(...BANK_REPORT_STATUSES)),
      parked: flagText().describe('Only those with parked items'),
    }),
    columns: 'report_id name status items parked received_at',
    handle: ({ host: { app }, query }) =>
      listed(query, (wanted) =>
        listBankReports(app, { ...query, leastParked: query.parked ? 1 : 0 }, wanted),
      ),
  }),
  endpoint({
    operation: 'showBankReport',
    route: 'GET /bank-reports/{report_id}',
    summary: 'Show a file that the bank reported with, and the items of it that are parked',
    ...one,
    answers: { 200: Report },
    handle: async ({ host, params }) =>
      shown(await loaded(host, bankReport, params.report_id, 'bank report')),
  }),
  endpoint({
    operation: 'readBankReportAgain',
    route: 'POST /bank-reports/{report_id}/read-again',
    summary: 'Read a report again: what was parked, or refused, may fit now',
    description: 'What was carried out is not carried out again.',
    ...one,
    body: z.object({}),
    answers: { 200: Report },
    handle: (call) => decided(call, { type: 'ReadAgain' }),
  }),
  endpoint({
    operation: 'resolveBankReportItem',
    route: 'POST /bank-reports/{report_id}/items/{line}/resolve',
    summary: 'Take note of a parked item: a person has seen to it',
    params: oneItem,
    body: withNote,
    answers: { 200: Report },
    errors: {
      404: 'There is no such bank report, or no item is parked under the line',
      409: 'The item was applied to a debit',
    },
    refuses: { 409: ['item_applied'] },
    handle: (call) =>
      decided(call, { type: 'Resolve', line: Number(call.params.line), note: call.body.note }),
  }),
  endpoint({
    operation: 'applyBankReportItem',
    route: 'POST /bank-reports/{report_id}/items/{line}/apply',
    summary: 'Apply a parked item to a debit: the bank returned it',
    description:
      'For a return that does not name its debit rightly, or has no code that can be read. The item is applied, and the ' +
      'debit returned, once; an item that was resolved can be applied still. The same again changes nothing.',
    params: oneItem,
    body: z.object({
      transaction_id: id().describe(
        'The debit: it stands in a file for the bank, and has the amount of the item',
      ),
      return_code: z
        .string()
        .regex(
          RETURN_CODE_OF_RECEIVER,
          'must be a return code, R01 to R85, and none of R61 to R77, by which a return is disputed',
        ),
      reason: text().describe('How that is known. Names nobody: it is kept as it is'),
    }),
    answers: { 200: Report },
    errors: {
      404: 'There is no such bank report, no item is parked under the line, or there is no such debit',
      409:
        'The item was applied to another debit or with another code, is no return, or has another amount than the debit; ' +
        'or the debit stands in no file, or in one that nobody has fetched, or does not come back as it stands. Nothing is changed',
    },
    refuses: {
      404: ['debit_not_found'],
      409: [
        ...DEBIT_STATES,
        'debit_in_no_file',
        'debit_presented_again',
        'item_amount_differs',
        'item_applied',
        'item_no_return',
      ],
    },
    async handle(call) {
      const { report_id, line } = call.params
      const item = { ...call.body, line: Number(line) }
      return shown(accepted(await applyByHand(call.host.app, report_id, item, contextOf(call))))
    },
  }),
]

type ReportCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly report_id: string } }
type Decision = Parameters<typeof decideReport>[2]
type Untimed<Command> = Command extends unknown ? Omit<Command, 'at'> : never

async function decided(call: ReportCall, decision: Untimed<Decision>) {
  const { app } = call.host
  const command = { ...decision, at: app.clock.now() } as Decision
  return shown(accepted(await decideReport(app, call.params.report_id, command, contextOf(call))))
}

function shown({ counts, applied: applied_items, at: received_at, ...report }: BankReport) {
  const { format = null, items = 0, applied = 0, repeated = 0 } = counts ?? {}
  return { ...report, format, items, applied, repeated, applied_items, received_at }
}

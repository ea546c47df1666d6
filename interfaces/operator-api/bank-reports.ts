import { z } from 'zod'
import { applyByHand } from '../../application/banking/bank-files/apply-by-hand.ts'
import { listBankReports } from '../../application/banking/bank-files/list-files.ts'
import { decideReport } from '../../application/banking/bank-files/operator-decisions.ts'
import {
  BANK_REPORT_STATUSES,
  type BankReport,
  bankReport,
  PARKED_TOLD,
} from '../../domain/banking/bank-report.ts'
import { RETURN_CODE_OF_RECEIVER } from '../../domain/banking/nacha/return-codes.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { flagText, id, idOf, optional, text, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { contextOf, endpoint, loaded, notFound, operator } from './api.ts'
import { shownTime } from './values.ts'

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
        `The first ${PARKED_TOLD} at the most: others follow when it is read again, once these are resolved`,
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

const params = z.object({ report_id: idOf('bank report') })
const NONE = { 404: 'There is no such bank report' } as const

export const bankReportEndpoints = [
  endpoint({
    operation: 'listBankReports',
    method: 'GET',
    path: '/bank-reports',
    summary: 'List files that the bank reported with, newest first',
    access: operator,
    query: z.object({
      ...page,
      status: word(...BANK_REPORT_STATUSES).optional(),
      parked: flagText().describe('Only those with parked items'),
    }),
    answers: { 200: z.array(Row).readonly() },
    pagination,
    command: {
      name: 'bank-reports list',
      columns: {
        'report id': 'report_id',
        name: 'name',
        status: 'status',
        items: 'items',
        parked: 'parked',
        received: 'received_at',
      },
    },
    async handle({ host: { app }, query }) {
      const wanted = pageOf(query)
      const scope = { status: query.status ?? null, leastParked: query.parked ? 1 : 0 }
      const { items, total } = await listBankReports(app, scope, wanted)
      return listAnswer(wanted, { items: items.map(({ seq: _seq, ...row }) => row), total })
    },
  }),
  endpoint({
    operation: 'showBankReport',
    method: 'GET',
    path: '/bank-reports/{report_id}',
    summary: 'Show a file that the bank reported with, and the items of it that are parked',
    access: operator,
    params,
    answers: { 200: Report },
    errors: NONE,
    command: { name: 'bank-reports show' },
    handle: async ({ host, params }) =>
      shown(await loaded(host, bankReport, params.report_id, 'bank report')),
  }),
  endpoint({
    operation: 'readBankReportAgain',
    method: 'POST',
    path: '/bank-reports/{report_id}/read-again',
    summary: 'Read a report again: what was parked, or refused, may fit now',
    description: 'What was carried out is not carried out again.',
    access: operator,
    params,
    body: z.object({}),
    answers: { 200: Report },
    errors: NONE,
    command: { name: 'bank-reports read-again' },
    handle: (call) => decided(call, { type: 'ReadAgain' }),
  }),
  endpoint({
    operation: 'resolveBankReportItem',
    method: 'POST',
    path: '/bank-reports/{report_id}/items/{line}/resolve',
    summary: 'Take note of a parked item: a person has seen to it',
    access: operator,
    params: params.extend({ line: z.string() }),
    body: z.object({ note: optional(text()).describe('Names nobody: it is kept as it is') }),
    answers: { 200: Report },
    errors: {
      404: 'There is no such bank report, or no item is parked under the line',
      409: 'The item was applied to a debit',
    },
    command: { name: 'bank-reports resolve' },
    handle: (call) =>
      decided(call, { type: 'Resolve', line: Number(call.params.line), note: call.body.note }),
  }),
  endpoint({
    operation: 'applyBankReportItem',
    method: 'POST',
    path: '/bank-reports/{report_id}/items/{line}/apply',
    summary: 'Apply a parked item to a debit: the bank returned it',
    description:
      'For a return that does not name its debit rightly, or has no code that can be read. The item is applied, and the ' +
      'debit returned, once; an item that was resolved can be applied still. The same again changes nothing.',
    access: operator,
    params: params.extend({ line: z.string() }),
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
    command: { name: 'bank-reports apply' },
    async handle(call) {
      const { report_id, line } = call.params
      const { transaction_id: transactionId, return_code: returnCode, reason } = call.body
      if (!isId(report_id)) throw notFound(NONE[404])
      const item = { line: Number(line), transactionId, returnCode, reason }
      return shown(accepted(await applyByHand(call.host.app, report_id, item, contextOf(call))))
    },
  }),
]

type ReportCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly report_id: string } }
type Decision = Parameters<typeof decideReport>[2]
type Untimed<Command> = Command extends unknown ? Omit<Command, 'at'> : never

async function decided(call: ReportCall, decision: Untimed<Decision>) {
  const { app } = call.host
  const { report_id } = call.params
  if (!isId(report_id)) throw notFound(NONE[404])
  const command = { ...decision, at: app.clock.now() } as Decision
  return shown(accepted(await decideReport(app, report_id, command, contextOf(call))))
}

function shown(report: BankReport) {
  const { report_id, name, names, status, sha256, bytes, counts, parked, resolved, refusal, at } = report
  const { format = null, items = 0, applied = 0, repeated = 0 } = counts ?? {}
  return {
    report_id,
    name,
    names,
    status,
    format,
    items,
    applied,
    repeated,
    parked,
    resolved: resolved.map(({ line, note, at }) => ({ line, note, at })),
    applied_items: report.applied,
    refusal,
    sha256,
    bytes,
    received_at: at,
  }
}

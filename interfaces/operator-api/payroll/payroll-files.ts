import { z } from 'zod'
import { fileOf, type ListedFile, listFiles } from '../../../application/payroll/list-files.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { noSuch } from '../../endpoints/not-found.ts'
import { endpoint } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const status = word('pending', 'NORMALIZED', 'failed')
const phase = z.enum(['pending', 'complete', 'failed'])

const PayrollFile = z
  .object({
    file_id: id(),
    kind: z.enum(['payroll', 'sync']).describe('Payroll rows, or changes of employees'),
    ...owner,
    employer_id: id(),
    policy_id: id().nullable().describe('Null of employee changes, as is whatever else they have not'),
    policy_number: z.string().nullable(),
    source: z.enum(['tool', 'report', 'inbound_webhook']).nullable(),
    sender_id: z.string().describe('Credential, key or connection that sent it'),
    submission_id: z.string().nullable().describe('What an agent was answered'),
    sync_id: z.string().nullable(),
    file_name: z.string().nullable(),
    status,
    error: z.string().nullable().describe('Why it failed'),
    rows: z.int(),
    period_start: z.string().nullable(),
    period_end: z.string().nullable(),
    phase_1_status: phase.describe('Validation'),
    green_rows: z.int(),
    red_rows: z.int(),
    phase_2_status: phase.describe('Auditable wages'),
    total_auditable_wages_cents: z.int(),
    phase_3_status: phase.describe('Premium'),
    total_premium_cents: z.int(),
    created_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorPayrollFile' })

export const payrollFileEndpoints = [
  endpoint({
    operation: 'listPayrollFiles',
    route: 'GET /payroll-files',
    summary: 'List payroll files and employee syncs, newest first',
    ...listOf(PayrollFile, {
      ...scope,
      employer_id: narrowing(id()),
      policy_id: narrowing(id()),
      kind: narrowing(word('payroll', 'sync')),
      status: narrowing(status),
    }),
    columns:
      'file_id kind created_at status policy:policy_number rows red:red_rows premium:total_premium_cents',
    handle: handleList(listFiles, shown),
  }),
  endpoint({
    operation: 'showPayrollFile',
    route: 'GET /payroll-files/{file_id}',
    summary: 'Show a payroll file or employee sync: where its phases stand, and why it failed',
    ...ofOne('file_id', 'payroll file'),
    answers: { 200: PayrollFile },
    async handle({ host, params }) {
      const file = await fileOf(host.app, params.file_id)
      if (!file) throw noSuch('payroll file')
      return shown(file)
    },
  }),
]

function shown({ source_kind: source, row_count: rows, ...file }: ListedFile) {
  return { ...file, source, rows }
}

import { z } from 'zod'
import type { Application } from '../../../application/commands/application.ts'
import { type CommandContext, newContext } from '../../../application/commands/command-context.ts'
import {
  type IdempotentAnswer,
  type IdempotentOutcome,
  oncePerKey,
} from '../../../application/commands/keyed-call.ts'
import { isRowTooLarge, MAX_ROW_BYTES } from '../../../application/commands/row-size.ts'
import { inTimeSlices } from '../../../application/commands/time-slices.ts'
import {
  findReportSubject,
  openNames,
  type PayrollReport,
  PipelineUnreachable,
  type ReportSender,
  type ReportSubject,
  reportPayroll,
  subjectOfAttempt,
  type TakenReport,
  takenReport,
} from '../../../application/payroll/report-payroll.ts'
import { MAX_ROWS, SYNCHRONOUS_ROWS } from '../../../application/payroll/submit-payroll.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import { normalizeFein } from '../../../domain/parties/fein.ts'
import { payrollFile } from '../../../domain/payroll/payroll-file.ts'
import { type Answer, accepted } from '../../endpoints/endpoint.ts'
import { REQUIRED } from '../../endpoints/faults.ts'
import { date, idOf, rows, TOLERANT, wrongType } from '../../endpoints/fields.ts'
import { HttpError } from '../../http/errors.ts'
import { connection } from '../access/access.ts'
import { answered, endpoint } from '../host/api.ts'

const FEIN = 'takes a string of 9 digits, with or without a hyphen after the second'

const Employee = z
  .looseObject({
    employee_id: z.string().optional().describe("The caller's own identifier of the person"),
    first_name: z.string().optional(),
    last_name: z.string().optional(),
    name: z.string().optional().describe('The whole name, where both parts are left out'),
    class_code: z.string().optional(),
    state: z.string().optional(),
    gross_wages: z.number().optional().describe('Dollars, overtime included'),
    hours_worked: z.number().optional().describe('With `rate`, instead of gross wages'),
    rate: z.number().optional().describe('Dollars per hour'),
    overtime: z.number().optional().describe('Dollars, as part of the gross wages'),
    check_date: date().optional(),
    pay_period_start: date().optional(),
    pay_period_end: date().optional(),
    ssn: z.string().optional().describe('Kept encrypted, never returned'),
  })
  .meta({
    id: 'ReportedEmployee',
    description:
      'Other fields are kept. A record that fails the row rules, or has values of other types, is a red row; ' +
      'one that is larger than 32 KiB is refused',
    [TOLERANT]: true,
  })

const Report = z
  .object({
    employer_fein: z
      .string(wrongType(FEIN))
      .trim()
      .min(1, REQUIRED)
      .refine((value) => normalizeFein(value) !== null, FEIN)
      .meta({
        description: '9 digits, with or without a hyphen after the second',
        pattern: '^\\d{2}-?\\d{7}$',
      }),
    policy_number: z.string().trim().min(1, REQUIRED).meta({ pattern: '\\S' }),
    employees: rows(Employee, MAX_ROWS),
    pay_period: z
      .object({ start_date: date(), end_date: date() })
      .refine(({ start_date, end_date }) => start_date <= end_date, {
        path: ['end_date'],
        message: 'lies before pay_period.start_date',
      })
      .nullish()
      .describe('`start_date` is not after `end_date`'),
  })
  .meta({ id: 'PayrollReport' })

const ReportAnswer = z
  .object({
    success: z.literal(true),
    file_id: z.string().nullable().describe(`Null above ${SYNCHRONOUS_ROWS} employees`),
    report_id: z
      .string()
      .optional()
      .describe('The id of the file in the background, where `file_id` is null'),
    status: z.enum(['completed', 'processing', 'failed']),
    environment: z.string(),
    employer: z.object({ id: z.string(), business_name: z.string(), fein: z.string() }),
    policy: z.object({ id: z.string(), policy_number: z.string() }),
    employee_count: z.int(),
    file_name: z.string(),
  })
  .meta({ id: 'ReportAnswer' })
type ReportAnswer = z.input<typeof ReportAnswer>

/** What the two endpoints that take reports have in common. */
const taking = {
  body: Report,
  rows: rowsOf,
  idempotent: 'The same key and body get the first answer again; another body is 409',
  answers: { 202: ReportAnswer },
} as const
const ERRORS = {
  400: 'The body is no JSON, or a field is missing or wrong',
  404: 'There is no such employer or active policy within the scope',
  409: 'The key was used for another body',
  413: 'Too many employees, or too large a body',
  502: 'The pipeline cannot be reached',
}

export const reportPayrollEndpoint = endpoint({
  ...taking,
  operation: 'reportPayroll',
  route: 'POST /payroll/reports',
  summary: 'Report the payroll of an employer for a policy',
  errors: ERRORS,
  refuses: { 400: ['too_many_rows'], 404: ['employer_not_found', 'policy_not_found'] },
  async handle({ host, caller, body, sent, key, unlessRepeated, requestId }) {
    const { client_id, tenant_id, environment } = caller.client
    const sender = {
      source: 'report',
      id: client_id,
      tenantId: tenant_id,
      environment,
      scope: caller.client,
    } as const
    const keys = { header: key, signature: null }
    return takeReport(host.app, sender, await reportOf(body), sent, keys, { requestId, unlessRepeated })
  },
})

export const inboundWebhookEndpoint = endpoint({
  ...taking,
  operation: 'pushPayroll',
  route: 'POST /webhook/inbound/{connection_id}',
  summary: 'Push payroll with a signature instead of client credentials',
  description: 'The same signature is the same request again, and gets the first answer.',
  access: connection,
  params: z.object({ connection_id: idOf('inbound connection') }),
  errors: { ...ERRORS, 404: `There is no such active connection. ${ERRORS[404]}` },
  refuses: {
    400: ['too_many_rows'],
    404: ['employer_not_found', 'policy_not_found'],
  },
  async handle({ host, caller, body, sent, key, unlessRepeated, requestId }) {
    const { connection_id, tenant_id, environment } = caller.connection
    const sender = {
      source: 'inbound_webhook',
      id: connection_id,
      tenantId: tenant_id,
      environment,
      scope: { employer_ids: 'all', carrier_ids: 'all' },
    } as const
    const keys = { header: key, signature: caller.signature }
    return takeReport(host.app, sender, await reportOf(body), sent, keys, { requestId, unlessRepeated })
  },
})

/** Employees of a body, as far as that can be told before it is checked. */
export function rowsOf({ employees }: Readonly<Record<string, unknown>>): number {
  return Array.isArray(employees) ? employees.length : 0
}

/** A report of the right form. @throws HttpError 400 that names the first employee that is no object, or too large. */
async function reportOf({
  employer_fein,
  policy_number,
  employees,
  pay_period,
}: z.output<typeof Report>): Promise<PayrollReport> {
  await inTimeSlices(employees, (employee, index) => {
    if (typeof employee !== 'object' || employee === null || Array.isArray(employee)) {
      const field = `employees[${index}]`
      throw new HttpError(400, 'Invalid employees', `${field} must be an object`, {
        code: 'field_invalid',
        field,
      })
    }
    if (isRowTooLarge(employee)) {
      const limit = `${MAX_ROW_BYTES / 1024} KiB`
      const field = `employees[${index}]`
      throw new HttpError(400, 'Invalid employees', `${field} is larger than ${limit}`, {
        code: 'field_too_large',
        field,
      })
    }
  })
  return {
    fein: normalizeFein(employer_fein)!,
    policyNumber: policy_number,
    employees: employees as PayrollReport['employees'],
    period: pay_period ? { start: pay_period.start_date, end: pay_period.end_date } : null,
  }
}

/** What makes a repeated report the same report. */
interface ReportKeys {
  /** `Idempotency-Key` of the request. */
  readonly header: string | null
  /** Signature of an inbound webhook: the same one is the same request again. */
  readonly signature: string | null
}

/**
 * Takes a report over and answers 202, or again what its first sending was answered.
 * @param body the parsed body, for the comparison of repeated keys.
 * @throws HttpError 502; Rejected.
 */
async function takeReport(
  app: Application,
  sender: ReportSender,
  report: PayrollReport,
  body: object,
  keys: ReportKeys,
  { requestId, unlessRepeated }: Pick<CommandContext, 'unlessRepeated'> & { readonly requestId: string },
): Promise<Answer<202, ReportAnswer>> {
  const type = sender.source === 'report' ? 'api_client' : 'inbound_connection'
  const whose = { tenant_id: sender.tenantId, environment: sender.environment }
  const context = newContext(app, { type, id: sender.id }, requestId, whose)
  const find = async (): Promise<ReportSubject | Rejection> => {
    try {
      return await findReportSubject(app, sender, report)
    } catch (error) {
      if (error instanceof PipelineUnreachable) throw new HttpError(502, 'Upstream error', error.message)
      throw error
    }
  }
  const prepare = async (within: CommandContext) =>
    (within.mayRepeat ? await subjectOfAttempt(app, within) : null) ?? find()
  const take = (within: CommandContext, subject: ReportSubject) =>
    reportPayroll(app, sender, report, subject, within)
  const answer = (taken: TakenReport) => answerOf(sender, report, taken)
  const restore = (stored: unknown) => withFein(stored as ReportAnswer, report.fein)
  const isNew = { ...context, unlessRepeated }
  const byHeader = {
    caller: sender.id,
    operation: 'payroll report',
    key: keys.header,
    sent: body,
    context: isNew,
  }
  const outcome =
    keys.signature === null
      ? await oncePerKey(app, byHeader, {
          prepare,
          async run(within, subject) {
            const taken = await take(within, subject)
            return taken.inOneAppend ? { status: 202, body: answer(taken) } : kept(answer(taken))
          },
          creates: {
            decider: payrollFile,
            answerOf(created) {
              const taken = takenReport(created)
              return taken && { status: 202, body: answer(taken) }
            },
          },
          restore,
        })
      : await onceBySignature(keys.signature)
  return answered(202, await shown(app, accepted(outcome)))

  /** A signature is claimed, and a header key beside it: each of them leads to the same report. */
  async function onceBySignature(signature: string): Promise<IdempotentOutcome | Rejection> {
    const signed = {
      ...byHeader,
      operation: 'inbound payroll signature',
      key: signature,
      sent: signature,
    }
    const run = async (within: CommandContext, subject: ReportSubject) =>
      kept(answer(await take(within, subject)))
    if (keys.header === null) return oncePerKey(app, signed, { prepare, run, restore })
    // beside a key, that decides whether the request is new
    const isSigned = { ...signed, context }
    let replayed = false
    const outcome = await oncePerKey(app, byHeader, {
      prepare,
      async run({ commandId }, subject) {
        // another key does not make a captured request a new one; a new signature under this key
        // goes on with what the first one began
        const within = { ...isSigned, context: { ...context, commandId, mayRepeat: true } }
        const first = await oncePerKey(app, within, { prepare: async () => subject, run, restore })
        if (isRejection(first)) return first
        replayed = first.replayed
        return kept(first.body as ReportAnswer)
      },
      restore,
    })
    if (isRejection(outcome)) return outcome
    if (replayed || !outcome.replayed) return { ...outcome, replayed }
    // nor does leaving out the key that answered it: the signature leads to that answer, too
    await oncePerKey(app, isSigned, { run: async () => kept(outcome.body as ReportAnswer) })
    return outcome
  }
}

/** An outcome with the names in its body opened: what the log keeps of it has them sealed. */
async function shown(app: Application, outcome: IdempotentOutcome): Promise<IdempotentOutcome> {
  const body = outcome.body as ReportAnswer
  const { employer } = body
  const { employerName: business_name, fileName: file_name } = await openNames(app, {
    employerId: employer.id,
    employerName: employer.business_name,
    fileId: body.file_id ?? body.report_id!,
    fileName: body.file_name,
  })
  return { ...outcome, body: { ...body, employer: { ...employer, business_name }, file_name } }
}

/** An answer of which the log keeps all but the FEIN: that is personal, and the same request brings it again. */
function kept(answer: ReportAnswer): IdempotentAnswer {
  const { file_id, report_id } = answer
  return { status: 202, body: answer, stored: withFein(answer, ''), createdId: file_id ?? report_id! }
}

function withFein(answer: ReportAnswer, fein: string): ReportAnswer {
  return { ...answer, employer: { ...answer.employer, fein } }
}

function answerOf(sender: ReportSender, report: PayrollReport, taken: TakenReport): ReportAnswer {
  const background = report.employees.length > SYNCHRONOUS_ROWS
  const { outcome, fileId } = taken
  return {
    success: true,
    ...(background ? { file_id: null, report_id: fileId } : { file_id: fileId }),
    status: outcome === 'complete' ? 'completed' : outcome === 'failed' ? 'failed' : 'processing',
    environment: sender.environment,
    // the employer was found by this FEIN: what was sent is what is stored
    employer: { id: taken.employerId, business_name: taken.employerName, fein: report.fein },
    policy: { id: taken.policyId, policy_number: taken.policyNumber },
    employee_count: taken.rowCount,
    file_name: taken.fileName,
  }
}

import type { ServerResponse } from 'node:http'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { runClaimed } from '../../application/idempotency/claims.ts'
import { createOnce } from '../../application/idempotency/creations.ts'
import type { IdempotentAnswer, IdempotentOutcome } from '../../application/idempotency/keyed-call.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import {
  acceptedSubject,
  findReportSubject,
  type PayrollReport,
  PipelineUnreachable,
  type ReportSender,
  type ReportSubject,
  reportPayroll,
  subjectOfAttempt,
  type TakenReport,
  takenReport,
} from '../../application/payroll/report-payroll.ts'
import { MAX_ROWS, SYNCHRONOUS_ROWS } from '../../application/payroll/submit-payroll.ts'
import { isRowTooLarge, MAX_ROW_BYTES } from '../../application/row-size.ts'
import { inTimeSlices } from '../../application/time-slices.ts'
import { isCalendarDate } from '../../domain/kernel/calendar.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import { payrollFile } from '../../domain/payroll/payroll-file.ts'
import { requestIdOf, sendJson } from '../http/answers.ts'
import { HttpError } from '../http/errors.ts'
import { accepted, isObject, missingFields, requireSomeEmployees, sendOutcome } from './requests.ts'

/** What a successful report is answered with. */
export interface ReportAnswer {
  readonly success: true
  /** Null above {@link SYNCHRONOUS_ROWS} employees. */
  readonly file_id: string | null
  /** The id that the file has in the background; only where `file_id` is null. */
  readonly report_id?: string
  readonly status: 'completed' | 'processing' | 'failed'
  readonly environment: string
  readonly employer: { readonly id: string; readonly business_name: string; readonly fein: string }
  readonly policy: { readonly id: string; readonly policy_number: string }
  readonly employee_count: number
  readonly file_name: string
}

/**
 * Checks the shape of a report.
 * @throws HttpError 400 in the documented words, 413 above {@link MAX_ROWS} employees.
 */
export async function parseReport(body: Readonly<Record<string, unknown>>): Promise<PayrollReport> {
  const { employer_fein, policy_number, employees } = body
  const missing: string[] = []
  if (isBlank(employer_fein)) missing.push('employer_fein')
  if (typeof policy_number !== 'string' || isBlank(policy_number)) missing.push('policy_number')
  if (!Array.isArray(employees)) missing.push('employees')
  if (missing.length > 0 || !Array.isArray(employees)) throw missingFields(missing)
  requireSomeEmployees(employees)
  const fein = normalizeFein(employer_fein)
  if (fein === null) {
    throw new HttpError(
      400,
      'Invalid employer_fein',
      'employer_fein takes a string of 9 digits, with or without a hyphen after the second',
    )
  }
  const period = parsePeriod(body.pay_period)
  await inTimeSlices(employees, (employee, index) => {
    if (!isObject(employee)) {
      throw new HttpError(400, 'Invalid employees', `employees[${index}] must be an object`)
    }
    if (isRowTooLarge(employee)) {
      const limit = `${MAX_ROW_BYTES / 1024} KiB`
      throw new HttpError(400, 'Invalid employees', `employees[${index}] is larger than ${limit}`)
    }
  })
  return { fein, policyNumber: (policy_number as string).trim(), employees, period }
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}

function parsePeriod(period: unknown): PayrollReport['period'] {
  if (period === undefined || period === null) return null
  const { start_date: start, end_date: end } = isObject(period) ? period : {}
  if (!isCalendarDate(start) || !isCalendarDate(end)) {
    throw new HttpError(
      400,
      'Invalid pay_period',
      'pay_period takes start_date and end_date, existing dates in the form YYYY-MM-DD',
    )
  }
  if (end < start) {
    throw new HttpError(400, 'Invalid pay_period', 'pay_period.end_date lies before pay_period.start_date')
  }
  return { start, end }
}

/** What makes a repeated report the same report. */
export interface ReportKeys {
  /** `Idempotency-Key` of the request. */
  readonly header: string | null
  /** Signature of an inbound webhook: the same one is the same request again. */
  readonly signature: string | null
}

/**
 * Takes a report over and answers 202, or again what its first sending was answered.
 * @param body the parsed body, for the comparison of repeated keys.
 * @throws HttpError 404, 409, 502.
 */
export async function answerReport(
  app: Application,
  sender: ReportSender,
  report: PayrollReport,
  body: unknown,
  keys: ReportKeys,
  response: ServerResponse,
): Promise<void> {
  const context = {
    actor: {
      type: sender.source === 'report' ? ('api_client' as const) : ('inbound_connection' as const),
      id: sender.id,
    },
    tenantId: sender.tenantId,
    environment: sender.environment,
    correlationId: requestIdOf(response),
  }
  const find = async (): Promise<ReportSubject | Rejection> => {
    try {
      return await findReportSubject(app, sender, report)
    } catch (error) {
      if (error instanceof PipelineUnreachable) throw new HttpError(502, 'Upstream error', error.message)
      throw error
    }
  }
  const take = (subject: ReportSubject, within: CommandContext) =>
    reportPayroll(app, sender, report, subject, within)
  const answer = (taken: TakenReport) => answerOf(sender, report, taken)
  const restore = (stored: unknown) => withFein(stored as ReportAnswer, report.fein)

  if (keys.signature !== null) {
    sendOutcome(response, await onceBySignature(keys.signature))
  } else if (keys.header !== null) {
    const call = { caller: sender.id, operation: 'payroll report', key: keys.header, context, restore }
    const outcome = await createOnce(
      app,
      { ...call, requestHash: await requestHash(body) },
      {
        decider: payrollFile,
        create: async (within, begun) => {
          const subject = begun && (await acceptedSubject(app, begun))
          const taken = await take(subject ?? accepted(await find()), within)
          return taken.inOneAppend ? { status: 202, body: answer(taken) } : kept(answer(taken))
        },
        answerOf: (created) => {
          const taken = takenReport(created)
          return taken && { status: 202, body: answer(taken) }
        },
      },
    )
    sendOutcome(response, accepted(outcome))
  } else {
    const taken = await take(accepted(await find()), { ...context, commandId: app.randomness.commandId() })
    sendJson(response, 202, answer(taken))
  }

  /** A signature is claimed, and a header key beside it: each of them leads to the same report. */
  async function onceBySignature(signature: string): Promise<IdempotentOutcome> {
    let subject: ReportSubject | null = null
    const check = async (claimedAs: string | null): Promise<Rejection | null> => {
      if (claimedAs !== null) subject ??= await subjectOfAttempt(app, claimedAs)
      const found = subject ?? (await find())
      if (isRejection(found)) return found
      subject = found
      return null
    }
    const call = { caller: sender.id, context, check, restore }
    const bySignature = (within?: CommandContext): Promise<IdempotentOutcome | Rejection> =>
      runClaimed(
        app,
        {
          ...{ ...call, operation: 'inbound payroll signature', key: signature, requestHash: signature },
          ...(within && { commandId: within.commandId }),
        },
        async (claimed) => kept(answer(await take(subject!, claimed))),
      )
    if (keys.header === null) return accepted(await bySignature())
    let replayed = false
    const byHeader = await runClaimed(
      app,
      { ...call, operation: 'payroll report', key: keys.header, requestHash: await requestHash(body) },
      async (claimed) => {
        // another key does not make a captured request a new one; a new signature under this key
        // goes on with what the first one began
        const first = await bySignature(claimed)
        if (isRejection(first)) return first
        replayed = first.replayed
        return { ...first, stored: withFein(first.body as ReportAnswer, '') }
      },
    )
    const outcome = accepted(byHeader)
    return replayed ? { ...outcome, replayed } : outcome
  }
}

/** An answer of which the log keeps all but the FEIN: that is personal, and the same request brings it again. */
function kept(answer: ReportAnswer): IdempotentAnswer {
  return { status: 202, body: answer, stored: withFein(answer, '') }
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

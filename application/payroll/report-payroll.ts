import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { reservation } from '../../domain/kernel/reservation.ts'
import { type Employer, EmployerRegistered, employer } from '../../domain/parties/employer.ts'
import { type PayrollFile, payrollFile } from '../../domain/payroll/payroll-file.ts'
import { PayrollFileReceived } from '../../domain/payroll/payroll-file-events.ts'
import { REPORT_RECORDS } from '../../domain/payroll/payroll-row.ts'
import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Creation, Loaded, Reads } from '../commands/command-handler.ts'
import { feinReservation, policyNumberReservation } from '../commands/reservations.ts'
import { opened } from '../commands/sealed-fields.ts'
import { resultOf, type SubmittedPayroll, submitPayroll } from './submit-payroll.ts'

/** The reporting caller, and the employers that it may report for. */
export interface ReportSender {
  readonly source: 'report' | 'inbound_webhook'
  /** Client or connection id. */
  readonly id: string
  readonly tenantId: string
  readonly environment: Environment
  /** Employers and carriers that it may report for. */
  readonly scope: Pick<ApiClient, 'employer_ids' | 'carrier_ids'>
}

/** A payroll report of the right shape. */
export interface PayrollReport {
  /** `XX-XXXXXXX`. */
  readonly fein: string
  readonly policyNumber: string
  readonly employees: readonly Record<string, unknown>[]
  readonly period: { readonly start: string; readonly end: string } | null
}

/** What a report is about, found and allowed. */
export interface ReportSubject {
  readonly employer: Employer
  readonly policy: Loaded<Policy | null> & { readonly state: Policy }
}

/** The pipeline that takes reports over cannot be reached; nothing was stored. */
export class PipelineUnreachable extends Error {
  constructor() {
    super('The payroll pipeline cannot be reached')
    this.name = 'PipelineUnreachable'
  }
}

/**
 * Finds the employer by FEIN and the policy by its active number, both by the reservations that make
 * them unique. What lies outside the sender's tenant, environment or scope is not found.
 * @throws PipelineUnreachable
 */
export async function findReportSubject(
  app: Application,
  sender: ReportSender,
  report: PayrollReport,
): Promise<ReportSubject | Rejection> {
  const found = await lookUp(app, sender, report)
  if (isRejection(found)) return found
  if ((await app.faults.take('pipeline', ['unreachable'])) !== null) throw new PipelineUnreachable()
  return found
}

async function lookUp(
  { commands, personalData, clock }: Reads & Pick<Application, 'personalData' | 'clock'>,
  sender: ReportSender,
  report: PayrollReport,
): Promise<ReportSubject | Rejection> {
  const { environment, tenantId } = sender
  const fein = feinReservation(personalData, environment, report.fein)
  const employerId = (await commands.load(reservation, fein.id)).state.owner_id
  const found = employerId === null ? null : (await commands.load(employer, employerId)).state
  if (
    found === null ||
    found.tenant_id !== tenantId ||
    found.environment !== environment ||
    !mayActFor(sender.scope, found.employer_id)
  ) {
    return reject('not_found', 'employer_not_found', 'No employer matches the FEIN', 'employer_fein')
  }

  const number = policyNumberReservation(personalData, tenantId, environment, report.policyNumber)
  const policyId = (await commands.load(reservation, number.id)).state.owner_id
  const loaded = policyId === null ? null : await commands.load(policy, policyId)
  const terms = loaded?.state
  if (
    !terms ||
    terms.employer_id !== found.employer_id ||
    statusOn(terms, clock.now()) !== 'active' ||
    !mayUseCarrier(sender.scope, terms.carrier_id)
  ) {
    return reject(
      'not_found',
      'policy_not_found',
      'No active policy of the employer matches the number',
      'policy_number',
    )
  }
  return { employer: found, policy: { state: terms, revision: loaded.revision } }
}

/** What a file is about whose first append is stored: it was accepted, whatever became of policy and upload since. */
export async function acceptedSubject(
  app: Pick<Application, 'commands'>,
  { received }: Pick<PayrollFile, 'received'>,
): Promise<ReportSubject | null> {
  if (!received) return null
  const { employer_id, policy_id, policy_revision } = received
  const found = (await app.commands.load(employer, employer_id)).state
  // rows that are still to come are held against the same terms as those before them
  const { state, revision } =
    policy_revision === undefined
      ? await app.commands.load(policy, policy_id)
      : await app.commands.loadAt(policy, policy_id, policy_revision)
  return found && state ? { employer: found, policy: { state, revision } } : null
}

/** The same of the report that an earlier attempt has begun to store; null when it has not. */
export async function subjectOfAttempt(
  app: Pick<Application, 'commands'>,
  attempt: Pick<CommandContext, 'commandId'>,
): Promise<ReportSubject | null> {
  return acceptedSubject(app, (await app.commands.load(payrollFile, createdId(attempt, payrollFile))).state)
}

/** A report that was taken over, as its answer tells of it; names as they are stored, see {@link openNames}. */
export interface TakenReport extends Pick<SubmittedPayroll, 'fileId' | 'fileName' | 'rowCount' | 'outcome'> {
  readonly employerId: string
  readonly employerName: string
  readonly policyId: string
  readonly policyNumber: string
}

/** A report that was stored in one append, as it was answered then; null for a larger one. */
export function takenReport({ state, keyedRequest }: Creation<PayrollFile>): TakenReport | null {
  const { file_id, employer_id, policy_id, policy_number, chunk_count } = state.received!
  if (chunk_count > 1) return null
  return {
    fileId: file_id,
    employerId: employer_id,
    policyId: policy_id,
    policyNumber: policy_number,
    employerName: keyedRequest?.answer?.business_name ?? '',
    ...resultOf(state, 'complete'),
  }
}

/** Names in the answer to a report as people read them. */
export async function openNames(
  { personalData }: Pick<Application, 'personalData'>,
  taken: Pick<TakenReport, 'employerId' | 'employerName' | 'fileId' | 'fileName'>,
): Promise<Pick<TakenReport, 'employerName' | 'fileName'>> {
  const { data } = await opened(personalData, [
    {
      schema: EmployerRegistered.schema,
      data: { employer_id: taken.employerId, legal_name: taken.employerName },
    },
    { schema: PayrollFileReceived.schema, data: { file_id: taken.fileId, file_name: taken.fileName } },
  ])
  const [{ legal_name }, { file_name }] = data as [{ legal_name: string }, { file_name: string }]
  return { employerName: legal_name, fileName: file_name }
}

/** Takes a report over as a payroll file; see {@link submitPayroll} for what is done before it returns. */
export async function reportPayroll(
  app: Application,
  sender: ReportSender,
  report: PayrollReport,
  subject: ReportSubject,
  context: CommandContext,
): Promise<TakenReport & Pick<SubmittedPayroll, 'inOneAppend'>> {
  const { keyedRequest } = context
  const business_name = subject.employer.legal_name
  const submitted = await submitPayroll(
    app,
    {
      source: sender.source,
      senderId: sender.id,
      tenantId: sender.tenantId,
      environment: sender.environment,
      employerId: subject.employer.employer_id,
      employerName: subject.employer.legal_name,
      policy: subject.policy,
      rows: report.employees,
      vocabulary: REPORT_RECORDS,
      period: report.period,
      waitFor: 'complete',
    },
    // the name may change before the answer is given again
    keyedRequest ? { ...context, keyedRequest: { ...keyedRequest, answer: { business_name } } } : context,
  )
  // the shape was checked before: a refusal here is a defect, not an answer
  if (isRejection(submitted)) throw new Error(`A checked report was refused: ${submitted.code}`)
  const { employer_id: employerId, legal_name: employerName } = subject.employer
  const { policy_id: policyId, policy_number: policyNumber } = subject.policy.state
  return { ...submitted, employerId, employerName, policyId, policyNumber }
}

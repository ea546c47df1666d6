import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { REPORT_RECORDS } from '../../domain/payroll/payroll-row.ts'
import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import { reservation } from '../../domain/uniqueness/reservation.ts'
import type { Application } from '../application.ts'
import type { CommandContext, Loaded } from '../command-handling/command-handler.ts'
import { feinReservation, policyNumberReservation } from './reservations.ts'
import { type SubmittedPayroll, storedFile, submitPayroll } from './submit-payroll.ts'

/** Who reports, and for whom it may. */
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
  const { commands, personalData } = app
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
    statusOn(terms, app.clock.now()) !== 'active' ||
    !mayUseCarrier(sender.scope, terms.carrier_id)
  ) {
    return reject(
      'not_found',
      'policy_not_found',
      'No active policy of the employer matches the number',
      'policy_number',
    )
  }
  if ((await app.faults.take('pipeline', ['unreachable'])) !== null) throw new PipelineUnreachable()
  return { employer: found, policy: { state: terms, revision: loaded.revision } }
}

/**
 * What a report is about that an earlier attempt under a command id has stored, in part or whole: it
 * was accepted, whatever became of the policy since. Null when nothing was stored.
 */
export async function storedReportSubject(
  { commands }: Pick<Application, 'commands'>,
  commandId: string,
): Promise<ReportSubject | null> {
  const received = (await storedFile({ commands }, commandId))?.received
  if (!received) return null
  const found = (await commands.load(employer, received.employer_id)).state
  const { state, revision } = await commands.load(policy, received.policy_id)
  return found && state ? { employer: found, policy: { state, revision } } : null
}

/** Takes a report over as a payroll file; see {@link submitPayroll} for what is done before it returns. */
export async function reportPayroll(
  app: Application,
  sender: ReportSender,
  report: PayrollReport,
  subject: ReportSubject,
  context: CommandContext,
): Promise<SubmittedPayroll> {
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
    context,
  )
  // the shape was checked before: a refusal here is a defect, not an answer
  if (isRejection(submitted)) throw new Error(`A checked report was refused: ${submitted.code}`)
  return submitted
}

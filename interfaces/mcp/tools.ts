import type { z } from 'zod'
import { employerInScope, type LoadedPolicy, reportablePolicy } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/commands/application.ts'
import { newContext } from '../../application/commands/command-context.ts'
import type { Reads } from '../../application/commands/command-handler.ts'
import { oncePerKey } from '../../application/commands/keyed-call.ts'
import { describeExpectedFields } from '../../application/payroll/expected-fields.ts'
import { subjectOfAttempt } from '../../application/payroll/report-payroll.ts'
import {
  findPayrollFile,
  type PayrollFileRow,
  submissionStatus,
} from '../../application/payroll/submission-status.ts'
import { resultOf, submitPayroll } from '../../application/payroll/submit-payroll.ts'
import { validatePayroll } from '../../application/payroll/validate-payroll.ts'
import { validationErrors } from '../../application/payroll/validation-errors.ts'
import { listEmployerPolicies } from '../../application/policies/list-employer-policies.ts'
import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Employer } from '../../domain/parties/employer.ts'
import { type PayrollFile, payrollFile } from '../../domain/payroll/payroll-file.ts'
import { TOOL_ROWS } from '../../domain/payroll/payroll-row.ts'
import {
  FileLookup,
  GetExpectedFields,
  GetValidationErrors,
  ListEmployerPolicies,
  POLICY,
  payrollRows,
  SubmitPayrollData,
  ValidatePayrollSubmission,
} from './arguments.ts'
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  invalidParams,
  type RefusalData,
  RpcError,
  SCOPE_ERROR,
} from './json-rpc.ts'

/** On whose behalf a tool runs. */
export interface ToolCall {
  readonly app: Application
  readonly agent: AgentCredential
  /** Correlation id of what the call causes. */
  readonly requestId: string
  /** The key of the request itself, which counts where the arguments bring none. */
  readonly idempotencyKey: string | null
  /** Called when the result is that of an earlier call with the same key. */
  readonly onReplay: () => void
}

/** A tool as agents see it, and what it does. Arguments are checked first, then scope. */
export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string
  readonly description: string
  /** What its arguments are checked by. */
  readonly input: Input
  /** Hints for agents and their supervisors. */
  readonly annotations: {
    readonly title: string
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
  /** @returns the structured result. @throws RpcError for every refusal. */
  call(call: ToolCall, given: z.output<Input>): Promise<unknown>
}

function tool<Input extends z.ZodObject>(declared: Tool<Input>): Tool {
  return declared as unknown as Tool
}

const readOnly = (title: string): Tool['annotations'] => ({
  title,
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
})

/** The six tools, in the order in which an agent would use them. */
export const tools: readonly Tool[] = [
  tool({
    name: 'list_employer_policies',
    description:
      "List an employer's workers' compensation policies: policy id, number, carrier, status and term. Active policies only, unless include_expired is true. Start here to learn the policy_id that the other tools take.",
    input: ListEmployerPolicies,
    annotations: readOnly('List employer policies'),
    async call({ app, agent }, { employer_id, include_expired }) {
      const employer = await employerFor(app, agent, employer_id)
      return listEmployerPolicies(app, employer.employer_id, include_expired)
    },
  }),
  tool({
    name: 'get_expected_fields',
    description:
      'Describe the payroll row fields that a policy expects: which are required or optional, the valid class codes and states, and values that are filled in automatically. Call it before building rows.',
    input: GetExpectedFields,
    annotations: readOnly('Get expected payroll fields'),
    async call({ app, agent }, { employer_id, policy_id }) {
      if (policy_id === undefined) {
        return describeExpectedFields(app, await employerFor(app, agent, employer_id), null)
      }
      const { employer, policy } = await subjectOf(app, agent, employer_id, policy_id)
      reportable(policy)
      return describeExpectedFields(app, employer, policy_id)
    },
  }),
  tool({
    name: 'validate_payroll_submission',
    description:
      'Check payroll rows against a policy without storing anything: a dry run that predicts exactly which rows a real submission would accept. Returns errors and warnings by row (1-based) and field.',
    input: ValidatePayrollSubmission,
    annotations: readOnly('Validate payroll rows (dry run)'),
    async call({ app, agent }, given) {
      const rows = await payrollRows(given.rows)
      const { policy } = await subjectOf(app, agent, given.employer_id, given.policy_id)
      return validatePayroll(app, reportable(policy).state, rows, 'ignored')
    },
  }),
  tool({
    name: 'submit_payroll_data',
    description:
      'Submit payroll rows for a policy. Creates a payroll file that is validated and priced; rows that fail validation are kept apart and reported by get_validation_errors. Send idempotency_key so that a retry cannot report the payroll twice. With dry_run true nothing is stored.',
    input: SubmitPayrollData,
    annotations: {
      title: 'Submit payroll data',
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: false,
      openWorldHint: false,
    },
    call: submitPayrollData,
  }),
  tool({
    name: 'get_submission_status',
    description:
      'Read the live status of a submission by submission_id or file_id: validation (phase 1), wage calculation (phase 2) and premium calculation (phase 3). Money is in integer cents. A failed submission also has error, the reason. Read the phases; do not parse file_status.',
    input: FileLookup,
    annotations: readOnly('Get submission status'),
    async call({ app, agent }, given) {
      return submissionStatus(await fileFor(app, agent, given))
    },
  }),
  tool({
    name: 'get_validation_errors',
    description:
      'Read which rows of a submission failed validation and why, with a suggestion for each failing field. By submission_id or file_id; at most 100 rows. When has_more is true, call again with after_row: the row_number of the last row. Submit those rows alone, corrected, with a new idempotency_key: the others are reported already.',
    input: GetValidationErrors,
    annotations: readOnly('Get validation errors'),
    async call({ app, agent }, given) {
      return validationErrors(app, await fileFor(app, agent, given), given.after_row)
    },
  }),
]

async function submitPayrollData(
  call: ToolCall,
  given: z.output<typeof SubmitPayrollData>,
): Promise<unknown> {
  const { app, agent, requestId } = call
  const { employer_id: employerId, policy_id: policyId } = given
  const key = given.idempotency_key ?? call.idempotencyKey
  const rows = await payrollRows(given.rows)
  const { employer, policy } = await subjectOf(app, agent, employerId, policyId)
  // a sandbox agent is never told: it sees the dry run that it got
  if (given.dry_run || agent.sandbox) {
    return validatePayroll(app, reportable(policy).state, rows, 'counts')
  }

  const outcome = await oncePerKey(
    app,
    {
      caller: `agent:${agent.credential_id}`,
      operation: 'submit_payroll_data',
      key,
      sent: { employerId, policyId, rows },
      context: newContext(app, { type: 'agent', id: agent.credential_id }, requestId, employer),
    },
    {
      // what an earlier attempt stored was accepted, whatever became of the policy since
      async prepare(within) {
        const again = within.mayRepeat ? await subjectOfAttempt(app, within) : null
        return again?.policy ?? reportable(policy)
      },
      async run(within, to) {
        const submitted = await submitPayroll(
          app,
          {
            source: 'tool',
            senderId: agent.credential_id,
            tenantId: employer.tenant_id,
            environment: employer.environment,
            employerId: employer.employer_id,
            employerName: employer.legal_name,
            policy: to,
            rows,
            vocabulary: TOOL_ROWS,
            period: null,
            waitFor: 'phase_1',
          },
          within,
        )
        if (isRejection(submitted)) throw refused(submitted)
        const body = submissionResult(submitted.file)
        return { status: 200, body, ...(!submitted.inOneAppend && { stored: body }) }
      },
      creates: {
        decider: payrollFile,
        answerOf: ({ state }) =>
          state.received!.chunk_count === 1 ? { status: 200, body: submissionResult(state) } : null,
      },
    },
  )
  if (isRejection(outcome)) {
    throw invalidParams(
      'idempotency_key',
      `${outcome.message}; send a new idempotency_key for other data`,
      outcome.code,
    )
  }
  if (outcome.replayed) call.onReplay()
  return outcome.body
}

const STILL_RUNNING = 'validation is still running. Follow it with get_submission_status.'

/** The answer to a real submission, by its file. */
function submissionResult(file: PayrollFile): Record<string, unknown> {
  const { received, validated, failed } = file
  const { outcome, rowCount, error } = resultOf(file, 'phase_1')
  const rowsWere = rowCount === 1 ? '1 row was' : `${rowCount} rows were`
  const { green, red } = validated
  const advice = red > 0 ? ' Read why with get_validation_errors.' : ''
  const [status, message] =
    outcome === 'failed'
      ? ['submission_failed', `The submission failed: ${error ?? 'the payroll pipeline did not finish'}`]
      : outcome === 'background'
        ? ['submitted_validation_pending', `${rowsWere} stored; ${STILL_RUNNING}`]
        : [
            'submitted_and_validated',
            `${rowsWere} submitted: ${green} passed validation, ${red} failed.${advice}`,
          ]
  return {
    submission_id: received!.source.submission_id,
    // a file that could not even be created is no file to look at
    file_id: failed?.stage === 'file_creation' ? null : received!.file_id,
    status,
    row_count: rowCount,
    message,
  }
}

async function employerFor(app: Reads, agent: AgentCredential, employerId: string): Promise<Employer> {
  const employer = await employerInScope(app, agent, employerId)
  if (employer) return employer
  throw outOfScope(
    'This credential may not act for the employer named by employer_id: send the employer_id of one of employers',
    'employer_id',
  )
}

/** Employer and policy of a submission, read together; the policy is null where none can be reported against. */
async function subjectOf(
  app: Application,
  agent: AgentCredential,
  employerId: string,
  policyId: string,
): Promise<{ employer: Employer; policy: LoadedPolicy | null }> {
  const employer = await employerFor(app, agent, employerId)
  return { employer, policy: await reportablePolicy(app, employer.employer_id, policyId) }
}

function reportable(policy: LoadedPolicy | null): LoadedPolicy {
  if (policy) return policy
  throw invalidParams(
    'policy_id',
    `policy_id names no active or expired policy of this employer: send ${POLICY}`,
    'policy_not_found',
  )
}

/** The file that `submission_id` or `file_id` name, if the agent may see its employer. */
async function fileFor(
  app: Application,
  agent: AgentCredential,
  { submission_id: submissionId, file_id: fileId }: z.output<typeof FileLookup>,
): Promise<PayrollFileRow> {
  if (submissionId === undefined && fileId === undefined) {
    throw invalidParams(
      'submission_id',
      'submission_id or file_id is required: send at least one of them',
      'field_missing',
    )
  }
  const file = await findPayrollFile(app, submissionId === undefined ? { fileId: fileId! } : { submissionId })
  if (file === null) {
    const field = submissionId === undefined ? 'file_id' : 'submission_id'
    throw invalidParams(
      field,
      `${field} names no submission: send one that submit_payroll_data returned, not that of a dry run`,
      'file_not_found',
    )
  }
  if (!(await employerInScope(app, agent, file.employer_id))) {
    throw outOfScope('This credential may not act for the employer of this submission')
  }
  if (fileId !== undefined && file.file_id !== fileId) {
    throw invalidParams('file_id', 'file_id is not the file of this submission_id: send one of the two')
  }
  return file
}

function refused(rejection: Rejection): RpcError {
  if (rejection.kind === 'invalid' || rejection.kind === 'not_found') {
    return new RpcError(INVALID_PARAMS, rejection.message, reasonOf(rejection))
  }
  return new RpcError(INTERNAL_ERROR, rejection.message, reasonOf(rejection))
}

function reasonOf({ code, field }: Rejection): RefusalData {
  return field === undefined ? { code } : { code, field }
}

/** A refusal that has to do with `employer_id`, with the employers that the credential may act for. */
export async function namingEmployers(
  inScope: () => Promise<object>,
  { code, message, data, status }: RpcError,
): Promise<RpcError> {
  const { field, errors = [] } = data as { field?: string; errors?: readonly { readonly field: string }[] }
  const isOfEmployer = [field, ...errors.map((one) => one.field)].includes('employer_id')
  const named = isOfEmployer ? await inScope() : {}
  return new RpcError(code, message, { ...data, ...named }, status)
}

function outOfScope(message: string, field?: string): RpcError {
  return new RpcError(SCOPE_ERROR, message, { code: 'employer_out_of_scope', ...(field && { field }) })
}

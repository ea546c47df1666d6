import type { Environment } from '../../domain/kernel/ids.ts'
import { newYorkDate } from '../../domain/kernel/new-york.ts'
import { isSealed } from '../../domain/kernel/sealed.ts'
import {
  CHUNK_BYTES,
  CHUNK_ROWS,
  type PayrollFileCommand,
  payrollFile,
} from '../../domain/payroll/payroll-file.ts'
import { PayrollFileReceived, PayrollRowsRecorded } from '../../domain/payroll/payroll-file-events.ts'
import type { CanonicalRow, NormalizedRow, RowVocabulary } from '../../domain/payroll/payroll-row.ts'
import { rowNormalizer } from '../../domain/payroll/totals-rows.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Loaded } from '../commands/command-handler.ts'
import { derivedId } from '../commands/event-registry.ts'
import { employerSubject, personSubject, sealFields } from '../commands/sealing.ts'
import { inTimeSlices, mapInTimeSlices, runInTimeSlices } from '../commands/time-slices.ts'
import { legalName } from '../parties/legal-names.ts'

/** A payroll submission whose sender, employer and policy are settled already. */
export interface PayrollSubmission {
  readonly source: 'tool' | 'report' | 'inbound_webhook'
  /** Credential, client or connection id. */
  readonly senderId: string
  readonly tenantId: string
  readonly environment: Environment
  readonly employerId: string
  /** As it is stored. */
  readonly employerName: string
  readonly policy: Loaded<Policy | null> & { readonly state: Policy }
  readonly rows: readonly Record<string, unknown>[]
  readonly vocabulary: RowVocabulary
  readonly period: { readonly start: string; readonly end: string } | null
  /**
   * `phase_1`: process inline what fits one chunk, else wait for validation a little (tools).
   * `complete`: up to `SYNCHRONOUS_ROWS` rows wait for the whole pipeline, more for nothing (reports).
   */
  readonly waitFor: 'phase_1' | 'complete'
}

type Command<Type> = Extract<PayrollFileCommand, { readonly type: Type }>

/** A submission cut into the chunks of a file, ready to be stored. */
export interface CutFile {
  readonly fileId: string
  readonly received: Command<'Receive'>
  readonly chunks: readonly Command<'RecordRows'>[]
  /** How many files of the same submission were given up before this one. */
  readonly givenUp: number
}

/** Normalizes, seals and cuts the rows of a submission. */
export async function cutFile(
  app: Application,
  submission: PayrollSubmission,
  context: CommandContext,
  givenUp: number,
): Promise<CutFile> {
  const fileId = fileIdOf(context, givenUp)
  const submissionId = submission.source === 'tool' ? derivedId(fileId, 'submission') : null
  const chunks = await chunksOf(app, submission, fileId)
  const received = await receiveCommand(app, submission, fileId, submissionId, chunks.length)
  return { fileId, received, chunks, givenUp }
}

/** The id of a submission's file, or of the one that takes the place of so many that were given up. */
export function fileIdOf(context: CommandContext, givenUp: number): string {
  const first = createdId(context, payrollFile)
  return givenUp === 0 ? first : derivedId(first, `again/${givenUp}`)
}

async function receiveCommand(
  app: Application,
  submission: PayrollSubmission,
  fileId: string,
  submissionId: string | null,
  chunkCount: number,
): Promise<Command<'Receive'>> {
  const { employerId, policy, period } = submission
  const employerName = await legalName(app, {
    employer_id: employerId,
    legal_name: submission.employerName,
  })
  const data = await sealFields(
    app.personalData,
    PayrollFileReceived,
    {
      file_id: fileId,
      tenant_id: submission.tenantId,
      environment: submission.environment,
      employer_id: submission.employerId,
      policy_id: policy.state.policy_id,
      policy_number: policy.state.policy_number,
      source: { kind: submission.source, submission_id: submissionId, sender_id: submission.senderId },
      file_name: fileName(employerName, period, policy.state.policy_number, app.clock.now()),
      row_count: submission.rows.length,
      chunk_count: chunkCount,
      period,
      policy_revision: policy.revision,
    },
    () => (isSealed(submission.employerName) ? employerSubject(app.personalData, employerId) : null),
  )
  return { type: 'Receive', data }
}

/** `<employer>_<start>_<end>_<policy number>.json`; without a period both dates are the day of receipt. */
export function fileName(
  employerName: string,
  period: { start: string; end: string } | null,
  policyNumber: string,
  epochMs: number,
): string {
  const today = newYorkDate(epochMs)
  const slug = employerName
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  // the name must stay one name: a policy number may hold what separates folders
  const number = policyNumber.replace(/[/\\]/g, '-')
  return `${slug || 'employer'}_${period?.start ?? today}_${period?.end ?? today}_${number}.json`
}

/** Normalizes, seals and cuts the rows into chunks, one slice after another so that others get a turn. */
async function chunksOf(
  app: Application,
  submission: PayrollSubmission,
  fileId: string,
): Promise<Command<'RecordRows'>[]> {
  const chunks: Command<'RecordRows'>[] = []
  let chunk: CanonicalRow[] = []
  let bytes = 0
  const close = () => {
    chunks.push({ type: 'RecordRows', rows: chunk })
    chunk = []
    bytes = 0
  }
  const { rows, vocabulary, policy } = submission
  const normalize = await runInTimeSlices(rowNormalizer(rows, vocabulary, policy.state))
  for (let from = 0; from < rows.length; from += CHUNK_ROWS) {
    const raw = rows.slice(from, from + CHUNK_ROWS)
    const normalized = await mapInTimeSlices(raw, (row, index) => normalize(row, from + index + 1))
    await inTimeSlices(await sealPersons(app, submission.employerId, fileId, normalized), (row) => {
      const size = Buffer.byteLength(JSON.stringify(row)) + 1
      if (chunk.length > 0 && (chunk.length === CHUNK_ROWS || bytes + size > CHUNK_BYTES)) close()
      chunk.push(row)
      bytes += size
    })
  }
  if (chunk.length > 0) close()
  return chunks
}

async function sealPersons(
  app: Application,
  employerId: string,
  fileId: string,
  rows: readonly NormalizedRow[],
): Promise<readonly CanonicalRow[]> {
  const drafts = await mapInTimeSlices(rows, ({ row: { unknown: _, ...row }, person }) =>
    // names of unknown fields are kept with their values, sealed: anything may stand there
    person === null ? row : { ...row, person: JSON.stringify(person) },
  )
  const sealed = await sealFields(
    app.personalData,
    PayrollRowsRecorded,
    { file_id: fileId, rows: drafts },
    ({ path }) => personSubject(app.personalData, employerId, rows[Number(path[1])]!.identity),
  )
  return sealed.rows
}

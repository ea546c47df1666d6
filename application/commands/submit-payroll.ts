import { createHash } from 'node:crypto'
import { utcDate } from '../../domain/kernel/calendar.ts'
import { streamOf } from '../../domain/kernel/decider.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  CHUNK_BYTES,
  CHUNK_ROWS,
  nextStep,
  type PayrollFile,
  type PayrollFileCommand,
  type PayrollFileEvent,
  PayrollRowsRecorded,
  payrollFile,
} from '../../domain/payroll/payroll-file.ts'
import {
  type CanonicalRow,
  type NormalizedRow,
  normalizeRow,
  type RowVocabulary,
} from '../../domain/payroll/payroll-row.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import { type CommandContext, decideAll, type Loaded } from '../command-handling/command-handler.ts'
import { inlinePhases, pipelineFault } from '../payroll/pipeline-steps.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'
import type { FaultMode } from '../ports/faults.ts'
import { sealContext } from '../ports/personal-data.ts'

/** Rows of a report that are processed before the answer; above, the pipeline works in the background. */
export const SYNCHRONOUS_ROWS = 500
/** Rows of one request at the most. */
export const MAX_ROWS = 50_000
/** JSON bytes of one row at the most. */
export const MAX_ROW_BYTES = 32 * 1024
/** Real time that a submission waits for a phase that was not done inline, in milliseconds. */
const PHASE_WAIT_MS = 3_000
/** Bytes of one append of row chunks; leaves room for metadata below the log's limit. */
const APPEND_BYTES = 800 * 1024

/** A payroll submission whose sender, employer and policy are settled already. */
export interface PayrollSubmission {
  readonly source: 'tool' | 'report' | 'inbound_webhook'
  /** Credential, client or connection id. */
  readonly senderId: string
  readonly tenantId: string
  readonly environment: Environment
  readonly employerId: string
  readonly employerName: string
  readonly policy: Loaded<Policy | null> & { readonly state: Policy }
  readonly rows: readonly Record<string, unknown>[]
  readonly vocabulary: RowVocabulary
  readonly period: { readonly start: string; readonly end: string } | null
  /**
   * `phase_1`: process inline what fits one chunk, else wait for validation a little (tools).
   * `complete`: up to {@link SYNCHRONOUS_ROWS} rows wait for the whole pipeline, more for nothing (reports).
   */
  readonly waitFor: 'phase_1' | 'complete'
}

/** What became of a submission by the time of the answer. */
export interface SubmittedPayroll {
  readonly fileId: string
  readonly submissionId: string | null
  readonly fileName: string
  readonly rowCount: number
  /** `background`: accepted and stored, phases go on; `failed`: see `error`. */
  readonly outcome: 'complete' | 'validated' | 'background' | 'failed'
  readonly error: string | null
}

/**
 * Accepts payroll rows as a new file. Rows are normalized, who they are about is sealed, and
 * everything is stored before this returns. A file of one chunk is taken through all phases at once
 * and stored with them in one append; a larger one is left to the payroll pipeline.
 *
 * File, submission and event ids derive from the context's command id, so that a retry under the
 * same command id finds its file instead of making a second one.
 */
export async function submitPayroll(
  app: Application,
  submission: PayrollSubmission,
  context: CommandContext,
): Promise<SubmittedPayroll | Rejection> {
  const { rows } = submission
  if (rows.length > MAX_ROWS) {
    return reject('invalid', 'too_many_rows', `At most ${MAX_ROWS} rows fit one request`, 'rows')
  }
  const fileId = derivedId(context.commandId, 'file')
  const submissionId = submission.source === 'tool' ? derivedId(context.commandId, 'submission') : null
  const held = app.faults.holding('pipeline')
  const chunks = await chunksOf(app, submission, fileId)
  const received = receiveCommand(app, submission, fileId, submissionId, chunks)
  // the pipeline runs into the other faults by itself where it takes the file over
  const fault = app.faults.take('pipeline', chunks.length === 1 ? ALL_FAILURES : ['unreachable'])

  let stored: Loaded<PayrollFile> & { position: bigint }
  if (chunks.length > 1) {
    stored = await recordChunks(app, fileId, received, chunks, context)
    if (fault !== null) stored = await failFile(app, fileId, fault, context)
  } else {
    const start: PayrollFileCommand[] = [received, { type: 'RecordRows', rows: chunks[0]! }]
    const events = wholeFile(start, submission.policy, fault, held)
    if (isRejection(events)) return events
    stored = await storeWhole(app, fileId, events, context)
  }

  await app.readModels.reached(['payroll-files'], stored.position)
  const mayWait = submission.waitFor === 'phase_1' || (submission.rows.length <= SYNCHRONOUS_ROWS && !held)
  const file = mayWait ? await settle(app, fileId, stored, submission.waitFor) : stored.state
  return {
    fileId,
    submissionId,
    fileName: file.received!.file_name,
    rowCount: rows.length,
    outcome: outcomeOf(file, submission.waitFor),
    error: file.failed?.error ?? null,
  }
}

/** What makes file creation fail; a hold only delays it. */
const ALL_FAILURES: readonly FaultMode[] = ['decline', 'timeout', 'unreachable']

const emptyFile: Loaded<PayrollFile> = { state: payrollFile.initialState, revision: -1 }

/** The first 24 hex characters of a hash over the command id: ids that a retry finds again. */
export function derivedId(commandId: string, what: string): string {
  return createHash('sha256').update(`${commandId}/${what}`).digest('hex').slice(0, 24)
}

/** All events of a file of one chunk: its phases too, unless a fault holds or fails the pipeline. */
function wholeFile(
  start: readonly PayrollFileCommand[],
  policy: PayrollSubmission['policy'],
  fault: FaultMode | null,
  held: boolean,
): readonly PayrollFileEvent[] | Rejection {
  const commands: readonly PayrollFileCommand[] =
    fault === null ? start : [...start, { type: 'Fail', stage: 'file_creation', error: pipelineFault(fault) }]
  const recorded = decideAll(payrollFile, commands, payrollFile.initialState)
  if (isRejection(recorded) || fault !== null || held) {
    return isRejection(recorded) ? recorded : recorded.events
  }
  const phases = inlinePhases(recorded.events, policy.state, policy.revision)
  return isRejection(phases) ? phases : [...recorded.events, ...phases]
}

/** Stores a file in one append; a file that an earlier attempt under the same command stored stays as it is. */
async function storeWhole(
  app: Application,
  fileId: string,
  events: readonly PayrollFileEvent[],
  context: CommandContext,
): Promise<Loaded<PayrollFile> & { position: bigint }> {
  try {
    return await app.commands.appendAt(payrollFile, fileId, emptyFile, events, context)
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision)) throw error
    return { ...(await app.commands.load(payrollFile, fileId)), position: await app.log.head() }
  }
}

function receiveCommand(
  app: Application,
  submission: PayrollSubmission,
  fileId: string,
  submissionId: string | null,
  chunks: readonly (readonly CanonicalRow[])[],
): PayrollFileCommand {
  const { policy, period } = submission
  return {
    type: 'Receive',
    data: {
      file_id: fileId,
      tenant_id: submission.tenantId,
      environment: submission.environment,
      employer_id: submission.employerId,
      policy_id: policy.state.policy_id,
      policy_number: policy.state.policy_number,
      source: { kind: submission.source, submission_id: submissionId, sender_id: submission.senderId },
      file_name: fileName(submission.employerName, period, policy.state.policy_number, app.clock.now()),
      row_count: submission.rows.length,
      chunk_count: chunks.length,
      period,
    },
  }
}

/** `<employer>_<start>_<end>_<policy number>.json`; without a period both dates are the day of receipt (UTC). */
export function fileName(
  employerName: string,
  period: { start: string; end: string } | null,
  policyNumber: string,
  epochMs: number,
): string {
  const today = utcDate(epochMs)
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
): Promise<CanonicalRow[][]> {
  const chunks: CanonicalRow[][] = []
  let chunk: CanonicalRow[] = []
  let bytes = 0
  for (let from = 0; from < submission.rows.length; from += CHUNK_ROWS) {
    const slice = submission.rows
      .slice(from, from + CHUNK_ROWS)
      .map((raw, index) => normalizeRow(raw, from + index + 1, submission.vocabulary))
    for (const row of await sealPersons(app, submission.employerId, fileId, slice)) {
      const size = Buffer.byteLength(JSON.stringify(row)) + 1
      if (chunk.length > 0 && (chunk.length === CHUNK_ROWS || bytes + size > CHUNK_BYTES)) {
        chunks.push(chunk)
        chunk = []
        bytes = 0
      }
      chunk.push(row)
      bytes += size
    }
  }
  if (chunk.length > 0) chunks.push(chunk)
  return chunks
}

async function sealPersons(
  app: Application,
  employerId: string,
  fileId: string,
  rows: readonly NormalizedRow[],
): Promise<readonly CanonicalRow[]> {
  const named = rows.filter(({ person }) => person !== null)
  if (named.length === 0) return rows.map(({ row }) => row)
  const values = await app.personalData.seal(
    named.map(({ row, person, identity }) => ({
      subject: personSubject(app, employerId, identity),
      context: rowPersonContext(fileId, row.n),
      plaintext: JSON.stringify(person),
    })),
  )
  for (const [index, { row }] of named.entries()) row.person = values[index]!
  return rows.map(({ row }) => row)
}

/**
 * The data subject of a person, by what identifies it within its employer. Rows that carry personal
 * values but identify nobody share one subject of the employer.
 */
export function personSubject(app: Application, employerId: string, identity: string | null): string {
  return app.personalData.subjectId('person', `${employerId}|${identity ?? 'unidentified'}`)
}

/** What the sealed person of a row is bound to, wherever a copy of it stands. */
export function rowPersonContext(fileId: string, rowNumber: number): string {
  return sealContext(streamOf(payrollFile, fileId), PayrollRowsRecorded.name, `rows.${rowNumber}.person`)
}

/** Appends the chunks of a large file, a few per append, going on where an earlier attempt ended. */
async function recordChunks(
  app: Application,
  fileId: string,
  received: PayrollFileCommand,
  chunks: readonly CanonicalRow[][],
  context: CommandContext,
): Promise<Loaded<PayrollFile> & { position: bigint }> {
  let at: Loaded<PayrollFile> & { position: bigint } = { ...emptyFile, position: 0n }
  while (nextStep(at.state).step === 'record_rows') {
    const first = at.state.chunks_recorded
    const commands: PayrollFileCommand[] = at.state.received ? [] : [received]
    let bytes = 0
    for (const rows of chunks.slice(first)) {
      const size = Buffer.byteLength(JSON.stringify(rows))
      if (bytes > 0 && bytes + size > APPEND_BYTES) break
      commands.push({ type: 'RecordRows', rows })
      bytes += size
    }
    const decided = decideAll(payrollFile, commands, at.state)
    if (isRejection(decided)) throw new Error(decided.message)
    const commandId = `${context.commandId}/rows/${first}`
    try {
      at = await app.commands.appendAt(payrollFile, fileId, at, decided.events, { ...context, commandId })
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error
      const stored = await app.commands.load(payrollFile, fileId)
      if (stored.revision <= at.revision) throw error
      at = { ...stored, position: await app.log.head() }
    }
  }
  return at
}

async function failFile(
  app: Application,
  fileId: string,
  fault: FaultMode,
  context: CommandContext,
): Promise<Loaded<PayrollFile> & { position: bigint }> {
  const failed = await app.commands.execute(
    payrollFile,
    fileId,
    { type: 'Fail', stage: 'file_creation', error: pipelineFault(fault) },
    { ...context, commandId: `${context.commandId}/fail` },
  )
  if (isRejection(failed)) throw new Error(failed.message)
  return { ...failed, position: failed.position ?? (await app.log.head()) }
}

/** Waits until the pipeline has done what the answer tells about, or the time is up. */
async function settle(
  app: Application,
  fileId: string,
  stored: Loaded<PayrollFile>,
  waitFor: PayrollSubmission['waitFor'],
): Promise<PayrollFile> {
  let file = stored.state
  const deadline = performance.now() + PHASE_WAIT_MS
  while (!isSettled(file, waitFor) && performance.now() < deadline && !app.faults.holding('pipeline')) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    file = (await app.commands.load(payrollFile, fileId)).state
  }
  if (file !== stored.state) await app.readModels.reached(['payroll-files'], await app.log.head())
  return file
}

function isSettled(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): boolean {
  const { step } = nextStep(file)
  if (step === 'complete' || step === 'failed') return true
  return waitFor === 'phase_1' && (step === 'calculate_wages' || step === 'calculate_premium')
}

function outcomeOf(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): SubmittedPayroll['outcome'] {
  if (file.failed) return 'failed'
  if (nextStep(file).step === 'complete') return 'complete'
  return isSettled(file, waitFor) ? 'validated' : 'background'
}

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
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import { decideAll, type Loaded } from '../command-handling/command-handler.ts'
import { derivedId } from '../event-registry.ts'
import { phaseTerms, pipelineFault } from '../payroll/pipeline-steps.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'
import type { FaultMode } from '../ports/faults.ts'
import { personSubject, sealFields } from '../sealing.ts'
import { inTimeSlices, mapInTimeSlices } from '../time-slices.ts'
import { type UploadChunk, uploadChunks } from './upload-chunks.ts'

/** Rows of a report that are processed before the answer; above, the pipeline works in the background. */
export const SYNCHRONOUS_ROWS = 500
/** Rows of one request at the most. */
export const MAX_ROWS = 50_000
/** Real time that a submission waits for a phase that was not done inline, in milliseconds. */
const PHASE_WAIT_MS = 3_000
/** Uploads of one large file within one submission, when each is given up before its end. */
const UPLOADS = 3

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
  readonly file: PayrollFile
  readonly fileName: string
  readonly rowCount: number
  /** Whether everything was stored in one append, as whose result the answer can be told again. */
  readonly inOneAppend: boolean
  /** `background`: accepted and stored, phases go on; `failed`: see `error`. */
  readonly outcome: 'complete' | 'validated' | 'background' | 'failed'
  readonly error: string | null
}

/**
 * Accepts payroll rows as a new file. Rows are normalized, who they are about is sealed, and
 * everything is stored before this returns. A file of one chunk is taken through all phases at once
 * and stored with them in one append; a larger one is left to the payroll pipeline.
 *
 * File and submission ids derive from the context's command id, so that a retry under the
 * same command id finds its file instead of making a second one. A large file that was given up before
 * all of its rows were stored is no answer: it is left behind, and the rows are stored as another one.
 * @throws WrongExpectedRevision when a request with the same key has stored its file in one append, or another one.
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
  const held = await app.faults.holding('pipeline')
  const stored = (await storedBefore(app, context)) ?? (await storeFile(app, submission, held, context))
  if (isRejection(stored)) return stored

  await app.readModels.tellOf(payrollFile, stored.position)
  const { file_id: fileId, chunk_count } = stored.state.received!
  const mayWait = submission.waitFor === 'phase_1' || (submission.rows.length <= SYNCHRONOUS_ROWS && !held)
  const file = mayWait ? await settle(app, fileId, stored, submission.waitFor) : stored.state
  return { fileId, file, inOneAppend: chunk_count === 1, ...resultOf(file, submission.waitFor) }
}

/** Stores all rows of a submission, at once with what the phases make of them where they fit one chunk. */
async function storeFile(
  app: Application,
  submission: PayrollSubmission,
  held: boolean,
  context: CommandContext,
): Promise<StoredFile | Rejection> {
  const cut = await cutFile(app, submission, context, 0)
  // the pipeline runs into the other faults by itself where it takes the file over
  const fault = await app.faults.take('pipeline', cut.chunks.length === 1 ? ALL_FAILURES : ['unreachable'])
  if (cut.chunks.length > 1) {
    const stored = await uploadFile(app, submission, cut, context)
    return fault === null ? stored : failFile(app, stored.state.received!.file_id, fault, context)
  }
  const decided = decideAll(
    payrollFile,
    wholeFile(cut, submission.policy, fault, held),
    payrollFile.initialState,
  )
  return isRejection(decided) ? decided : storeWhole(app, cut.fileId, decided.events, context)
}

/** What an answer tells of a file by its state. */
export function resultOf(
  file: PayrollFile,
  waitFor: PayrollSubmission['waitFor'],
): Pick<SubmittedPayroll, 'fileName' | 'rowCount' | 'outcome' | 'error'> {
  const { file_name, row_count } = file.received!
  return {
    fileName: file_name,
    rowCount: row_count,
    outcome: outcomeOf(file, waitFor),
    error: file.failed?.error ?? null,
  }
}

/** What makes file creation fail; a hold only delays it. */
const ALL_FAILURES: readonly FaultMode[] = ['decline', 'timeout', 'unreachable']

const emptyFile: Loaded<PayrollFile> = { state: payrollFile.initialState, revision: -1 }

type Command<Type> = Extract<PayrollFileCommand, { readonly type: Type }>

/** A file as stored, and where its last event of this request stands in the log. */
type StoredFile = Loaded<PayrollFile> & { readonly position: bigint }

/** A submission cut into the chunks of a file, ready to be stored. */
interface CutFile {
  readonly fileId: string
  readonly received: Command<'Receive'>
  readonly chunks: readonly UploadChunk<Command<'RecordRows'>>[]
  /** How many files of the same submission were given up before this one. */
  readonly givenUp: number
}

async function cutFile(
  app: Application,
  submission: PayrollSubmission,
  context: CommandContext,
  givenUp: number,
): Promise<CutFile> {
  const fileId = fileIdOf(context, givenUp)
  const submissionId = submission.source === 'tool' ? derivedId(fileId, 'submission') : null
  const chunks = await chunksOf(app, submission, fileId)
  const received = receiveCommand(app, submission, fileId, submissionId, chunks.length)
  return { fileId, received, chunks, givenUp }
}

/** The id of a submission's file, or of the one that takes the place of so many that were given up. */
function fileIdOf(context: CommandContext, givenUp: number): string {
  const first = createdId(context, payrollFile)
  return givenUp === 0 ? first : derivedId(first, `again/${givenUp}`)
}

/**
 * Stores a file of several chunks, as another one when it was given up before all rows were stored.
 * @throws Error when that happens again and again: the sender has to come back.
 */
async function uploadFile(
  app: Application,
  submission: PayrollSubmission,
  first: CutFile,
  context: CommandContext,
): Promise<StoredFile> {
  let cut = first
  for (let uploads = 1; uploads <= UPLOADS; uploads += 1) {
    const { givenUp } = await openUpload(app, context)
    // what was given up is a stored first append, too: whose body it had is for the key to tell
    if (givenUp > 0 && context.keyedRequest) {
      throw new WrongExpectedRevision(streamOf(payrollFile, fileIdOf(context, 0)), -1)
    }
    // sealed rows are bound to their file
    if (givenUp !== cut.givenUp) cut = await cutFile(app, submission, context, givenUp)
    const stored = await uploadChunks(app, payrollFile, cut.fileId, cut.received, cut.chunks, context)
    if (!isGivenUp(stored.state)) return stored
  }
  throw new Error(`The upload was interrupted ${UPLOADS} times before all rows were stored`)
}

/**
 * How many files of a submission were given up, and the one after them as it stands, empty when nothing is stored
 * of it.
 */
async function openUpload(
  app: Pick<Application, 'commands'>,
  context: CommandContext,
): Promise<{ readonly givenUp: number; readonly file: Loaded<PayrollFile> }> {
  for (let givenUp = 0; ; givenUp += 1) {
    const file = await app.commands.load(payrollFile, fileIdOf(context, givenUp))
    if (!isGivenUp(file.state)) return { givenUp, file }
  }
}

/** The file of which an earlier attempt has stored all rows: nothing is sealed for it again. */
async function storedBefore(app: Application, context: CommandContext): Promise<StoredFile | null> {
  if (!context.mayRepeat || context.keyedRequest) return null
  const { file } = await openUpload(app, context)
  const { received, chunks_recorded } = file.state
  const isWhole = received !== null && chunks_recorded === received.chunk_count
  return isWhole ? { ...file, position: await app.log.head() } : null
}

/** True for a file that failed while some of its rows were missing. */
function isGivenUp({ failed, received, chunks_recorded }: PayrollFile): boolean {
  return failed !== null && received !== null && chunks_recorded < received.chunk_count
}

/** What makes a file of one chunk: all of it at once, unless a fault holds or fails the pipeline. */
function wholeFile(
  { received, chunks: [chunk] }: CutFile,
  policy: PayrollSubmission['policy'],
  fault: FaultMode | null,
  held: boolean,
): readonly PayrollFileCommand[] {
  const { data } = received
  const { rows } = chunk!.command
  if (fault === null && !held) {
    return [
      { type: 'ReceiveAndProcess', data, rows, policyRevision: policy.revision, ...phaseTerms(policy.state) },
    ]
  }
  const start: readonly PayrollFileCommand[] = [received, chunk!.command]
  return fault === null
    ? start
    : [...start, { type: 'Fail', stage: 'file_creation', error: pipelineFault(fault) }]
}

/** Stores a file in one append; one that an earlier attempt under the same claim stored stays as it is. */
async function storeWhole(
  app: Application,
  fileId: string,
  events: readonly PayrollFileEvent[],
  context: CommandContext,
): Promise<StoredFile> {
  try {
    return await app.commands.appendAt(payrollFile, fileId, emptyFile, events, context)
  } catch (error) {
    if (context.keyedRequest || !(error instanceof WrongExpectedRevision)) throw error
    return { ...(await app.commands.load(payrollFile, fileId)), position: await app.log.head() }
  }
}

function receiveCommand(
  app: Application,
  submission: PayrollSubmission,
  fileId: string,
  submissionId: string | null,
  chunkCount: number,
): Command<'Receive'> {
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
      chunk_count: chunkCount,
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
): Promise<UploadChunk<Command<'RecordRows'>>[]> {
  const chunks: UploadChunk<Command<'RecordRows'>>[] = []
  let chunk: CanonicalRow[] = []
  let bytes = 0
  const close = () => {
    chunks.push({ command: { type: 'RecordRows', rows: chunk }, bytes })
    chunk = []
    bytes = 0
  }
  for (let from = 0; from < submission.rows.length; from += CHUNK_ROWS) {
    const raw = submission.rows.slice(from, from + CHUNK_ROWS)
    const normalized = await mapInTimeSlices(raw, (row, index) =>
      normalizeRow(row, from + index + 1, submission.vocabulary),
    )
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
  const drafts = await mapInTimeSlices(rows, ({ row, person }) =>
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

async function failFile(
  app: Application,
  fileId: string,
  fault: FaultMode,
  context: CommandContext,
): Promise<StoredFile> {
  const failed = await app.commands.execute(
    payrollFile,
    fileId,
    { type: 'Fail', stage: 'file_creation', error: pipelineFault(fault) },
    context,
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
  while (
    !isSettled(file, waitFor) &&
    performance.now() < deadline &&
    !(await app.faults.holding('pipeline'))
  ) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    file = (await app.commands.load(payrollFile, fileId)).state
  }
  if (file !== stored.state) await app.readModels.tellOf(payrollFile, await app.log.head())
  return file
}

function isSettled(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): boolean {
  const { step } = nextStep(file)
  if (step === 'complete' || step === 'failed') return true
  return waitFor === 'phase_1' && (step === 'calculate_wages' || step === 'calculate_premium')
}

function outcomeOf(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): SubmittedPayroll['outcome'] {
  if (file.failed) return 'failed'
  // the answer for so many rows is that they are processed in the background, also to who asks when that is done
  const isBackground = waitFor === 'complete' && file.received!.row_count > SYNCHRONOUS_ROWS
  if (nextStep(file).step === 'complete') return isBackground ? 'background' : 'complete'
  return isSettled(file, waitFor) ? 'validated' : 'background'
}

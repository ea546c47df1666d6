import type { AchAccount } from '../../domain/banking/accounts/ach-account.ts'
import { isRejection, orThrow, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  nextStep,
  type PayrollFile,
  type PayrollFileCommand,
  payrollFile,
} from '../../domain/payroll/payroll-file.ts'
import type { PayrollFileEvent } from '../../domain/payroll/payroll-file-events.ts'
import { activePrimaryAccount } from '../banking/debits/payroll-debits.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { decideAll, type Loaded } from '../commands/command-handler.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'
import type { FaultMode } from '../ports/faults.ts'
import { type CutFile, cutFile, type PayrollSubmission } from './cut-file.ts'
import { phaseTerms, pipelineFault } from './pipeline-steps.ts'
import { type StoredFile, storedBefore, uploadFile } from './upload-file.ts'

/** Rows of a report that are processed before the answer; above, the pipeline works in the background. */
export const SYNCHRONOUS_ROWS = 500
/** Rows of one request at the most. */
export const MAX_ROWS = 50_000
/** Real time that a submission waits for a phase that was not done inline, in milliseconds. */
const PHASE_WAIT_MS = 3_000

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
 * Accepts payroll rows as a new file. Rows are normalized, their persons are sealed, and
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

  await app.readModels.awaitProjections(payrollFile, stored.position)
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
  const account = await activePrimaryAccount(app, submission.employerId)
  const decided = decideAll(
    payrollFile,
    wholeFile(cut, submission.policy, account, fault, held),
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

/** What makes a file of one chunk: all of it at once, unless a fault holds or fails the pipeline. */
function wholeFile(
  { received, chunks: [chunk] }: CutFile,
  policy: PayrollSubmission['policy'],
  account: AchAccount | null,
  fault: FaultMode | null,
  held: boolean,
): readonly PayrollFileCommand[] {
  const { data } = received
  const { rows } = chunk!
  if (fault === null && !held) {
    const debitAccountId = account?.ach_account_id ?? null
    const how = { policyRevision: policy.revision, debitAccountId, ...phaseTerms(policy.state) }
    return [{ type: 'ReceiveAndProcess', data, rows, ...how }]
  }
  const start: readonly PayrollFileCommand[] = [received, chunk!]
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

async function failFile(
  app: Application,
  fileId: string,
  fault: FaultMode,
  context: CommandContext,
): Promise<StoredFile> {
  const failed = orThrow(
    await app.commands.execute(
      payrollFile,
      fileId,
      { type: 'Fail', stage: 'file_creation', error: pipelineFault(fault) },
      context,
    ),
  )
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
    file = (await app.commands.asOfNow().load(payrollFile, fileId)).state
  }
  if (file !== stored.state) await app.readModels.awaitProjections(payrollFile, await app.log.head())
  return file
}

function isSettled(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): boolean {
  const { step } = nextStep(file)
  if (step === 'complete' || step === 'failed') return true
  return waitFor === 'phase_1' && (step === 'calculate_wages' || step === 'calculate_premium')
}

function outcomeOf(file: PayrollFile, waitFor: PayrollSubmission['waitFor']): SubmittedPayroll['outcome'] {
  if (file.failed) return 'failed'
  // so many rows are answered as processed in the background, also when that is already done
  const isBackground = waitFor === 'complete' && file.received!.row_count > SYNCHRONOUS_ROWS
  if (nextStep(file).step === 'complete') return isBackground ? 'background' : 'complete'
  return isSettled(file, waitFor) ? 'validated' : 'background'
}

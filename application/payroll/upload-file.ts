import { streamOf } from '../../domain/kernel/decider.ts'
import { type PayrollFile, payrollFile } from '../../domain/payroll/payroll-file.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import type { Loaded } from '../commands/command-handler.ts'
import { uploadChunks } from '../commands/upload-chunks.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'
import { type CutFile, cutFile, fileIdOf, type PayrollSubmission } from './cut-file.ts'

/** Uploads of one large file within one submission, when each is given up before its end. */
const UPLOADS = 3

/** A file as stored, and where its last event of this request stands in the log. */
export type StoredFile = Loaded<PayrollFile> & { readonly position: bigint }

/**
 * Stores a file of several chunks, as another one when it was given up before all rows were stored.
 * @throws Error when that happens again and again: the sender has to come back.
 */
export async function uploadFile(
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
export async function storedBefore(app: Application, context: CommandContext): Promise<StoredFile | null> {
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

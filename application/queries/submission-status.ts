import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { Statement } from '../ports/read-database.ts'
import { ReadModelsLate } from '../ports/read-models.ts'

/** Where a phase of a file stands; a phase that runs still reads `pending`. */
export type PhaseStatus = 'pending' | 'complete' | 'failed'

/** A file of payroll rows, or of employee changes, as the read model shows it. */
export interface PayrollFileRow {
  readonly file_id: string
  readonly kind: 'payroll' | 'sync'
  /** Null unless an agent submitted the file. */
  readonly submission_id: string | null
  readonly employer_id: string
  readonly status: 'pending' | 'NORMALIZED' | 'failed'
  /** Why the file failed. */
  readonly error: string | null
  readonly created_at: string
  readonly row_count: number
  readonly green_rows: number
  readonly red_rows: number
  readonly phase_1_status: PhaseStatus
  readonly wages_rows: number
  readonly total_auditable_wages_cents: number
  readonly phase_2_status: PhaseStatus
  readonly premium_rows: number
  readonly total_premium_cents: number
  readonly phase_3_status: PhaseStatus
}

const COLUMNS = `
  file_id, kind, submission_id, employer_id, status, error, created_at, row_count, green_rows,
  red_rows, phase_1_status, wages_rows, total_auditable_wages_cents, phase_2_status, premium_rows,
  total_premium_cents, phase_3_status`

const BY_FILE: Statement = {
  name: 'agent-file-by-id',
  text: `SELECT ${COLUMNS} FROM read_model.payroll_files WHERE file_id = $1`,
}
const BY_SUBMISSION: Statement = {
  name: 'agent-file-by-submission',
  text: `SELECT ${COLUMNS} FROM read_model.payroll_files WHERE submission_id = $1`,
}

/** Finds a file by its id or by its submission's; a miss waits until the read model is at the head of the log. @throws ReadModelsLate */
export async function findPayrollFile(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  by: { readonly fileId: string } | { readonly submissionId: string },
): Promise<PayrollFileRow | null> {
  const [statement, id] = 'fileId' in by ? [BY_FILE, by.fileId] : [BY_SUBMISSION, by.submissionId]
  if (!isId(id)) return null
  const find = async () => (await app.read.query<PayrollFileRow>(statement, [id]))[0] ?? null
  const found = await find()
  if (found) return found
  const isCurrent = await app.readModels.reached(['payroll-files'], await app.log.head())
  const late = await find()
  if (!late && !isCurrent) throw new ReadModelsLate()
  return late
}

/**
 * The result of `get_submission_status`: phases with their counters, money in integer cents; `error`
 * tells why a submission failed and is absent from others.
 */
export function submissionStatus(file: PayrollFileRow) {
  return {
    submission_id: file.submission_id,
    status: statusOf(file),
    ...(file.status === 'failed' ? { error: file.error ?? 'The file could not be processed' } : {}),
    dry_run: false,
    row_count: file.row_count,
    created_at: file.created_at,
    file_id: file.file_id,
    file_status: fileStatus(file),
    phase_1: {
      total_rows: file.row_count,
      green_rows: file.green_rows,
      red_rows: file.red_rows,
      status: file.phase_1_status,
    },
    phase_2: {
      total_auditable_wages_cents: file.total_auditable_wages_cents,
      rows_processed: file.wages_rows,
      status: file.phase_2_status,
    },
    phase_3: {
      total_premium_cents: file.total_premium_cents,
      rows_processed: file.premium_rows,
      status: file.phase_3_status,
    },
    row_breakdown: { green: file.green_rows, red: file.red_rows },
  }
}

function statusOf(file: PayrollFileRow): string {
  if (file.status === 'failed') return 'submission_failed'
  return file.phase_1_status === 'complete' ? 'submitted_and_validated' : 'submitted_validation_pending'
}

/** The live status of the file in one word, by the last phase that is done. */
function fileStatus(file: PayrollFileRow): string {
  if (file.status === 'failed') return 'failed'
  if (file.phase_3_status === 'complete') return 'complete'
  if (file.phase_2_status === 'complete') return 'calculated'
  return file.phase_1_status === 'complete' ? 'validated' : file.status
}

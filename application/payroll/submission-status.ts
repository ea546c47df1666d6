import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../commands/application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { type Parameter, type Reading, statement } from '../queries/statement.ts'

const statusFields = (db: Reading) =>
  db
    .selectFrom('payroll_files')
    .select(['file_id', 'kind', 'submission_id', 'employer_id', 'status', 'error', 'created_at'])
    .select(['row_count', 'green_rows', 'red_rows', 'phase_1_status'])
    .select(['wages_rows', 'total_auditable_wages_cents', 'phase_2_status'])
    .select(['premium_rows', 'total_premium_cents', 'phase_3_status'])
const BY_FILE = statement('agent-file-by-id', (db, $: Parameter<{ id: string }>) =>
  statusFields(db).where('file_id', '=', $('id')),
)
const BY_SUBMISSION = statement('agent-file-by-submission', (db, $: Parameter<{ id: string }>) =>
  statusFields(db).where('submission_id', '=', $('id')),
)

/** A file of payroll rows, or of employee changes, as the read model shows it. */
export type PayrollFileRow = ResultOf<typeof BY_FILE>

/** Finds a file by its id or by its submission's; a miss waits until the read model is at the head of the log. @throws ReadModelsLate */
export async function findPayrollFile(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  by: { readonly fileId: string } | { readonly submissionId: string },
): Promise<PayrollFileRow | null> {
  const [query, id] = 'fileId' in by ? [BY_FILE, by.fileId] : [BY_SUBMISSION, by.submissionId]
  if (!isId(id)) return null
  return findCurrent(app, 'payroll-files', async () => (await app.read.query(query, { id }))[0] ?? null)
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

import { type ApiClient, mayActFor } from '../../domain/access/api-client.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { employerOfClient, isPolicyInScope } from '../access/client-scope.ts'
import type { Application } from '../commands/application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { type Parameter, statement } from '../queries/statement.ts'

/** A phase that has not finished tells nothing but that; a failed one tells how far it came. */
type Phase<Results> = { readonly status: 'pending' } | ({ readonly status: 'complete' | 'failed' } & Results)

/** What `GET /files/status/:file_id` answers. */
export interface FileStatus {
  readonly file_id: string
  readonly status: 'pending' | 'NORMALIZED' | 'failed'
  /** Why; only of failed files. */
  readonly error?: string
  /** ISO 8601 UTC. */
  readonly created_at: string
  readonly updated_at: string
  readonly employee_count: number
  readonly employer_id: string
  /** Null when the report named none. */
  readonly period: { readonly start: string; readonly end: string } | null
  readonly phase_1: Phase<{ readonly green_rows: number; readonly red_rows: number }>
  readonly phase_2: Phase<{ readonly processed_rows: number }>
  /** Integer cents. */
  readonly phase_3: Phase<{ readonly total_premium_cents: number; readonly processed_rows: number }>
}

const FILE_BY_ID = statement('file-status-by-id', (db, $: Parameter<{ fileId: string }>) =>
  db
    .selectFrom('payroll_files')
    .select(['file_id', 'tenant_id', 'environment', 'employer_id', 'policy_id', 'status', 'error'])
    .select(['created_at', 'updated_at', 'row_count', 'period_start', 'period_end'])
    .select(['green_rows', 'red_rows', 'wages_rows', 'total_premium_cents', 'premium_rows'])
    .select(['phase_1_status', 'phase_2_status', 'phase_3_status'])
    .where('file_id', '=', $('fileId')),
)
type FileRow = ResultOf<typeof FILE_BY_ID>

/**
 * The status of a file or employee sync that the client may see.
 * @returns null when there is none: unknown, malformed, or outside the client's tenant, environment,
 *   employers or carriers. A sync has no policy: its employer must have one of the client's carriers.
 * @throws ReadModelsLate when it may have been accepted a moment ago and cannot be read yet.
 */
export async function fileStatus(
  app: Pick<Application, 'commands' | 'read' | 'readModels' | 'log'>,
  client: ApiClient,
  fileId: string,
): Promise<FileStatus | null> {
  if (!isId(fileId)) return null
  const find = async () => (await app.read.query(FILE_BY_ID, { fileId }))[0] ?? null
  const file = await findCurrent(app, 'payroll-files', find)
  const visible =
    file !== null &&
    file.tenant_id === client.tenant_id &&
    file.environment === client.environment &&
    mayActFor(client, file.employer_id) &&
    (file.policy_id === null
      ? (await employerOfClient(app, client, file.employer_id)) !== null
      : await isPolicyInScope(app, client, file.policy_id))
  return visible ? shown(file) : null
}

function shown(file: FileRow): FileStatus {
  return {
    file_id: file.file_id,
    status: file.status,
    ...(file.status === 'failed' ? { error: file.error ?? 'The file could not be processed' } : {}),
    created_at: file.created_at,
    updated_at: file.updated_at,
    employee_count: file.row_count,
    employer_id: file.employer_id,
    period:
      file.period_start === null || file.period_end === null
        ? null
        : { start: file.period_start, end: file.period_end },
    phase_1: phase(file.phase_1_status, { green_rows: file.green_rows, red_rows: file.red_rows }),
    phase_2: phase(file.phase_2_status, { processed_rows: file.wages_rows }),
    phase_3: phase(file.phase_3_status, {
      total_premium_cents: file.total_premium_cents,
      processed_rows: file.premium_rows,
    }),
  }
}

function phase<Results>(status: 'pending' | 'complete' | 'failed', results: Results): Phase<Results> {
  return status === 'pending' ? { status } : { status, ...results }
}

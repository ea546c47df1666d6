import type { Application } from '../commands/application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { OF_TENANT, operatorRows } from '../queries/lists.ts'
import { type Parameter, statement } from '../queries/statement.ts'

const FILE = statement('operator-payroll-file', (db, $: Parameter<{ readonly fileId: string }>) =>
  db.selectFrom('payroll_files').selectAll().where('file_id', '=', $('fileId')),
)

/** A file of payroll rows or of employee changes, with where its phases stand. Amounts are cents. */
export type ListedFile = ResultOf<typeof FILE>

/** Payroll files and employee syncs. */
export const listFiles = operatorRows({
  projection: 'payroll-files',
  table: 'payroll_files',
  by: [...OF_TENANT, 'employer_id', 'policy_id', 'kind', 'status'],
})

/** One of them; null: there is none. @throws ReadModelsLate when it may have been taken a moment ago. */
export function fileOf(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  fileId: string,
): Promise<ListedFile | null> {
  return findCurrent(app, 'payroll-files', async () => (await app.read.query(FILE, { fileId }))[0] ?? null)
}

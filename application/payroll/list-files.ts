import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest, ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { isOfTenant, type ListScope, pagedList, readPage } from '../queries/pages.ts'
import { equalIfGiven, type Parameter, statement } from '../queries/statement.ts'

/** What an operator's list of payroll files is narrowed to; null is everything. */
interface FileScope extends ListScope {
  readonly employer_id: string | null
  readonly policy_id: string | null
  readonly kind: 'payroll' | 'sync' | null
  readonly status: 'pending' | 'NORMALIZED' | 'failed' | null
}

const FILES = pagedList(
  { projection: 'payroll-files', name: 'operator-payroll-files' },
  (db, $: Parameter<FileScope>) =>
    db
      .selectFrom('payroll_files')
      .selectAll()
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'policy_id', 'kind', 'status'))
      .orderBy('seq', 'desc'),
)
const FILE = statement('operator-payroll-file', (db, $: Parameter<{ readonly fileId: string }>) =>
  db.selectFrom('payroll_files').selectAll().where('file_id', '=', $('fileId')),
)

/** A file of payroll rows or of employee changes, with where its phases stand. Amounts are cents. */
export type ListedFile = ResultOf<typeof FILE>

/** Payroll files and employee syncs, newest first. */
export function listFiles(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  scope: FileScope,
  page: PageRequest,
): Promise<ListPage<ListedFile>> {
  return readPage(app, FILES, scope, page)
}

/** One of them; null: there is none. @throws ReadModelsLate when it may have been taken a moment ago. */
export function fileOf(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  fileId: string,
): Promise<ListedFile | null> {
  return findCurrent(app, 'payroll-files', async () => (await app.read.query(FILE, { fileId }))[0] ?? null)
}

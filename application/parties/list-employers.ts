import { employer } from '../../domain/parties/employer.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../queries/pages.ts'
import type { Parameter } from '../queries/statement.ts'
import { type ShownEmployer, showEmployers } from './show-employers.ts'

const EMPLOYERS = pagedList(
  { projection: 'employers', name: 'operator-employers' },
  (db, $: Parameter<ListScope>) =>
    db
      .selectFrom('employers')
      .select('employer_id as id')
      .where((eb) => isOfTenant(eb, $))
      .orderBy('seq', 'desc'),
)

/** Employers, newest first. */
export async function listEmployers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'personalData'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  const { items, total } = await loadPage(app, employer, EMPLOYERS, scope, page)
  return { items: await showEmployers(app, items), total }
}

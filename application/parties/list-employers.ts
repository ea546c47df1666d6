import { employer } from '../../domain/parties/employer.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'
import type { ListScope } from '../queries/pages.ts'
import { type ShownEmployer, showEmployers } from './show-employers.ts'

const EMPLOYERS = operatorList(employer, {
  projection: 'employers',
  table: 'employers',
  id: 'employer_id',
  by: OF_TENANT,
})

/** Employers, newest first. */
export async function listEmployers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock' | 'personalData'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  const { items, total } = await EMPLOYERS(app, scope, page)
  return { items: await showEmployers(app, items), total }
}

import { type Employer, employer } from '../../domain/parties/employer.ts'
import type { Application } from '../application.ts'
import {
  type ListPage,
  type ListScope,
  type PagePart,
  type PageRequest,
  readPage,
} from '../read-models/pages.ts'
import { isOfTenant, type Parameter, type Reading, statement } from '../read-models/statement.ts'
import { type ShownEmployer, showEmployers } from './show-employers.ts'

const employersOf = (db: Reading, $: Parameter<ListScope>) =>
  db.selectFrom('employers').where((eb) => isOfTenant(eb, $))
const EMPLOYERS = {
  projection: 'employers',
  rows: statement('operator-employers', (db, $: Parameter<ListScope & PagePart>) =>
    employersOf(db, $).select('employer_id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
  ),
  count: statement('operator-employer-count', (db, $: Parameter<ListScope>) =>
    employersOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
  ),
}

/** Employers, newest first. The read model tells which there are; what they are comes from the log. */
export async function listEmployers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'personalData'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  const { items, total } = await readPage(app, EMPLOYERS, scope, page)
  const loaded = await Promise.all(items.map(({ employer_id }) => app.commands.load(employer, employer_id)))
  const employers = loaded.map(({ state }) => state).filter((state): state is Employer => state !== null)
  return { items: await showEmployers(app, employers), total }
}

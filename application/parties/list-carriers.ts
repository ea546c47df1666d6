import { type Carrier, carrier } from '../../domain/parties/carrier.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../queries/statement.ts'

/** What a list of carriers is narrowed to; null is everything. */
interface CarrierScope {
  readonly tenant_id: string | null
}

const CARRIERS = pagedList(
  { projection: 'policies', name: 'operator-carriers' },
  (db, $: Parameter<CarrierScope>) =>
    db
      .selectFrom('carriers')
      .select('carrier_id as id')
      .where((eb) => equalIfGiven(eb, $, 'tenant_id'))
      .orderBy('seq', 'desc'),
)

/** Carriers, newest first. */
export function listCarriers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: CarrierScope,
  page: PageRequest,
): Promise<ListPage<Carrier>> {
  return loadPage(app, carrier, CARRIERS, scope, page)
}

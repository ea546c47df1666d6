import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest, ResultOf } from '../../ports/read-database.ts'
import { isOfTenant, type ListScope, pagedList, readPage } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../../queries/statement.ts'

/** What an operator's list of records of the legacy service is narrowed to; null is everything. */
interface LegacyScope extends ListScope {
  readonly employer_id: string | null
  readonly carrier_id: string | null
  readonly policy_id: string | null
  readonly status: string | null
}

const RECORDS = pagedList(
  { projection: 'legacy-collections', name: 'operator-legacy-collections' },
  (db, $: Parameter<LegacyScope>) =>
    db
      .selectFrom('legacy_collections')
      .selectAll()
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'policy_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Records of the legacy service as the ledger has them, newest first. Amounts are cents. */
export function listLegacyCollections(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  scope: LegacyScope,
  page: PageRequest,
): Promise<ListPage<ResultOf<typeof RECORDS.rows>>> {
  return readPage(app, RECORDS, scope, page)
}

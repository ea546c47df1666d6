import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../../queries/statement.ts'
import { insuredAsOfNow, type Scope } from './account-owners.ts'
import { type AccountScope, accountScope, isAccountWithinKey } from './account-rows.ts'
import { type ShownAchAccount, shownAchAccount } from './ach-accounts.ts'

/** What a list of accounts is narrowed to; null is everything. */
interface AchAccountScope extends AccountScope {
  readonly owner_id: string | null
  readonly owner_type: string | null
  readonly status: string | null
  readonly connection_type: string | null
}

const ACH_ACCOUNTS = pagedList(
  { projection: 'bank-accounts', name: 'ach-accounts' },
  (db, $: Parameter<AchAccountScope>) =>
    db
      .selectFrom('ach_accounts')
      .select('ach_account_id as id')
      .where((eb) => isAccountWithinKey(eb, 'ach_accounts', $))
      .where((eb) => equalIfGiven(eb, $, 'owner_id', 'owner_type', 'status', 'connection_type'))
      .orderBy('seq', 'desc'),
)

/** Accounts within the scope of a key, newest first. */
export async function listAchAccounts(
  app: Application,
  client: Scope,
  filter: Omit<AchAccountScope, keyof AccountScope>,
  page: PageRequest,
): Promise<ListPage<ShownAchAccount>> {
  await insuredAsOfNow(app, client)
  const scope = { ...accountScope(client), ...filter }
  const { items, total } = await loadPage(app, achAccount, ACH_ACCOUNTS, scope, page)
  const left = items.filter(({ deleted_at }) => deleted_at === null)
  return { items: await Promise.all(left.map((account) => shownAchAccount(app, account))), total }
}

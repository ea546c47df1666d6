import { achAccount } from '../../domain/banking/ach-account.ts'
import type { Application } from '../application.ts'
import { type AccountScope, accountScope, isAccountWithinKey } from '../read-models/account-rows.ts'
import { type ListPage, type PagePart, type PageRequest, readPage } from '../read-models/pages.ts'
import { equalsIfGiven, type Parameter, type Reading, statement } from '../read-models/statement.ts'
import { insuredAsOfNow, type Scope } from './account-owners.ts'
import { type ShownAchAccount, shownAchAccount } from './ach-accounts.ts'

/** What a list of accounts is narrowed to; null is everything. */
interface AchAccountScope extends AccountScope {
  readonly ownerId: string | null
  readonly ownerType: string | null
  readonly status: string | null
  readonly connectionType: string | null
}

const accountsOf = (db: Reading, $: Parameter<AchAccountScope>) =>
  db
    .selectFrom('ach_accounts')
    .where((eb) => isAccountWithinKey(eb, 'ach_accounts', $))
    .where((eb) => equalsIfGiven(eb, 'owner_id', $('ownerId')))
    .where((eb) => equalsIfGiven(eb, 'owner_type', $('ownerType')))
    .where((eb) => equalsIfGiven(eb, 'status', $('status')))
    .where((eb) => equalsIfGiven(eb, 'connection_type', $('connectionType')))
const ACH_ACCOUNTS = {
  projection: 'bank-accounts',
  rows: statement('ach-accounts', (db, $: Parameter<AchAccountScope & PagePart>) =>
    accountsOf(db, $).select('ach_account_id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
  ),
  count: statement('ach-account-count', (db, $: Parameter<AchAccountScope>) =>
    accountsOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
  ),
}

/** Accounts within the scope of a key, newest first. The read model tells which there are; the log what they are. */
export async function listAchAccounts(
  app: Application,
  client: Scope,
  filter: Omit<AchAccountScope, keyof AccountScope>,
  page: PageRequest,
): Promise<ListPage<ShownAchAccount>> {
  await insuredAsOfNow(app, client)
  const { items, total } = await readPage(app, ACH_ACCOUNTS, { ...accountScope(client), ...filter }, page)
  const loaded = await Promise.all(
    items.map(async ({ ach_account_id }) => {
      const { state } = await app.commands.load(achAccount, ach_account_id)
      return state && state.deleted_at === null ? shownAchAccount(app, state) : null
    }),
  )
  return { items: loaded.filter((one) => one !== null), total }
}

import {
  type AchAccount,
  type AchAccountStatus,
  achAccount,
} from '../../../domain/banking/accounts/ach-account.ts'
import { type BankAccountRecord, bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../../queries/statement.ts'

/** Bank accounts as operators list them, across tenants. Deleted ones are not listed. */

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>

/** What a list is narrowed to; null is everything. */
interface AccountsOf<Status> extends ListScope {
  readonly employer_id: string | null
  readonly carrier_id: string | null
  readonly status: Status | null
}

const ACCOUNTS = pagedList(
  { projection: 'bank-accounts', name: 'operator-bank-accounts' },
  (db, $: Parameter<AccountsOf<BankAccountRecord['status']>>) =>
    db
      .selectFrom('bank_accounts')
      .select('bank_account_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Accounts of the metadata layer, newest first. */
export function listAllBankAccounts(
  app: Parts,
  scope: AccountsOf<BankAccountRecord['status']>,
  page: PageRequest,
): Promise<ListPage<BankAccountRecord>> {
  return loadPage(app, bankAccount, ACCOUNTS, scope, page)
}

const ACH_ACCOUNTS = pagedList(
  { projection: 'bank-accounts', name: 'operator-ach-accounts' },
  (db, $: Parameter<AccountsOf<AchAccountStatus>>) =>
    db
      .selectFrom('ach_accounts')
      .select('ach_account_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Accounts that money is moved with, newest first. */
export function listAllAchAccounts(
  app: Parts,
  scope: AccountsOf<AchAccountStatus>,
  page: PageRequest,
): Promise<ListPage<AchAccount>> {
  return loadPage(app, achAccount, ACH_ACCOUNTS, scope, page)
}

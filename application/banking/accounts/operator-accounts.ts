import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import { OF_TENANT, operatorList } from '../../queries/lists.ts'

/** Accounts of the metadata layer. Deleted ones are not listed. */
export const listAllBankAccounts = operatorList(bankAccount, {
  projection: 'bank-accounts',
  table: 'bank_accounts',
  id: 'bank_account_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'status'],
})

/** Accounts that money is moved with. Deleted ones are not listed. */
export const listAllAchAccounts = operatorList(achAccount, {
  projection: 'bank-accounts',
  table: 'ach_accounts',
  id: 'ach_account_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'status'],
})

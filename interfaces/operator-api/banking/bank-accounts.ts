import { z } from 'zod'
import {
  listAllAchAccounts,
  listAllBankAccounts,
} from '../../../application/banking/accounts/operator-accounts.ts'
import {
  ACH_ACCOUNT_STATUSES,
  type AchAccount as AchAccountState,
  achAccount,
} from '../../../domain/banking/accounts/ach-account.ts'
import {
  BANK_ACCOUNT_STATUSES,
  bankAccount,
  CONNECTION_TYPES,
} from '../../../domain/banking/accounts/bank-account.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const BankAccount = z
  .object({
    bank_account_id: id(),
    ...owner,
    employer_id: id().nullable(),
    carrier_id: id().nullable(),
    client_id: z.string().optional().describe('The key that created it'),
    name: z.string(),
    bank_name: z.string(),
    connection_type: z.enum(CONNECTION_TYPES),
    status: z.enum(BANK_ACCOUNT_STATUSES),
    created_at: shownTime(),
    updated_at: shownTime(),
    deleted_at: shownTime().nullable(),
  })
  .meta({ id: 'OperatorBankAccount' })

const AchAccount = z
  .object({
    ach_account_id: id(),
    ...owner,
    owner_type: z.enum(['employer', 'carrier']),
    owner_id: id(),
    bank_account_id: id().nullable().describe('What shows it to people; null: nothing does'),
    bank_name: z.string(),
    account_last4: z.string(),
    routing_last4: z.string(),
    account_type: z.string(),
    connection_type: z.enum(CONNECTION_TYPES),
    status: z.enum(ACH_ACCOUNT_STATUSES),
    verified_by: z.enum(['micro_deposits', 'operator', 'bank_link']).nullable(),
    return_code: z.string().nullable().describe('Of the return that disabled it'),
    created_at: shownTime(),
    updated_at: shownTime(),
    deleted_at: shownTime().nullable(),
  })
  .meta({ id: 'OperatorAchAccount' })

const whose = { employer_id: narrowing(id()), carrier_id: narrowing(id()) }

export const bankAccountEndpoints = [
  endpoint({
    operation: 'listBankAccounts',
    route: 'GET /bank-accounts',
    summary: 'List bank accounts as they are shown to people, newest first',
    description: 'The accounts are shown without their numbers; deleted ones are not listed.',
    ...listOf(BankAccount, { ...scope, ...whose, status: narrowing(word(...BANK_ACCOUNT_STATUSES)) }),
    columns: 'bank_account_id created_at environment status bank:bank_name name employer_id carrier_id',
    handle: handleList(listAllBankAccounts),
  }),
  endpoint({
    operation: 'showBankAccount',
    route: 'GET /bank-accounts/{bank_account_id}',
    summary: 'Show a bank account as it is shown to people',
    ...ofOne('bank_account_id', 'bank account'),
    answers: { 200: BankAccount },
    handle: ({ host, params }) => loaded(host, bankAccount, params.bank_account_id, 'bank account'),
  }),
  endpoint({
    operation: 'listAchAccounts',
    route: 'GET /ach-accounts',
    summary: 'List ACH accounts, with which money is moved, newest first',
    description: 'Of their numbers the last four digits are shown; deleted ones are not listed.',
    ...listOf(AchAccount, { ...scope, ...whose, status: narrowing(word(...ACH_ACCOUNT_STATUSES)) }),
    columns: 'ach_account_id created_at environment status bank:bank_name account:account_last4 owner_id',
    handle: handleList(listAllAchAccounts, shown),
  }),
  endpoint({
    operation: 'showAchAccount',
    route: 'GET /ach-accounts/{ach_account_id}',
    summary: 'Show an ACH account',
    ...ofOne('ach_account_id', 'ACH account'),
    answers: { 200: AchAccount },
    handle: async ({ host, params }) =>
      shown(await loaded(host, achAccount, params.ach_account_id, 'ACH account')),
  }),
]

function shown(one: AchAccountState) {
  const { account_last4, account_type } = one.account
  return { ...one, account_last4, account_type }
}

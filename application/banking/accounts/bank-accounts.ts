import {
  type BankAccountChange,
  BankAccountCreated,
  type BankAccountCreation,
  type BankAccountRecord,
  bankAccount,
} from '../../../domain/banking/accounts/bank-account.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import { ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { changed, readable } from '../../commands/verbs.ts'
import { WrongExpectedRevision } from '../../ports/event-log.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, isAsGiven, type Parameter } from '../../queries/statement.ts'
import {
  type Association,
  insuredAsOfNow,
  isInScope,
  refuseAssociation,
  type Scope,
} from './account-owners.ts'
import { type AccountScope, accountScope, isAccountWithinKey } from './account-rows.ts'
import { choosePrimary, clearPrimary, isPrimary, ofBankAccount } from './primary-accounts.ts'
import { userFingerprint, withUser } from './users.ts'

/** A bank account of the metadata layer, and whether it is its owner's primary one. */
export interface ShownBankAccount {
  readonly account: BankAccountRecord
  readonly isPrimary: boolean
}

export interface NewBankAccount extends Association {
  /** The creator of its connection; default: the caller. */
  readonly client_id?: string | undefined
  /** Where the same one may be asked for again; default: the id of what the context's command creates. */
  readonly bank_account_id?: string
  /** The bank connection that it is one of. */
  readonly connection_id?: string
  readonly user_id: string
  readonly name: string
  readonly bank_name: string
  readonly connection_type: BankAccountRecord['connection_type']
  readonly primary: boolean
}

/** Creates an account, where its owner is in the key's reach. */
export async function createBankAccount(
  app: Application,
  client: Scope,
  { connection_id, ...input }: NewBankAccount,
  context: CommandContext,
): Promise<BankAccountRecord | Rejection> {
  const client_id = 'client_id' in input ? input.client_id : client.client_id
  const refusal = await refuseAssociation(app, client, { ...input, client_id })
  if (refusal) return refusal
  const { tenant_id, environment } = client
  const { bank_account_id = createdId(context, bankAccount) } = input
  const created_at = isoTime(app.clock.now())
  const { employer_id, carrier_id, user_id } = input
  const user_fingerprint = userFingerprint(app, { tenant_id, environment, user_id })
  const whose = { bank_account_id, tenant_id, environment, client_id, user_fingerprint }
  const data = await sealFields(
    app.personalData,
    BankAccountCreated,
    { ...input, ...whose, created_at },
    () => employerSubject(app.personalData, employer_id ?? connection_id ?? carrier_id ?? bank_account_id),
  )
  const account = await created(app, data, context)
  if (isRejection(account)) return account
  if (input.primary) await choosePrimary(app, await ofBankAccount(app, account), context, true)
  return account
}

async function created(
  app: Application,
  data: BankAccountCreation,
  context: CommandContext,
): Promise<BankAccountRecord | Rejection> {
  const { bank_account_id } = data
  try {
    const command = { type: 'Create', data } as const
    return await readable(
      app,
      bankAccount,
      await app.commands.create(bankAccount, bank_account_id, command, context),
    )
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision) || context.keyedRequest) throw error
    // an earlier attempt has created it
    return (await app.commands.load(bankAccount, bank_account_id)).state!
  }
}

/** An account that a partner names. */
export async function bankAccountOf(
  app: Application,
  client: Scope,
  bankAccountId: string,
): Promise<BankAccountRecord | Rejection> {
  const account = await stateOf(app, bankAccount, bankAccountId)
  return ownedBy(client, account, 'bank account', (one) => isInScope(app, client, one))
}

export async function shownBankAccount(
  app: Pick<Application, 'commands' | 'personalData'>,
  account: BankAccountRecord,
): Promise<ShownBankAccount> {
  const shown = await withUser(app, account)
  return { account: shown, isPrimary: await isPrimary(app, await ofBankAccount(app, shown)) }
}

/** Changes an account; one that moves to another owner is not primary there unless that is asked for as well. */
export async function changeBankAccount(
  app: Application,
  client: Scope,
  account: BankAccountRecord,
  { primary, ...change }: BankAccountChange & { readonly primary?: boolean },
  context: CommandContext,
): Promise<ShownBankAccount | Rejection> {
  const { employer_id = account.employer_id, carrier_id = account.carrier_id } = change
  if (employer_id !== account.employer_id || carrier_id !== account.carrier_id) {
    const { client_id } = account
    const refusal = await refuseAssociation(app, client, { employer_id, carrier_id, client_id })
    if (refusal) return refusal
  }
  const { bank_account_id } = account
  const command = { type: 'Change', change, at: app.clock.now() } as const
  const after = await changed(app, bankAccount, bank_account_id, command, context)
  if (isRejection(after)) return after
  const [before, now] = [await ofBankAccount(app, account), await ofBankAccount(app, after)]
  const isMoved =
    before.owner.owner_type !== now.owner.owner_type || before.owner.owner_id !== now.owner.owner_id
  if (isMoved) await clearPrimary(app, before, context)
  if (primary === true) await choosePrimary(app, now, context)
  // its new owner may have chosen it when it belonged to it before, or was about to
  else if (isMoved || primary === false) await clearPrimary(app, now, context)
  return shownBankAccount(app, after)
}

/** Deletes an account: it is found no more. No other becomes primary in its place. */
export async function deleteBankAccount(
  app: Application,
  account: BankAccountRecord,
  context: CommandContext,
): Promise<BankAccountRecord | Rejection> {
  const { bank_account_id } = account
  const command = { type: 'Delete', at: app.clock.now() } as const
  const after = await changed(app, bankAccount, bank_account_id, command, context)
  if (!isRejection(after)) await clearPrimary(app, await ofBankAccount(app, after), context)
  return after
}

/** What a list of accounts is narrowed to; null is everything. */
interface BankAccountScope extends AccountScope {
  readonly employer_id: string | null
  readonly carrier_id: string | null
  readonly connection_type: string | null
  readonly status: string | null
  readonly primary: boolean | null
}

const BANK_ACCOUNTS = pagedList(
  { projection: 'bank-accounts', name: 'bank-accounts' },
  (db, $: Parameter<BankAccountScope>) =>
    db
      .selectFrom('bank_accounts')
      .select('bank_account_id as id')
      .where((eb) => isAccountWithinKey(eb, 'bank_accounts', $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'connection_type', 'status'))
      .where((eb) => {
        const isPrimary = eb.exists(
          eb
            .selectFrom('primary_bank_accounts as chosen')
            .select('chosen.primary_id')
            .whereRef('chosen.account_id', '=', 'bank_accounts.bank_account_id')
            .whereRef('chosen.owner', '=', 'bank_accounts.owner'),
        )
        return isAsGiven(eb, isPrimary, $('primary'))
      })
      .orderBy('seq', 'desc'),
)

/** Accounts within the scope of a key, newest first. */
export async function listBankAccounts(
  app: Application,
  client: Scope,
  filter: Omit<BankAccountScope, keyof AccountScope>,
  page: PageRequest,
): Promise<ListPage<ShownBankAccount>> {
  await insuredAsOfNow(app, client)
  const scope = { ...accountScope(client), ...filter }
  const { items, total } = await loadPage(app, bankAccount, BANK_ACCOUNTS, scope, page)
  const left = items.filter(({ deleted_at }) => deleted_at === null)
  return { items: await Promise.all(left.map((account) => shownBankAccount(app, account))), total }
}

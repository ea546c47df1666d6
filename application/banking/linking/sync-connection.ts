import {
  type AchAccount,
  type AchAccountCommand,
  achAccount,
} from '../../../domain/banking/accounts/ach-account.ts'
import {
  type BankConnection,
  bankConnection,
  type ConnectedAccount,
} from '../../../domain/banking/linking/bank-connection.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed } from '../../commands/verbs.ts'
import type { LinkedAccount } from '../../ports/bank-link.ts'
import { ERASED } from '../../ports/personal-data.ts'
import type { Scope } from '../accounts/account-owners.ts'
import { disableIfNumbersAre, persistentOf, tiedTo } from '../accounts/ach-accounts.ts'
import { createBankAccount } from '../accounts/bank-accounts.ts'
import { accountsWith } from '../accounts/disabled-numbers.ts'
import { withLinkingUser } from '../accounts/users.ts'
import { askAbout, isWithoutProduct, textOf } from './bank-links.ts'
import { syncTransactions, type TransactionCounts } from './sync-transactions.ts'

/** An account of a connection as its partner sees it. */
export interface ShownLinkedAccount extends ConnectedAccount {
  readonly name: string
  readonly bank_name: string
}

/** What the bank link says of an item, and which accounts of the metadata layer stand for its own. */
export interface FoundAccounts {
  readonly institutionName: string | null
  readonly accounts: readonly ShownLinkedAccount[]
}

export interface SyncedConnection {
  readonly connection: BankConnection
  readonly accounts: readonly ShownLinkedAccount[]
  readonly transactions: TransactionCounts
}

/** The owner of a connection, and the user that linked it. */
type ConnectionOwner = Pick<
  BankConnection,
  'connection_id' | 'user_id' | 'employer_id' | 'carrier_id' | 'client_id'
>

/**
 * Creates the metadata accounts of an item that are not there yet. Their ids follow from the item: asked for again, or
 * deleted since, an account is not created a second time.
 * @param anew the owner of new accounts once the user that linked it was erased.
 */
export async function keepAccounts(
  app: Application,
  client: Scope,
  owner: ConnectionOwner,
  found: { readonly institutionName: string | null; readonly accounts: readonly LinkedAccount[] },
  context: CommandContext,
  anew = owner.connection_id,
): Promise<FoundAccounts | Rejection> {
  const {
    connection_id,
    user_id: linkedBy,
    employer_id,
    carrier_id,
    client_id,
  } = await withLinkingUser(app, owner)
  // not the erased text: all erased users would be one
  const user_id = linkedBy === ERASED ? anew : linkedBy
  const institutionName = textOf(found.institutionName ?? '') || null
  const accounts: ShownLinkedAccount[] = []
  for (const { accountId: bankconnect_account_id, type, ...answer } of found.accounts) {
    const mask = lastOf(answer.mask)
    const name = textOf(answer.name) || `Account ${mask ?? ''}`.trim()
    const bank_name = institutionName ?? name
    const bank_account_id = derivedId(connection_id, `account/${bankconnect_account_id}`)
    const details = {
      connection_id,
      user_id,
      employer_id,
      carrier_id,
      client_id,
      name,
      bank_name,
      primary: false,
    }
    const account = await createBankAccount(
      app,
      client,
      { bank_account_id, ...details, connection_type: 'bankconnect' },
      context,
    )
    if (isRejection(account)) return account
    accounts.push({ bankconnect_account_id, bank_account_id, type, mask, name, bank_name })
  }
  return { institutionName, accounts }
}

/** The command that records which accounts an item has. */
export function findAccounts({ institutionName, accounts }: FoundAccounts, at: number) {
  const found = accounts.map(({ bankconnect_account_id, bank_account_id, type, mask }) => ({
    bankconnect_account_id,
    bank_account_id,
    type,
    mask,
  }))
  return { type: 'FindAccounts', institutionName, accounts: found, at } as const
}

/**
 * Brings a connection up to what the bank link says: its accounts, and its transactions. Asked for again, it finds nothing
 * new.
 * @throws ProviderUnavailable
 */
export async function syncConnection(
  app: Application,
  client: Scope,
  connection: BankConnection,
  context: CommandContext,
): Promise<SyncedConnection | Rejection> {
  const answer = await askAbout(app, connection, context, (link, token) => link.accounts(token))
  if (isRejection(answer)) return answer
  const found = await keepAccounts(app, client, connection, answer, context)
  if (isRejection(found)) return found
  await unlistMissing(app, connection, found, context)
  const command = findAccounts(found, app.clock.now())
  const after = await changed(app, bankConnection, connection.connection_id, command, context)
  if (isRejection(after)) return after
  await recordLink(app, connection, answer.accounts, found, context)
  const transactions = await syncTransactions(app, after, context)
  if (isRejection(transactions) && !isWithoutProduct(transactions)) return transactions
  const counts = isRejection(transactions) ? { changed: 0, removed: 0, has_more: false } : transactions
  return { connection: after, accounts: found.accounts, transactions: counts }
}

/**
 * Tells the linked ACH accounts which accounts the bank link no longer lists. The connection forgets those afterwards, so that
 * a repetition still finds them.
 * @throws ReadModelsLate when it cannot be told which these are.
 */
export async function unlistMissing(
  app: Application,
  { accounts }: Pick<BankConnection, 'accounts'>,
  found: FoundAccounts,
  context: CommandContext,
): Promise<void> {
  const listed = new Set(found.accounts.map(({ bank_account_id }) => bank_account_id))
  const command = { type: 'Unlist', at: app.clock.now() } as const
  for (const { bank_account_id } of accounts) {
    if (!listed.has(bank_account_id)) await recordLinked(app, bank_account_id, command, context)
  }
}

/**
 * Tells the linked ACH accounts of accounts that the bank link lists what it says of them.
 * @param answer of the same accounts, in the order of those that were found.
 * @throws ReadModelsLate when it cannot be told which these are.
 */
export async function recordLink(
  app: Application,
  connection: BankConnection,
  answer: readonly LinkedAccount[],
  found: FoundAccounts,
  context: CommandContext,
): Promise<void> {
  for (const [index, { unverifiedReason, persistentId }] of answer.entries()) {
    const reported = { unverifiedReason, ...persistentOf(app, connection, persistentId) }
    await recordLinkState(app, found.accounts[index]!.bank_account_id, reported, context)
  }
}

/** Tells the linked ACH accounts of a metadata account, which have the same numbers, whether the bank link vouches for them. */
async function recordLinkState(
  app: Application,
  bankAccountId: string,
  reported: Omit<Extract<AchAccountCommand, { readonly type: 'HearOfLink' }>, 'type' | 'at'>,
  context: CommandContext,
): Promise<void> {
  const command = { type: 'HearOfLink', ...reported, at: app.clock.now() } as const
  for (const account of await recordLinked(app, bankAccountId, command, context)) {
    await disableIfNumbersAre(app, account, context)
  }
}

/** @returns those that were told. */
async function recordLinked(
  app: Application,
  bankAccountId: string,
  command: AchAccountCommand,
  context: CommandContext,
): Promise<readonly AchAccount[]> {
  const achAccountId = await tiedTo(app, bankAccountId)
  if (achAccountId === null) return []
  const tied = (await app.commands.load(achAccount, achAccountId)).state!
  const told: AchAccount[] = []
  const same = await app.commands.loadAll(achAccount, await accountsWith(app, tied, [tied.account]))
  // of another connection, which says so itself
  const others = same.filter(({ state }) => ![bankAccountId, null].includes(state!.bank_account_id))
  const isListed = others.some(({ state }) => !state!.unlisted)
  for (const { state } of same) {
    const { ach_account_id: id, bank_account_id } = state!
    if (bank_account_id !== bankAccountId && bank_account_id !== null) continue
    // tied to no connection, it is unlisted once none lists its numbers
    if (command.type === 'Unlist' && bank_account_id === null && isListed) continue
    const outcome = await changed(app, achAccount, id, command, context)
    if (!isRejection(outcome)) told.push(outcome)
    // deleted meanwhile, it has no owner
    else if (outcome.kind !== 'not_found') throw new Error(outcome.message)
  }
  return told
}

function lastOf(mask: string | null): string | null {
  const last = mask?.slice(-4) ?? ''
  return /^[0-9A-Za-z]{1,4}$/.test(last) ? last : null
}

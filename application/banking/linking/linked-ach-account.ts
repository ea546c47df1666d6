import type { AchAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import type { BankConnection, ConnectedAccount } from '../../../domain/banking/linking/bank-connection.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { type AchAccountOwner, ownersName, type Scope } from '../accounts/account-owners.ts'
import { createAchAccount, persistentOf, tiedTo } from '../accounts/ach-accounts.ts'
import { connectionOfItem } from './bank-connections.ts'
import { askAbout, isHandleOf } from './bank-links.ts'

export interface NewLinkedAchAccount extends AchAccountOwner {
  readonly bankconnect_item_id: string
  readonly bankconnect_account_id: string
  /** What the exchange handed out. */
  readonly access_token: string
  readonly nickname: string | null
  readonly is_primary: boolean
}

/**
 * Creates an ACH account from an account of a linked item. Its numbers, type and bank come from the bank; it is active where the
 * bank link vouches for it. It is tied to the metadata account of the same one, unless another one is.
 * @throws ProviderUnavailable
 */
export async function createLinkedAchAccount(
  app: Application,
  client: Scope,
  input: NewLinkedAchAccount,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const named = await namedAccount(app, client, input)
  if (isRejection(named)) return named
  const { connection, account } = named
  if (connection.provider === 'simulated' && app.bankRails[client.environment].kind !== 'simulated') {
    const why = 'The item was linked by the simulated bank link: no bank has its accounts'
    return reject('conflict', 'linked_account_simulated', why, 'bankconnect_item_id')
  }
  const numbers = await askAbout(app, connection, context, (link, token) =>
    link.numbers(token, account.bankconnect_account_id),
  )
  if (isRejection(numbers)) return numbers
  if (numbers === null) return withoutNumbers()
  const { unverifiedReason, persistentId, ...ofBank } = numbers
  const { bank_account_id } = account
  const { state } = await app.commands.load(bankAccount, bank_account_id)
  // the first one that is there stays the one: debits may name either of the two
  const isTaken = (await tiedTo(app, bank_account_id)) !== null
  const { owner_type, owner_id, nickname, is_primary } = input
  return createAchAccount(
    app,
    client,
    {
      owner_type,
      owner_id,
      nickname,
      is_primary,
      routing_number: ofBank.routingNumber,
      account_number: ofBank.accountNumber,
      account_type: ofBank.accountType,
      bank_name: connection.institution_name ?? state!.bank_name,
      linked: {
        bankAccountId: isTaken ? null : bank_account_id,
        unverifiedReason,
        ...persistentOf(app, connection, persistentId),
      },
    },
    context,
  )
}

/** What a request names, in this order of checks: what is not there, what the key or the handle does not open, what does not fit. */
async function namedAccount(
  app: Application,
  client: Scope,
  input: NewLinkedAchAccount,
): Promise<{ readonly connection: BankConnection; readonly account: ConnectedAccount } | Rejection> {
  const owner = await ownersName(app, client, input)
  const connection = await connectionOfItem(app, client, input.bankconnect_item_id, 'bankconnect_item_id')
  const account = isRejection(connection) ? connection : accountOf(connection, input.bankconnect_account_id)
  const refusals = [owner, connection, account].filter(isRejection)
  const refusal = refusals.find(({ kind }) => kind === 'not_found') ?? refusals[0]
  if (refusal) return refusal
  const found = { connection: connection as BankConnection, account: account as ConnectedAccount }
  if (!isHandleOf(found.connection, input.access_token)) {
    const why = 'access_token is none that the exchange of this item handed out'
    return reject('forbidden', 'access_token_refused', why, 'access_token')
  }
  if (isOfAnother(found.connection, input)) {
    const why = 'owner_id is not whom the item is linked for'
    return reject('invalid', 'owner_mismatch', why, 'owner_id')
  }
  return found.account.type === 'other' ? notDebitable() : found
}

function accountOf({ accounts }: BankConnection, accountId: string): ConnectedAccount | Rejection {
  const account = accounts.find(({ bankconnect_account_id }) => bankconnect_account_id === accountId)
  if (account) return account
  const why = 'bankconnect_account_id names no account of the item'
  return reject('not_found', 'linked_account_not_found', why, 'bankconnect_account_id')
}

/** A connection that names an employer, a carrier or both has accounts of these. */
function isOfAnother({ employer_id, carrier_id }: BankConnection, { owner_id }: AchAccountOwner): boolean {
  const named = [employer_id, carrier_id].filter((id) => id !== null)
  return named.length > 0 && !named.includes(owner_id)
}

function withoutNumbers(): Rejection {
  const why = 'bankconnect_account_id names an account of which the bank gives no numbers'
  return reject('invalid', 'linked_account_without_numbers', why, 'bankconnect_account_id')
}

function notDebitable(): Rejection {
  const why = 'bankconnect_account_id names an account that is neither a checking nor a savings account'
  return reject('invalid', 'linked_account_not_debitable', why, 'bankconnect_account_id')
}

import { tenant } from '../../../domain/access/tenant.ts'
import {
  type BankConnection,
  BankConnectionLinked,
  bankConnection,
} from '../../../domain/banking/linking/bank-connection.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { connectionSubject, sealFields } from '../../commands/sealing.ts'
import { secretGone } from '../../commands/secret-gone.ts'
import { readable, within } from '../../commands/verbs.ts'
import type { LinkedItem } from '../../ports/bank-link.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'
import { type Association, isInScope, type Scope } from '../accounts/account-owners.ts'
import { connectionIdOf, connectionOutside } from './bank-connections.ts'
import { askAbout, keepItem, keptItem, newHandle, refusedByLink, textOf } from './bank-links.ts'
import {
  findAccounts,
  keepAccounts,
  recordLink,
  type ShownLinkedAccount,
  unlistMissing,
} from './sync-connection.ts'
import { syncTransactions } from './sync-transactions.ts'

export interface NewConnection extends Association {
  readonly publicToken: string
  readonly user_id: string
}

/** A connection with what is handed out once. */
export interface HandedOutConnection {
  readonly connection: BankConnection
  readonly accounts: readonly ShownLinkedAccount[]
  readonly handle: string
}

/** A token that opens the widget, for a new item or for one that is there. @throws ProviderUnavailable */
export async function createLinkToken(
  app: Application,
  client: Scope,
  userId: string,
  connection: BankConnection | null,
  context: CommandContext,
): Promise<{ readonly linkToken: string } | Rejection> {
  const { tenant_id, environment } = client
  const { state } = await app.commands.load(tenant, tenant_id)
  const asked = {
    // partners may call their users by names or email addresses: those are not passed on
    userId: app.personalData.fingerprint('bank-link-user', `${tenant_id}|${environment}|${userId}`),
    clientName: textOf(state?.name ?? ''),
  }
  if (connection !== null) {
    return askAbout(app, connection, context, (link, token) => link.createLinkToken({ ...asked, token }))
  }
  return unlessRefused(() => app.bankLinks[environment].createLinkToken({ ...asked, token: null }))
}

/**
 * Exchanges a public token: the item that it stands for is a connection from then on, with a metadata account for each of
 * its accounts. Its owner was checked before. The same token, or another one of the same item, leads to the same connection and to another handle.
 * @throws ProviderUnavailable
 */
export async function exchange(
  app: Application,
  client: Scope,
  input: NewConnection,
  context: CommandContext,
): Promise<HandedOutConnection | Rejection> {
  const ref = tokenRefOf(app, client, input)
  const item = await itemOf(app, client, input, ref)
  if (isRejection(item)) return item
  const answer = await unlessRefused(() => app.bankLinks[client.environment].accounts(item.token))
  if (isRejection(answer)) return answer

  const { tenant_id, environment, client_id } = client
  const { user_id, employer_id, carrier_id } = input
  const connection_id = connectionIdOf(app, client, item.itemId)
  const at = app.clock.now()
  const draft = {
    connection_id,
    tenant_id,
    environment,
    user_id,
    employer_id,
    carrier_id,
    client_id,
    provider: app.bankLinks[environment].kind,
    item_id: item.itemId,
    linked_at: isoTime(at),
  }
  const data = await sealFields(app.personalData, BankConnectionLinked, draft, () =>
    connectionSubject(app.personalData, draft),
  )
  // claims the item before anything of it has an owner: a repetition after a crash goes on with it
  const link = { type: 'Link', data } as const
  const claimed = await app.commands.execute(bankConnection, connection_id, link, within(context, client))
  if (isRejection(claimed)) return claimed
  // an item without an owner, which another key has linked
  if (!(await isInScope(app, client, claimed.state!))) return connectionOutside('public_token')
  const found = await keepAccounts(app, client, claimed.state!, answer, context, user_id)
  if (isRejection(found)) return found

  await unlistMissing(app, claimed.state!, found, context)
  // of a new one there is no ACH account yet
  if (claimed.events.length === 0) await recordLink(app, claimed.state!, answer.accounts, found, context)
  const { handle, hash: handleHash } = newHandle(app)
  const issue = { type: 'IssueHandle', handleHash, tokenRef: ref, at } as const
  const outcome = await app.commands.execute(
    bankConnection,
    connection_id,
    [issue, findAccounts(found, at), { type: 'Restore', at }],
    within(context, client),
  )
  // an earlier attempt of the same request has issued another handle, which nobody knows any more
  if (!isRejection(outcome) && outcome.events.length === 0) {
    return { ...secretGone('bank connection', connection_id), ids: { id: connection_id } }
  }
  const connection = await readable(app, bankConnection, outcome)
  if (isRejection(connection)) return connection
  await firstTransactions(app, connection, context)
  return { connection, accounts: found.accounts, handle }
}

/** Where the vault keeps what a public token was exchanged for. */
function tokenRefOf(
  { personalData }: Pick<Application, 'personalData'>,
  client: Scope,
  { publicToken, ...owner }: NewConnection,
): string {
  const asked = `${ownerOf(client, owner)}|${publicToken}`
  return `bank-link/${personalData.fingerprint('bank-link-token', asked)}`
}

/** A public token serves once: what it was exchanged for is kept before anything else is done. */
async function itemOf(
  app: Application,
  client: Scope,
  input: NewConnection,
  ref: string,
): Promise<LinkedItem | Rejection> {
  const known = await keptItem(app, ref)
  if (known !== null) return known
  try {
    const item = await app.bankLinks[client.environment].exchange(input.publicToken, ownerOf(client, input))
    const connection_id = connectionIdOf(app, client, item.itemId)
    return await keepItem(app, ref, item, { connection_id, employer_id: input.employer_id })
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
    if (error.about !== 'public_token') return refusedByLink(error)
    // the same request may have been faster elsewhere
    const kept = await keptItem(app, ref)
    const why = 'public_token is none that the bank link takes: it serves once, and for 30 minutes'
    return kept ?? reject('invalid', 'public_token_refused', why, 'public_token')
  }
}

function ownerOf(
  { tenant_id, environment }: Scope,
  { user_id, employer_id, carrier_id }: Omit<NewConnection, 'publicToken'>,
): string {
  return JSON.stringify([tenant_id, environment, user_id, employer_id, carrier_id])
}

/** Transactions may not be there yet: the exchange does not wait for them, the next sync brings them. */
async function firstTransactions(
  app: Application,
  connection: BankConnection,
  context: CommandContext,
): Promise<void> {
  try {
    await syncTransactions(app, connection, context)
  } catch (error) {
    if (!(error instanceof ProviderUnavailable)) throw error
  }
}

async function unlessRefused<Answer>(ask: () => Promise<Answer>): Promise<Answer | Rejection> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
    return refusedByLink(error)
  }
}

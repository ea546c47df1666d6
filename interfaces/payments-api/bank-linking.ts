import { z } from 'zod'
import { refuseAssociation } from '../../application/banking/account-owners.ts'
import {
  connectionOf,
  connectionOfItem,
  listConnections,
} from '../../application/banking/bank-connections.ts'
import { askAbout } from '../../application/banking/bank-links.ts'
import {
  bankTransactionOf,
  listBankTransactions,
  totalsOf,
} from '../../application/banking/bank-transactions.ts'
import { createLinkToken, exchange } from '../../application/banking/link-bank.ts'
import { createLinkedAchAccount } from '../../application/banking/linked-ach-account.ts'
import { syncConnection } from '../../application/banking/sync-connection.ts'
import { withLinkingUser } from '../../application/banking/users.ts'
import { achAccount } from '../../domain/banking/ach-account.ts'
import { CONNECTION_STATUSES } from '../../domain/banking/bank-connection.ts'
import { create, created, REPEATED } from '../endpoints/creations.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { date, id, idOf, optionalFlagText, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { contextOf, endpoint, keyed, partner } from './api.ts'
import { AchAccount, showAchAccount } from './bank-account-schemas.ts'
import {
  Balances,
  BankTransaction,
  Connection,
  ExchangedConnection,
  exchangeRequest,
  handedOut,
  newLinkedAchAccount,
  Synced,
  showBalances,
  showConnection,
  showExchanged,
  showSynced,
  showTransaction,
  TransactionSummary,
  userId,
} from './bank-linking-schemas.ts'

const LinkToken = z.object({ link_token: z.string() }).meta({ id: 'LinkToken' })
const AWAY = { 502: 'The bank link could not be reached, or did not answer in time' } as const
const OF_ITEM = {
  400: 'A field is missing or wrong, or the bank link refuses',
  404: 'No such item is linked in the account and environment of the key',
  409: 'The bank asks its user to log in again, the item was erased, or another process is about to sync it',
  ...AWAY,
} as const

/** What a list of transactions and its summary are narrowed by. */
const filters = {
  employer_id: id().optional(),
  bankconnect_item_id: handedOut().optional(),
  date_from: date().optional().describe('Of this day or later'),
  date_to: date().optional().describe('Of this day or earlier'),
}
function filterOf(query: z.output<z.ZodObject<typeof filters>>) {
  const { employer_id = null, bankconnect_item_id = null, date_from = null, date_to = null } = query
  const what = { employerId: employer_id, itemId: bankconnect_item_id, accountId: null, pending: null }
  return { ...what, from: date_from, to: date_to }
}

export const bankLinkingEndpoints = [
  endpoint({
    operation: 'createLinkToken',
    method: 'POST',
    path: '/bankconnect/link-token',
    summary: 'Get a token that opens the bank-linking widget',
    access: partner,
    body: z.object({ user_id: userId() }),
    answers: { 200: LinkToken },
    errors: AWAY,
    asksOutside: true,
    async handle(call) {
      const { host, caller, body } = call
      const { linkToken } = accepted(
        await createLinkToken(host.app, caller.client, body.user_id, null, contextOf(call)),
      )
      return { link_token: linkToken }
    },
  }),
  endpoint({
    operation: 'createUpdateLinkToken',
    method: 'POST',
    path: '/bankconnect/link-token/update',
    summary: 'Get a token that opens the widget for a linked item',
    description:
      'The user logs in at the bank again, or adds products and accounts. Sync the item afterwards; its ids and its ' +
      '`access_token` stay the same.',
    access: partner,
    body: z.object({ user_id: userId(), item_id: handedOut() }),
    answers: { 200: LinkToken },
    errors: OF_ITEM,
    asksOutside: true,
    async handle(call) {
      const { host, caller, body } = call
      const { client } = caller
      const connection = accepted(await connectionOfItem(host.app, client, body.item_id, 'item_id'))
      const { linkToken } = accepted(
        await createLinkToken(host.app, client, body.user_id, connection, contextOf(call)),
      )
      return { link_token: linkToken }
    },
  }),
  endpoint({
    operation: 'exchangePublicToken',
    method: 'POST',
    path: '/bankconnect/exchange',
    summary: 'Turn a public token of the widget into a connection',
    description:
      'Creates the connection, and a bank account of `connection_type` `bankconnect` for each of its accounts. The same ' +
      'item again is the same connection with a further `access_token`.',
    access: partner,
    body: exchangeRequest,
    idempotent: REPEATED.secret,
    answers: { 201: ExchangedConnection },
    errors: {
      400: 'A field is missing or wrong, or `public_token` is none that the bank link takes',
      404: 'Employer or carrier does not exist in the account and environment of the key',
      409: 'The item is linked for another employer or carrier, it was erased, or the key was used before',
      ...AWAY,
    },
    asksOutside: true,
    handle(call) {
      const { host, caller, body } = call
      const { public_token: publicToken, user_id, employer_id, carrier_id } = body
      const association = { employer_id, carrier_id }
      return create(keyed(call), 'POST /bankconnect/exchange', {
        refuse: () =>
          refuseAssociation(host.app, caller.client, {
            ...association,
            client_id: caller.client.client_id,
          }),
        create: (context) =>
          exchange(host.app, caller.client, { publicToken, user_id, ...association }, context),
        idOf: ({ connection }) => connection.connection_id,
        show: async (made) =>
          showExchanged({ ...made, connection: await withLinkingUser(host.app, made.connection) }),
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'syncBankConnection',
    method: 'POST',
    path: '/bankconnect/sync-accounts',
    summary: 'Fetch the accounts and transactions of a linked item',
    description: 'Accounts that are new get a bank account. Asked again, it finds nothing new.',
    access: partner,
    body: z.object({ item_id: handedOut() }),
    answers: { 200: Synced },
    errors: OF_ITEM,
    asksOutside: true,
    async handle(call) {
      const { host, caller, body } = call
      const { client } = caller
      const connection = accepted(await connectionOfItem(host.app, client, body.item_id, 'item_id'))
      return showSynced(accepted(await syncConnection(host.app, client, connection, contextOf(call))))
    },
  }),
  endpoint({
    operation: 'showBankBalance',
    method: 'POST',
    path: '/bankconnect/balance',
    summary: 'Ask the bank for the balances of a linked item',
    access: partner,
    body: z.object({ bankconnect_item_id: handedOut() }),
    answers: { 200: Balances },
    errors: OF_ITEM,
    asksOutside: true,
    async handle(call) {
      const { host, caller, body } = call
      const { bankconnect_item_id: itemId } = body
      const connection = accepted(
        await connectionOfItem(host.app, caller.client, itemId, 'bankconnect_item_id'),
      )
      const balances = accepted(
        await askAbout(host.app, connection, contextOf(call), (link, token) => link.balances(token)),
      )
      return showBalances(connection, balances)
    },
  }),
  endpoint({
    operation: 'listBankConnections',
    method: 'GET',
    path: '/bankconnect/connections',
    summary: 'List bank connections, newest first',
    access: partner,
    query: z.object({
      employer_id: id().optional(),
      carrier_id: id().optional(),
      status: word(...CONNECTION_STATUSES).optional(),
      ...page,
    }),
    answers: { 200: z.array(Connection).readonly() },
    pagination,
    async handle({ host, caller, query }) {
      const { employer_id = null, carrier_id = null, status = null } = query
      const filter = { employerId: employer_id, carrierId: carrier_id, status }
      const wanted = pageOf(query)
      const { items, total } = await listConnections(host.app, caller.client, filter, wanted)
      const opened = await Promise.all(items.map((one) => withLinkingUser(host.app, one)))
      return listAnswer(wanted, { items: opened.map(showConnection), total })
    },
  }),
  endpoint({
    operation: 'showBankConnection',
    method: 'GET',
    path: '/bankconnect/connections/{connection_id}',
    summary: 'Show a bank connection',
    access: partner,
    params: z.object({ connection_id: idOf('bank connection') }),
    answers: { 200: Connection },
    errors: { 404: 'There is no such bank connection' },
    async handle({ host, caller, params }) {
      const connection = accepted(await connectionOf(host.app, caller.client, params.connection_id))
      return showConnection(await withLinkingUser(host.app, connection))
    },
  }),
  endpoint({
    operation: 'listBankTransactions',
    method: 'GET',
    path: '/bankconnect/transactions',
    summary: 'List transactions of linked accounts, the latest date first',
    description: 'As of the latest sync of each item.',
    access: partner,
    query: z.object({
      ...filters,
      bankconnect_account_id: handedOut().optional(),
      pending: optionalFlagText(),
      ...page,
    }),
    answers: { 200: z.array(BankTransaction).readonly() },
    pagination,
    async handle({ host, caller, query }) {
      const { bankconnect_account_id = null, pending } = query
      const filter = {
        ...filterOf(query),
        accountId: bankconnect_account_id,
        pending: pending ?? null,
      }
      const wanted = pageOf(query)
      const { items, total } = await listBankTransactions(host.app, caller.client, filter, wanted)
      return listAnswer(wanted, { items: items.map(showTransaction), total })
    },
  }),
  // before the one by id, which it would be taken for
  endpoint({
    operation: 'summarizeBankTransactions',
    method: 'GET',
    path: '/bankconnect/transactions/summary',
    summary: 'Add up transactions of linked accounts',
    access: partner,
    query: z.object(filters),
    answers: { 200: TransactionSummary },
    async handle({ host, caller, query }) {
      const { total, debitCents, creditCents } = await totalsOf(host.app, caller.client, filterOf(query))
      return {
        total_transactions: total,
        total_debits_cents: debitCents,
        total_credits_cents: creditCents,
        net_cents: creditCents - debitCents,
      }
    },
  }),
  endpoint({
    operation: 'showBankTransaction',
    method: 'GET',
    path: '/bankconnect/transactions/{transaction_id}',
    summary: 'Show a transaction of a linked account',
    access: partner,
    params: z.object({ transaction_id: idOf('bank transaction') }),
    answers: { 200: BankTransaction },
    errors: { 404: 'There is no such bank transaction' },
    async handle({ host, caller, params }) {
      return showTransaction(
        accepted(await bankTransactionOf(host.app, caller.client, params.transaction_id)),
      )
    },
  }),
  endpoint({
    operation: 'createAchAccountFromBank',
    method: 'POST',
    path: '/bank-accounts/ach/from-bankconnect',
    summary: 'Create an ACH account from an account of a linked item',
    description:
      'Numbers, type and bank come from the bank. The account is `active` where the bank link vouches for it, ' +
      'else `unverified`, which each sync looks at again. It is tied to the bank ' +
      'account that the exchange created: debits take either id.',
    access: partner,
    body: newLinkedAchAccount,
    idempotent: REPEATED.answered,
    answers: created(AchAccount),
    errors: {
      400: 'A field is missing or wrong, the account cannot be debited, or the bank link refuses',
      403: 'The key does not open this API or does not reach what is named, or `access_token` is not of the item',
      404: 'Owner, item or account does not exist in the account and environment of the key',
      409: 'The bank asks its user to log in again, the item was erased, or the key was used for another body',
      ...AWAY,
    },
    asksOutside: true,
    handle(call) {
      const { host, caller, body } = call
      const input = {
        ownerType: body.owner_type,
        ownerId: body.owner_id,
        handle: body.access_token,
        itemId: body.bankconnect_item_id,
        accountId: body.bankconnect_account_id,
        nickname: body.nickname,
        isPrimary: body.is_primary,
      }
      return create(keyed(call), 'POST /bank-accounts/ach/from-bankconnect', {
        create: (context) => createLinkedAchAccount(host.app, caller.client, input, context),
        idOf: ({ ach_account_id }) => ach_account_id,
        // as it began, also when it is answered again
        show: (account) => showAchAccount({ account, isPrimary: account.is_primary }),
        repeated: achAccount,
      })
    },
  }),
]

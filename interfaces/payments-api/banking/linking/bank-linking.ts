import { z } from 'zod'
import { refuseAssociation } from '../../../../application/banking/accounts/account-owners.ts'
import { withLinkingUser } from '../../../../application/banking/accounts/users.ts'
import {
  connectionOf,
  connectionOfItem,
  listConnections,
} from '../../../../application/banking/linking/bank-connections.ts'
import { askAbout } from '../../../../application/banking/linking/bank-links.ts'
import {
  bankTransactionOf,
  listBankTransactions,
  totalsOf,
} from '../../../../application/banking/linking/bank-transactions.ts'
import { createLinkToken, exchange } from '../../../../application/banking/linking/link-bank.ts'
import { createLinkedAchAccount } from '../../../../application/banking/linking/linked-ach-account.ts'
import { syncConnection } from '../../../../application/banking/linking/sync-connection.ts'
import { achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { CONNECTION_STATUSES } from '../../../../domain/banking/linking/bank-connection.ts'
import { inOrder } from '../../../endpoints/bounds.ts'
import { create, created, REPEATED } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { date, ofOne, optionalFlagText, reference, word } from '../../../endpoints/fields.ts'
import { listed, listOf, narrowing, page } from '../../../endpoints/lists.ts'
import { contextOf, endpoint, keyed } from '../../host/api.ts'
import { AchAccount, showAchAccount } from '../accounts/bank-account-schemas.ts'
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
  employer_id: narrowing(reference()),
  bankconnect_item_id: narrowing(handedOut()),
  date_from: narrowing(date()).describe('Of this day or later'),
  date_to: narrowing(date()).describe('Of this day or earlier'),
}

export const bankLinkingEndpoints = [
  endpoint({
    operation: 'createLinkToken',
    route: 'POST /bankconnect/link-token',
    summary: 'Get a token that opens the bank-linking widget',
    body: z.object({ user_id: userId() }),
    answers: { 200: LinkToken },
    errors: AWAY,
    asksOutside: true,
    refuses: { 400: ['bank_link_refused'] },
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
    route: 'POST /bankconnect/link-token/update',
    summary: 'Get a token that opens the widget for a linked item',
    description:
      'The user logs in at the bank again, or adds products and accounts. Sync the item afterwards; its ids and its ' +
      '`access_token` stay the same.',
    body: z.object({ user_id: userId(), item_id: handedOut() }),
    answers: { 200: LinkToken },
    errors: OF_ITEM,
    asksOutside: true,
    refuses: {
      400: ['bank_link_refused'],
      403: ['bank_connection_out_of_scope'],
      404: ['bank_connection_not_found'],
      409: ['bank_connection_erased'],
    },
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
    route: 'POST /bankconnect/exchange',
    summary: 'Turn a public token of the widget into a connection',
    description:
      'Creates the connection, and a bank account of `connection_type` `bankconnect` for each of its accounts. The same ' +
      'item again is the same connection with a further `access_token`.',
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
    refuses: {
      400: ['public_token_refused'],
      403: ['bank_connection_out_of_scope', 'owner_out_of_scope'],
      404: ['carrier_not_found', 'employer_not_found'],
      409: [
        'already_created',
        'bank_connection_erased',
        'exchange_broken_off',
        'item_linked',
        'sync_under_way',
      ],
    },
    handle(call) {
      const { host, caller, body } = call
      const { public_token: publicToken, user_id, employer_id, carrier_id } = body
      const association = { employer_id, carrier_id }
      return create(keyed(call), 'POST /bankconnect/exchange', {
        prepare: () =>
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
    route: 'POST /bankconnect/sync-accounts',
    summary: 'Fetch the accounts and transactions of a linked item',
    description: 'Accounts that are new get a bank account. Asked again, it finds nothing new.',
    body: z.object({ item_id: handedOut() }),
    answers: { 200: Synced },
    errors: OF_ITEM,
    asksOutside: true,
    refuses: {
      400: ['bank_link_refused'],
      403: ['bank_connection_out_of_scope'],
      404: ['bank_connection_not_found'],
      409: ['bank_connection_erased', 'bank_login_required', 'sync_under_way'],
    },
    async handle(call) {
      const { host, caller, body } = call
      const { client } = caller
      const connection = accepted(await connectionOfItem(host.app, client, body.item_id, 'item_id'))
      return showSynced(accepted(await syncConnection(host.app, client, connection, contextOf(call))))
    },
  }),
  endpoint({
    operation: 'showBankBalance',
    route: 'POST /bankconnect/balance',
    summary: 'Ask the bank for the balances of a linked item',
    body: z.object({ bankconnect_item_id: handedOut() }),
    answers: { 200: Balances },
    errors: OF_ITEM,
    asksOutside: true,
    refuses: {
      400: ['bank_link_product', 'bank_link_refused'],
      403: ['bank_connection_out_of_scope'],
      404: ['bank_connection_not_found'],
      409: ['bank_connection_erased', 'bank_login_required'],
    },
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
    route: 'GET /bankconnect/connections',
    summary: 'List bank connections, newest first',
    ...listOf(Connection),
    query: z.object({
      employer_id: narrowing(reference()),
      carrier_id: narrowing(reference()),
      status: narrowing(word(...CONNECTION_STATUSES)),
      ...page,
    }),
    handle: ({ host: { app }, caller, query }) =>
      listed(query, async (wanted) => {
        const { items, total } = await listConnections(app, caller.client, query, wanted)
        const shown = items.map(async (one) => showConnection(await withLinkingUser(app, one)))
        return { items: await Promise.all(shown), total }
      }),
  }),
  endpoint({
    operation: 'showBankConnection',
    route: 'GET /bankconnect/connections/{connection_id}',
    summary: 'Show a bank connection',
    ...ofOne('connection_id', 'bank connection'),
    answers: { 200: Connection },
    refuses: { 403: ['bank_connection_out_of_scope'] },
    async handle({ host, caller, params }) {
      const connection = accepted(await connectionOf(host.app, caller.client, params.connection_id))
      return showConnection(await withLinkingUser(host.app, connection))
    },
  }),
  endpoint({
    operation: 'listBankTransactions',
    route: 'GET /bankconnect/transactions',
    summary: 'List transactions of linked accounts, the latest date first',
    description: 'As of the latest sync of each item.',
    ...listOf(BankTransaction),
    query: inOrder(
      z.object({
        ...filters,
        bankconnect_account_id: narrowing(handedOut()),
        pending: narrowing(optionalFlagText()),
        ...page,
      }),
      'date_from',
      'date_to',
    ),
    handle({ host: { app }, caller, query }) {
      const { bankconnect_item_id: item_id, bankconnect_account_id: account_id } = query
      const filter = { ...query, item_id, account_id }
      return listed(
        query,
        (wanted) => listBankTransactions(app, caller.client, filter, wanted),
        showTransaction,
      )
    },
  }),
  // before the one by id, which it would be taken for
  endpoint({
    operation: 'summarizeBankTransactions',
    route: 'GET /bankconnect/transactions/summary',
    summary: 'Add up transactions of linked accounts',
    query: inOrder(z.object(filters), 'date_from', 'date_to'),
    answers: { 200: TransactionSummary },
    async handle({ host, caller, query }) {
      const filter = { ...query, item_id: query.bankconnect_item_id, account_id: null, pending: null }
      const { total, debitCents, creditCents } = await totalsOf(host.app, caller.client, filter)
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
    route: 'GET /bankconnect/transactions/{transaction_id}',
    summary: 'Show a transaction of a linked account',
    ...ofOne('transaction_id', 'bank transaction'),
    answers: { 200: BankTransaction },
    refuses: { 403: ['bank_transaction_out_of_scope'] },
    async handle({ host, caller, params }) {
      return showTransaction(
        accepted(await bankTransactionOf(host.app, caller.client, params.transaction_id)),
      )
    },
  }),
  endpoint({
    operation: 'createAchAccountFromBank',
    route: 'POST /bank-accounts/ach/from-bankconnect',
    summary: 'Create an ACH account from an account of a linked item',
    description:
      'Numbers, type and bank come from the bank. The account is `active` where the bank link vouches for it, ' +
      'else `unverified`, which each sync looks at again. It is tied to the bank ' +
      'account that the exchange created: debits take either id.',
    body: newLinkedAchAccount,
    ...created(AchAccount),
    errors: {
      400: 'A field is missing or wrong, the account cannot be debited, or the bank link refuses',
      403: 'The key does not open this API or does not reach what is named, or `access_token` is not of the item',
      404: 'Owner, item or account does not exist in the account and environment of the key',
      409: 'The bank asks its user to log in again, the item was erased, or the key was used for another body',
      ...AWAY,
    },
    asksOutside: true,
    refuses: {
      400: [
        'bank_link_product',
        'bank_link_refused',
        'linked_account_not_debitable',
        'linked_account_without_numbers',
        'number_in_name',
        'owner_mismatch',
      ],
      403: ['access_token_refused', 'bank_connection_out_of_scope', 'owner_out_of_scope'],
      404: [
        'bank_connection_not_found',
        'carrier_not_found',
        'employer_not_found',
        'linked_account_not_found',
      ],
      409: ['bank_connection_erased', 'bank_login_required', 'linked_account_simulated'],
    },
    handle(call) {
      const { host, caller, body } = call
      return create(keyed(call), 'POST /bank-accounts/ach/from-bankconnect', {
        create: (context) => createLinkedAchAccount(host.app, caller.client, body, context),
        // as it began, also when it is answered again
        show: (account) => showAchAccount({ account, isPrimary: account.is_primary }),
        repeated: achAccount,
      })
    },
  }),
]

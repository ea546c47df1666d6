import { z } from 'zod'
import type { ShownBankTransaction } from '../../../../application/banking/linking/bank-transactions.ts'
import type { HandedOutConnection } from '../../../../application/banking/linking/link-bank.ts'
import type { SyncedConnection } from '../../../../application/banking/linking/sync-connection.ts'
import type { LinkedBalance } from '../../../../application/ports/bank-link.ts'
import {
  type BankConnection,
  CONNECTION_STATUSES,
} from '../../../../domain/banking/linking/bank-connection.ts'
import {
  date,
  id,
  isoMoment,
  optional,
  reference,
  text,
  withDefault,
  word,
} from '../../../endpoints/fields.ts'

const NAME = 200
/** Characters of an id or token of a bank link. */
const LONGEST = 1_000

export const userId = () => text(NAME).describe('Your own word for who links the bank')
/** An id or a token of a bank link, as it was handed out. */
export const handedOut = () => text(LONGEST)

const LinkedAccount = z
  .object({
    bankconnect_account_id: z.string(),
    bank_account_id: id().describe('Of the bank account that stands for it'),
    name: z.string(),
    mask: z.string().nullable().describe('The last digits of its number, where the bank shows them'),
    type: z.enum(['checking', 'savings', 'other']).describe('Only checking and savings can be debited'),
    bank_name: z.string(),
  })
  .meta({ id: 'LinkedAccount' })

const connection = {
  _id: id(),
  bankconnect_item_id: z.string(),
  institution_name: z.string().nullable(),
  user_id: z.string(),
  employer_id: id().nullable(),
  carrier_id: id().nullable(),
  status: z
    .enum(CONNECTION_STATUSES)
    .describe('`login_required`: nothing is read before the user has logged in at the bank again'),
  created_at: isoMoment(),
  updated_at: isoMoment(),
}
export const Connection = z.object(connection).meta({ id: 'BankConnection' })

export function showConnection(state: BankConnection) {
  const { connection_id: _id, item_id: bankconnect_item_id, linked_at: created_at } = state
  return { ...state, _id, bankconnect_item_id, created_at }
}

export const exchangeRequest = z.object({
  public_token: handedOut().describe("What the widget's success callback is given; it serves once"),
  user_id: userId(),
  employer_id: optional(reference()),
  carrier_id: optional(reference()),
})

export const ExchangedConnection = z
  .object({
    ...connection,
    access_token: z
      .string()
      .describe(
        'Opens the item to `POST /bank-accounts/ach/from-bankconnect`; it is shown here and nowhere else',
      ),
    accounts: z.array(LinkedAccount),
  })
  .meta({ id: 'ExchangedBankConnection' })

export function showExchanged({ connection, accounts, handle: access_token }: HandedOutConnection) {
  return { ...showConnection(connection), access_token, accounts: [...accounts] }
}

export const Synced = z
  .object({
    bankconnect_item_id: z.string(),
    synced: z.int().describe('How many accounts the item has'),
    accounts: z.array(LinkedAccount),
    transactions: z.object({
      changed: z.int().describe('New ones, and those that are another now'),
      removed: z.int().describe('Those that are no more, such as pending ones that were booked'),
      has_more: z.boolean().describe('More come with the next sync'),
    }),
  })
  .meta({ id: 'SyncedBankConnection' })

export function showSynced({ connection, accounts, transactions }: SyncedConnection) {
  const { item_id: bankconnect_item_id } = connection
  return { bankconnect_item_id, synced: accounts.length, accounts: [...accounts], transactions }
}

export const Balances = z
  .object({
    bankconnect_item_id: z.string(),
    accounts: z.array(
      z.object({
        bankconnect_account_id: z.string(),
        current_cents: z.int().nullable().describe('Null: the bank does not say'),
        available_cents: z.int().nullable(),
        currency: z.string().nullable().describe('As the bank names it; null: it does not'),
      }),
    ),
  })
  .meta({ id: 'BankBalances' })

export function showBalances({ item_id }: BankConnection, balances: readonly LinkedBalance[]) {
  return {
    bankconnect_item_id: item_id,
    accounts: balances.map(({ accountId, currentCents, availableCents, currency }) => ({
      bankconnect_account_id: accountId,
      current_cents: currentCents,
      available_cents: availableCents,
      currency,
    })),
  }
}

export const newLinkedAchAccount = z.object({
  owner_type: word('employer', 'carrier'),
  owner_id: reference(),
  bankconnect_account_id: handedOut(),
  bankconnect_item_id: handedOut(),
  access_token: handedOut().describe('What the exchange of this item handed out'),
  nickname: optional(text(NAME)),
  is_primary: withDefault(z.boolean(), false),
})

export const BankTransaction = z
  .object({
    _id: id(),
    bankconnect_item_id: z.string(),
    bankconnect_account_id: z.string(),
    employer_id: id().nullable(),
    date: date(),
    amount_cents: z.int().min(0),
    direction: z.enum(['debit', 'credit']).describe('`debit`: money left the account'),
    currency: z.string().nullable(),
    description: z.string(),
    pending: z.boolean(),
  })
  .meta({ id: 'BankTransaction' })

export function showTransaction(one: ShownBankTransaction) {
  const { transaction_id: _id, item_id: bankconnect_item_id, account_id: bankconnect_account_id } = one
  return { ...one, _id, bankconnect_item_id, bankconnect_account_id }
}

export const TransactionSummary = z
  .object({
    total_transactions: z.int(),
    total_debits_cents: z.int(),
    total_credits_cents: z.int(),
    net_cents: z.int().describe('Credits less debits'),
  })
  .meta({ id: 'BankTransactionSummary' })

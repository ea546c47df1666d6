import { BankTransactionsReceived } from '../../../domain/banking/linking/bank-transactions.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import { sealContext } from '../../../domain/kernel/sealed.ts'
import { ownedBy } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { openAll } from '../../commands/sealed-fields.ts'
import type { ListPage, PageRequest, ResultOf } from '../../ports/read-database.ts'
import { findCurrent } from '../../queries/find-current.ts'
import { pagedList, readPage } from '../../queries/pages.ts'
import {
  equalIfGiven,
  isAsGiven,
  isBetween,
  type Parameter,
  type Reading,
  statement,
} from '../../queries/statement.ts'
import { insuredAsOfNow, isInScope, type Scope } from '../accounts/account-owners.ts'
import { type AccountScope, accountScope, isAccountWithinKey } from '../accounts/account-rows.ts'

/** What transactions are narrowed to; null is everything. Dates are `YYYY-MM-DD`, both included. */
export interface TransactionFilter {
  readonly employer_id: string | null
  readonly item_id: string | null
  readonly account_id: string | null
  readonly date_from: string | null
  readonly date_to: string | null
  readonly pending: boolean | null
}
type TransactionScope = AccountScope & TransactionFilter

const transactionsOf = (db: Reading, $: Parameter<TransactionScope>) =>
  db
    .selectFrom('bank_transactions')
    .where((eb) => isAccountWithinKey(eb, 'bank_transactions', $))
    .where((eb) => equalIfGiven(eb, $, 'employer_id', 'item_id', 'account_id'))
    .where((eb) => isBetween(eb, 'date', { from: $('date_from'), to: $('date_to') }))
    .where((eb) => isAsGiven(eb, eb.ref('pending'), $('pending')))

const COLUMNS = [
  ...(['transaction_id', 'connection_id', 'item_id', 'account_id'] as const),
  ...(['employer_id', 'carrier_id', 'client_id'] as const),
  ...(['date', 'amount_cents', 'direction', 'currency', 'pending'] as const),
  ...(['description', 'description_field'] as const),
] as const
const TRANSACTIONS = pagedList(
  { projection: 'bank-transactions', name: 'bank-transactions' },
  (db, $: Parameter<TransactionScope>) =>
    transactionsOf(db, $).select(COLUMNS).orderBy('date', 'desc').orderBy('transaction_id'),
)
const SUMMARY = statement(
  'bank-transaction-summary',
  (db, $: Parameter<TransactionScope & { debit: 'debit' | 'credit'; credit: 'debit' | 'credit' }>) =>
    transactionsOf(db, $).select(({ fn, eb }) => [
      fn.countAll<number>().as('total'),
      eb
        .cast<number | null>(fn.sum('amount_cents').filterWhere('direction', '=', $('debit')), 'bigint')
        .as('debits'),
      eb
        .cast<number | null>(fn.sum('amount_cents').filterWhere('direction', '=', $('credit')), 'bigint')
        .as('credits'),
    ]),
)
const ONE = statement('bank-transaction', (db, $: Parameter<{ transactionId: string }>) =>
  db
    .selectFrom('bank_transactions')
    .select([...COLUMNS, 'tenant_id', 'environment'])
    .where('transaction_id', '=', $('transactionId')),
)

type Row = ResultOf<typeof TRANSACTIONS.rows>
/** A transaction as its partner sees it: its description is opened, `(erased)` where the data key was destroyed. */
export type ShownBankTransaction = Omit<Row, 'description'> & { readonly description: string }

/** Transactions of linked accounts within the scope of a key, the latest date first. */
export async function listBankTransactions(
  app: Application,
  client: Scope,
  filter: TransactionFilter,
  page: PageRequest,
): Promise<ListPage<ShownBankTransaction>> {
  await insuredAsOfNow(app, client)
  const { items, total } = await readPage(app, TRANSACTIONS, { ...accountScope(client), ...filter }, page)
  return { items: await opened(app, items), total }
}

/** A transaction that a partner names. */
export async function bankTransactionOf(
  app: Application,
  client: Scope,
  transactionId: string,
): Promise<ShownBankTransaction | Rejection> {
  const found = isId(transactionId)
    ? await findCurrent(app, 'bank-transactions', async () => {
        const [row] = await app.read.query(ONE, { transactionId })
        return row ?? null
      })
    : null
  const owned = await ownedBy(client, found, 'bank transaction', (one) => isInScope(app, client, one))
  return isRejection(owned) ? owned : (await opened(app, [owned]))[0]!
}

/** Amounts are cents, 0 or more. */
export interface TransactionTotals {
  readonly total: number
  readonly debitCents: number
  readonly creditCents: number
}

/** What the same transactions come to. */
export async function totalsOf(
  app: Application,
  client: Scope,
  filter: TransactionFilter,
): Promise<TransactionTotals> {
  await insuredAsOfNow(app, client)
  await app.readModels.reached(['bank-transactions'], await app.log.head())
  const directions = { debit: 'debit', credit: 'credit' } as const
  const [row] = await app.read.query(SUMMARY, { ...accountScope(client), ...filter, ...directions })
  return { total: row!.total, debitCents: row!.debits ?? 0, creditCents: row!.credits ?? 0 }
}

async function opened(
  { personalData }: Pick<Application, 'personalData'>,
  rows: readonly Row[],
): Promise<readonly ShownBankTransaction[]> {
  const texts = await openAll(
    personalData,
    rows.map(({ connection_id, description, description_field }) => ({
      value: description,
      context: sealContext(
        `bankTransactions-${connection_id}`,
        BankTransactionsReceived.name,
        description_field,
      ),
    })),
  )
  return rows.map((row, index) => ({ ...row, description: texts[index]! }))
}

import type { ApiClient } from '../../domain/access/api-client.ts'
import {
  type BankDebit,
  bankDebit,
  DEBIT_STATUSES,
  type DebitStatus,
} from '../../domain/banking/bank-debit.ts'
import type { Application } from '../application.ts'
import {
  type KeyScope,
  keyScope,
  type ListPage,
  type PagePart,
  type PageRequest,
  readPage,
} from '../read-models/pages.ts'
import {
  equalsIfGiven,
  inIfGiven,
  isWithinKey,
  type Parameter,
  type Reading,
  statement,
} from '../read-models/statement.ts'

/** What a transaction list can be sorted by. */
export const SORTS = ['created_at', 'amount_cents', 'status', 'effective_date'] as const
export type Sort = (typeof SORTS)[number]

/** What a status says of the money. */
export const STATUS_GROUPS = ['in_flight', 'money_landed', 'failed'] as const
const GROUP_OF: Readonly<Record<DebitStatus, (typeof STATUS_GROUPS)[number]>> = {
  pending: 'in_flight',
  Scheduled: 'in_flight',
  submitted: 'money_landed',
  processed: 'money_landed',
  returned: 'failed',
}
/** Groups by further words that a filter takes, lower case; any other word is a status itself. */
const GROUP_WORDS = new Map([
  ['pending', 'in_flight'],
  ['completed', 'money_landed'],
])

/** The group of a status. */
export function groupOf(status: DebitStatus): (typeof STATUS_GROUPS)[number] {
  return GROUP_OF[status]
}

/** The statuses that a word of a filter stands for, in any case. */
export function statusesOf(word: string): readonly DebitStatus[] {
  const wanted = word.toLowerCase()
  const group = GROUP_WORDS.get(wanted) ?? wanted
  return DEBIT_STATUSES.filter((status) => GROUP_OF[status] === group || status.toLowerCase() === wanted)
}

/** What a list is narrowed to; null is everything. */
interface TransactionScope extends KeyScope {
  readonly carrierId: string | null
  readonly employerId: string | null
  readonly policyId: string | null
  readonly statuses: readonly string[] | null
  /** ISO 8601, of creation; the upper bound is included. */
  readonly from: string | null
  readonly to: string | null
}

const transactionsOf = (db: Reading, $: Parameter<TransactionScope>) =>
  db
    .selectFrom('bank_debits')
    .where((eb) => isWithinKey(eb, $))
    .where((eb) => equalsIfGiven(eb, 'carrier_id', $('carrierId')))
    .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
    .where((eb) => equalsIfGiven(eb, 'policy_id', $('policyId')))
    .where((eb) => inIfGiven(eb, 'status', $('statuses')))
    .where((eb) => {
      const from = eb.cast<string | null>($('from'), 'text')
      return eb.or([eb(from, 'is', null), eb('created_at', '>=', from as never)])
    })
    .where((eb) => {
      const to = eb.cast<string | null>($('to'), 'text')
      return eb.or([eb(to, 'is', null), eb('created_at', '<=', to as never)])
    })

const count = statement('bank-debit-count', (db, $: Parameter<TransactionScope>) =>
  transactionsOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
)
const rowsBy = (sort: Sort, order: 'asc' | 'desc') =>
  statement(`bank-debits-by-${sort}-${order}`, (db, $: Parameter<TransactionScope & PagePart>) =>
    transactionsOf(db, $)
      .select('leg_id')
      .orderBy(sort === 'created_at' ? 'seq' : sort, order)
      .orderBy('seq', order)
      .limit($('limit'))
      .offset($('offset')),
  )
const ROWS = Object.fromEntries(
  SORTS.map((sort) => [sort, { asc: rowsBy(sort, 'asc'), desc: rowsBy(sort, 'desc') }]),
) as Record<Sort, Record<'asc' | 'desc', ReturnType<typeof rowsBy>>>

/** Bank debits within the scope of a key. The read model tells which there are; the log what they are. */
export async function listTransactions(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  client: Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>,
  filter: Pick<TransactionScope, 'carrierId' | 'employerId' | 'policyId' | 'statuses' | 'from' | 'to'>,
  { sort, order }: { readonly sort: Sort; readonly order: 'asc' | 'desc' },
  page: PageRequest,
): Promise<ListPage<BankDebit>> {
  const list = { projection: 'bank-debits', rows: ROWS[sort][order], count }
  const { items, total } = await readPage(app, list, { ...keyScope(client), ...filter }, page)
  const loaded = await Promise.all(items.map(({ leg_id }) => app.commands.load(bankDebit, leg_id)))
  return { items: loaded.map(({ state }) => state).filter((state) => state !== null), total }
}

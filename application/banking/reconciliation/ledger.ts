import type { ApiClient } from '../../../domain/access/api-client.ts'
import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest, ResultOf, Statement } from '../../ports/read-database.ts'
import { isWithinKey, type KeyScope, keyScope, type PagePart } from '../../queries/pages.ts'
import {
  type Expression,
  equalIfGiven,
  inIfGiven,
  isBetween,
  type Parameter,
  type Reading,
  statement,
} from '../../queries/statement.ts'
import { STATUS_GROUPS, type Statuses, statusesOf, TRANSACTION_STATUSES } from '../debits/transactions.ts'

/**
 * The ledger: bank debits and records of the legacy service in one list of millions. A page is read from sorted runs of
 * indexes that the database merges, one for each table; where a table is read by time of creation, one for each status that
 * is asked for, too. It costs what it skips and shows, not what matches.
 */

/** What the ledger can be sorted by. */
export const SORTS = ['created_at', 'amount_cents', 'status', 'effective_date'] as const
export type Sort = (typeof SORTS)[number]
const ORDERS = ['asc', 'desc'] as const
export type Order = (typeof ORDERS)[number]

/** Columns by which rows stand in order. */
const COLUMNS_OF = {
  created_at: ['created_at', 'seq'],
  amount_cents: ['amount_cents', 'seq'],
  status: ['status', 'created_at', 'seq'],
  effective_date: ['effective_date', 'seq'],
} as const satisfies Readonly<Record<Sort, readonly string[]>>

/** The order in which a table is read for a sort: it has an index of its columns, or of the first ones. */
function orderOf(table: Table, sort: Sort): Sort {
  // a record counts as created at the beginning of the day on which it takes effect
  return table === 'legacy_collections' && sort === 'effective_date' ? 'created_at' : sort
}

/** What the ledger is narrowed to; null is everything. */
export interface LedgerFilter {
  readonly carrier_id: string | null
  readonly employer_id: string | null
  readonly policy_id: string | null
  readonly statuses: Statuses | null
  /** ISO 8601, of creation; both bounds are included. */
  readonly from: string | null
  readonly to: string | null
}

type Scope = KeyScope & Omit<LedgerFilter, 'statuses'>
type Table = 'bank_debits' | 'legacy_collections'
/** The status of a run, by its place among those that are asked for. */
type RunStatus = `debits${number}` | `legacy${number}`
type Counted = Scope & {
  readonly debits: readonly string[] | null
  readonly legacy: readonly string[] | null
}
type PageOfRuns = Counted &
  PagePart &
  Readonly<Record<RunStatus, string>> & {
    /** Rows that each run has at the most: whatever other runs have, the page lies within them. */
    readonly end: number
  }

/** The rows of a table within a scope, whichever of the two it is: they have the same columns here. */
const within = (db: Reading, table: Table, $: Parameter<Scope>) =>
  db
    .selectFrom(table as 'bank_debits')
    .where((eb) => isWithinKey(eb, $))
    .where((eb) => equalIfGiven(eb, $, 'carrier_id', 'employer_id', 'policy_id'))
    .where((eb) => isBetween(eb, 'created_at', { from: $('from'), to: $('to') }))

/** A run: rows of a table in the order of an index. */
interface Run {
  readonly table: Table
  /** The parameter of its one status; `all`: it has every status that is asked for. */
  readonly status: RunStatus | 'all'
}

function run(
  db: Reading,
  { table, status }: Run,
  { sort, order }: { readonly sort: Sort; readonly order: Order },
  $: Parameter<PageOfRuns>,
) {
  const isLegacy = table === 'legacy_collections'
  const rows = within(db, table, $)
    .where((eb) =>
      status === 'all'
        ? inIfGiven(eb, 'status', $(isLegacy ? 'legacy' : 'debits'))
        : eb('status', '=', $(status) as Expression<never>),
    )
    .select((eb) => [
      ...(['seq', 'status', 'created_at', 'amount_cents', 'effective_date'] as const),
      eb.ref(isLegacy ? ('transaction_id' as 'leg_id') : 'leg_id').as('id'),
      eb.lit(isLegacy).as('is_legacy'),
    ])
  const sorted = COLUMNS_OF[orderOf(table, sort)].reduce(
    (query, column) => query.orderBy(column, order),
    rows,
  )
  return db.selectFrom(sorted.limit($('end')).as('run')).selectAll()
}

function pageOf(name: string, sorting: { readonly sort: Sort; readonly order: Order }, runs: readonly Run[]) {
  return statement(
    name,
    (db, $: Parameter<PageOfRuns>) => {
      const [first, ...others] = runs.map((one) => run(db, one, sorting, $))
      const merged = others.reduce((all, one) => all.unionAll(one), first!)
      return COLUMNS_OF[sorting.sort]
        .reduce(
          (query, column) => query.orderBy(column, sorting.order),
          db.selectFrom(merged.as('ledger')).select(['id', 'is_legacy']),
        )
        .limit($('limit'))
        .offset($('offset'))
    },
    { plannedAnew: true },
  )
}

/** Of each table one run, or one for each of some statuses. */
function runsOf(sort: Sort, statuses: Statuses | null): readonly Run[] {
  const runs = (table: Table, word: 'debits' | 'legacy'): readonly Run[] =>
    statuses === null || orderOf(table, sort) !== 'created_at'
      ? [{ table, status: 'all' }]
      : statuses[word].map((_, place) => ({ table, status: `${word}${place}` }))
  return [...runs('bank_debits', 'debits'), ...runs('legacy_collections', 'legacy')]
}

function nameOf(sort: Sort, order: Order, runs: readonly Run[]): string {
  return `ledger-by-${sort}-${order}-${runs.map(({ table, status }) => `${table[0]}-${status}`).join('-')}`
}

/** By what every word of a filter stands for. */
const PAGES = new Map<string, Statement<PageOfRuns, { id: string; is_legacy: boolean }>>()
for (const statuses of [null, ...[...STATUS_GROUPS, ...TRANSACTION_STATUSES].map(statusesOf)]) {
  for (const sort of SORTS) {
    for (const order of ORDERS) {
      const runs = runsOf(sort, statuses)
      const name = nameOf(sort, order, runs)
      if (!PAGES.has(name)) PAGES.set(name, pageOf(name, { sort, order }, runs))
    }
  }
}

const COUNT = statement(
  'ledger-count',
  (db, $: Parameter<Counted>) => {
    const counted = (table: Table, statuses: 'debits' | 'legacy') =>
      within(db, table, $)
        .where((eb) => inIfGiven(eb, 'status', $(statuses)))
        .select(({ fn }) => fn.countAll<number>().as('total'))
    return counted('bank_debits', 'debits').unionAll(counted('legacy_collections', 'legacy'))
  },
  { plannedAnew: true },
)

const DEBITS = statement('ledger-debits', (db, $: Parameter<{ ids: readonly string[] }>) =>
  db
    .selectFrom('bank_debits')
    .select([
      ...(['leg_id', 'payment_session_id', 'installment_number', 'source', 'employer_id'] as const),
      ...(['carrier_id', 'policy_id', 'status', 'reason', 'return_code', 'amount_cents'] as const),
      ...(['payment_purpose', 'description', 'bank_account_id', 'account_last4'] as const),
      ...(['collection_id', 'effective_date', 'metadata', 'created_at', 'updated_at'] as const),
    ])
    .where('leg_id', '=', ({ fn }) => fn.any($('ids'))),
)
const LEGACY = statement('ledger-legacy', (db, $: Parameter<{ ids: readonly string[] }>) =>
  db
    .selectFrom('legacy_collections')
    .select([
      ...(['transaction_id', 'employer_id', 'carrier_id', 'policy_id', 'status', 'return_code'] as const),
      ...(['amount_cents', 'effective_date', 'created_at', 'updated_at'] as const),
    ])
    .where('transaction_id', '=', ({ fn }) => fn.any($('ids'))),
)
/** A row of the ledger. */
export type LedgerRow =
  | { readonly kind: 'debit'; readonly debit: ResultOf<typeof DEBITS> }
  | { readonly kind: 'legacy'; readonly record: ResultOf<typeof LEGACY> }

/** A page of the ledger within the scope of a key. */
export async function readLedger(
  { read, readModels, log }: Pick<Application, 'read' | 'readModels' | 'log'>,
  client: Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>,
  { statuses, ...filter }: LedgerFilter,
  { sort, order }: { readonly sort: Sort; readonly order: Order },
  { page, limit }: PageRequest,
): Promise<ListPage<LedgerRow>> {
  // a word that stands for nothing
  if (statuses?.debits.length === 0 && statuses.legacy.length === 0) return { items: [], total: 0 }
  await readModels.reached(['bank-debits', 'legacy-collections'], await log.head())
  const { debits = null, legacy = null } = statuses ?? {}
  const scope = { ...keyScope(client), ...filter, debits, legacy }
  const wanted = { limit, offset: (page - 1) * limit, end: page * limit, ...statusesByPlace(statuses) }
  const [found, counted] = await Promise.all([
    read.query(PAGES.get(nameOf(sort, order, runsOf(sort, statuses)))!, { ...scope, ...wanted }),
    read.query(COUNT, scope),
  ])
  const idsOf = (isLegacy: boolean) => found.filter((one) => one.is_legacy === isLegacy).map(({ id }) => id)
  const [ofDebits, ofLegacy] = await Promise.all([
    read.query(DEBITS, { ids: idsOf(false) }),
    read.query(LEGACY, { ids: idsOf(true) }),
  ])
  const byId = new Map<string, LedgerRow>([
    ...ofDebits.map((debit) => [debit.leg_id, { kind: 'debit', debit }] as const),
    ...ofLegacy.map((record) => [record.transaction_id, { kind: 'legacy', record }] as const),
  ])
  return {
    items: found.flatMap(({ id }) => byId.get(id) ?? []),
    total: counted.reduce((sum, { total }) => sum + total, 0),
  }
}

function statusesByPlace(statuses: Statuses | null): Readonly<Record<RunStatus, string>> {
  const { debits = [], legacy = [] } = statuses ?? {}
  return Object.fromEntries([
    ...debits.map((status, place) => [`debits${place}`, status]),
    ...legacy.map((status, place) => [`legacy${place}`, status]),
  ])
}

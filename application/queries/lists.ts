import { isoTime } from '../../domain/kernel/calendar.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isWithinKey, type KeyScope, keyScope, loadPage, pagedList, readPage } from './pages.ts'
import { equalIfGiven, type Parameter, readsStatus, type StatusWanted, type TableWith } from './statement.ts'
import type { ReadModels } from './table.ts'

/** Columns of what stands in an environment of a tenant. */
export const OF_TENANT = ['tenant_id', 'environment'] as const

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>
type ColumnOf<Table extends keyof ReadModels> = keyof ReadModels[Table] & string
/** What a list is narrowed to by its columns; null is everything. */
type Filter<By extends string> = Readonly<Record<By, string | null>>

interface Listed<Table extends keyof ReadModels, By> {
  readonly projection: string
  readonly table: Table
  /** Columns that narrow it by their values. */
  readonly by: readonly By[]
}

interface ListedAggregates<Table extends keyof ReadModels, By> extends Listed<Table, By> {
  /** The column of their ids. */
  readonly id: ColumnOf<Table>
  /** Of a table of several kinds, which one. */
  readonly kind?: string
  /** Their `status` is read as of now. */
  readonly expires?: boolean
}

/** Declares a list of operators, across tenants and newest first: the read model tells which there are, the log what they are. */
export function operatorList<
  State,
  Command,
  Event extends DomainEvent,
  Table extends TableWith<'seq'>,
  By extends ColumnOf<Table> = never,
>(aggregate: Decider<State | null, Command, Event>, options: ListedAggregates<Table, By>) {
  const list = newestFirst('operator', options)
  return (app: Parts, filter: Filter<By>, page: PageRequest): Promise<ListPage<State>> =>
    loadPage(app, aggregate, list, { ...filter, ...fixed(app, options) } as Wanted, page)
}

/** The same of a partner: of what its key reaches. */
export function partnerList<
  State,
  Command,
  Event extends DomainEvent,
  Table extends TableWith<'tenant_id' | 'environment' | 'carrier_id' | 'employer_id' | 'seq'>,
  By extends ColumnOf<Table>,
>(aggregate: Decider<State | null, Command, Event>, options: ListedAggregates<Table, By>) {
  const list = newestFirst('partner', options)
  return (
    app: Parts,
    client: Parameters<typeof keyScope>[0],
    filter: Filter<By>,
    page: PageRequest,
  ): Promise<ListPage<State>> =>
    loadPage(app, aggregate, list, { ...filter, ...fixed(app, options), ...keyScope(client) } as Wanted, page)
}

/** Declares a list of operators of rows as they stand in a read model, newest first. */
export function operatorRows<Table extends TableWith<'seq'>, By extends ColumnOf<Table>>(
  options: Listed<Table, By>,
) {
  const { projection, table, by } = options as unknown as Listed<'payment_links', 'status'>
  const list = pagedList(
    { projection, name: nameOf('operator', table) },
    (db, $: Parameter<Filter<'status'>>) =>
      db
        .selectFrom(table)
        .selectAll()
        .where((eb) => equalIfGiven(eb, $, ...by))
        .orderBy('seq', 'desc'),
  )
  return (app: Omit<Parts, 'commands' | 'clock'>, filter: Filter<By>, page: PageRequest) =>
    readPage(app, list, filter as Filter<'status'>, page) as Promise<unknown> as Promise<
      ListPage<ReadModels[Table]>
    >
}

/** What any of these lists may ask for; a statement takes of it what it names. */
type Wanted = KeyScope & StatusWanted & { readonly kind: string }

function fixed({ clock }: Pick<Parts, 'clock'>, { kind }: { readonly kind?: string }) {
  return { kind, now: isoTime(clock.now()), expired: 'expired' }
}

function newestFirst<Table extends keyof ReadModels, By>(
  whose: 'operator' | 'partner',
  options: ListedAggregates<Table, By>,
) {
  // any table that has these columns stands for it
  const { projection, table, id, by, kind, expires } = options as unknown as Omit<
    ListedAggregates<'payment_links', 'status'>,
    'id'
  > & { readonly id: 'payment_link_id' }
  const name = nameOf(whose, table, kind)
  return pagedList({ projection, name }, (db, $: Parameter<Wanted>) => {
    let rows = db
      .selectFrom(table)
      .select(`${id} as id`)
      .where((eb) => equalIfGiven(eb, $, ...(expires ? by.filter((one) => one !== 'status') : by)))
      .orderBy('seq', 'desc')
    if (kind) rows = rows.where('kind' as 'payment_link_id', '=', $('kind'))
    if (whose === 'partner') rows = rows.where((eb) => isWithinKey(eb, $))
    return expires ? rows.where((eb) => readsStatus(eb, $)) : rows
  })
}

/** What the database knows statements by. */
function nameOf(...parts: readonly (string | undefined)[]): string {
  return parts
    .filter((one) => one !== undefined)
    .join('-')
    .replaceAll('_', '-')
}

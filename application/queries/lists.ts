import { isoTime } from '../../domain/kernel/calendar.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from './pages.ts'
import { equalIfGiven, type Parameter, readsStatus, type StatusWanted, type TableWith } from './statement.ts'
import type { ReadModels } from './table.ts'

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>
type ColumnOf<Table extends keyof ReadModels> = keyof ReadModels[Table] & string

/**
 * Declares a list of operators, across tenants and newest first: the read model tells which there are, the log what they are.
 * @param options.id the column of their ids.
 * @param options.by columns that narrow it by their values; null is everything.
 * @param options.expires their `status` is read as of now.
 */
export function operatorList<
  State,
  Command,
  Event extends DomainEvent,
  Table extends TableWith<'tenant_id' | 'environment' | 'seq'>,
  By extends ColumnOf<Table> = never,
>(
  aggregate: Decider<State | null, Command, Event>,
  options: {
    readonly projection: string
    readonly table: Table
    readonly id: ColumnOf<Table>
    readonly by?: readonly By[]
    readonly expires?: boolean
  },
) {
  type Scope = ListScope & Readonly<Record<By, string | null>>
  // any table that has these columns stands for it
  const {
    projection,
    table,
    id,
    by = [],
    expires = false,
  } = options as unknown as {
    readonly projection: string
    readonly table: 'payment_links'
    readonly id: 'payment_link_id'
    readonly by?: readonly 'status'[]
    readonly expires?: boolean
  }
  const list = pagedList(
    { projection, name: `operator-${table.replaceAll('_', '-')}` },
    (db, $: Parameter<ListScope & StatusWanted>) => {
      const rows = db
        .selectFrom(table)
        .select(`${id} as id`)
        .where((eb) => isOfTenant(eb, $))
        .where((eb) => equalIfGiven(eb, $, ...(expires ? by.filter((one) => one !== 'status') : by)))
        .orderBy('seq', 'desc')
      return expires ? rows.where((eb) => readsStatus(eb, $)) : rows
    },
  )
  return (app: Parts, scope: Scope, page: PageRequest): Promise<ListPage<State>> => {
    const asOfNow = { now: isoTime(app.clock.now()), expired: 'expired' } as const
    return loadPage(app, aggregate, list, { status: null, ...scope, ...asOfNow }, page)
  }
}

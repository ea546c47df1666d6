import type { Expression, ExpressionBuilder, SelectQueryBuilder, SqlBool } from 'kysely'
import type { ApiClient } from '../../domain/access/api-client.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest, Statement } from '../ports/read-database.ts'
import {
  equalIfGiven,
  inIfGiven,
  type Parameter,
  type Reading,
  statement,
  type TableWith,
} from './statement.ts'
import type { ReadModels } from './table.ts'

/** What a list of an operator is narrowed to; null is everything. */
export interface ListScope {
  readonly tenant_id: string | null
  readonly environment: Environment | null
}

/** Holds for rows of the tenant and the environment that an operator asks for. */
export function isOfTenant<Table extends TableWith<'tenant_id' | 'environment'>>(
  builder: ExpressionBuilder<ReadModels, Table>,
  $: Parameter<ListScope>,
): Expression<SqlBool> {
  const eb = builder as unknown as ExpressionBuilder<ReadModels, 'payment_links'>
  return equalIfGiven(eb, $, 'tenant_id', 'environment')
}

/** What a list of a partner is narrowed to by its key; null is everything. */
export interface KeyScope {
  readonly tenantId: string
  readonly environment: Environment
  readonly carrierIds: readonly string[] | null
  readonly employerIds: readonly string[] | null
}

export function keyScope({
  tenant_id,
  environment,
  carrier_ids,
  employer_ids,
}: Pick<ApiClient, 'tenant_id' | 'environment'> & {
  readonly carrier_ids: 'all' | readonly string[]
  readonly employer_ids: 'all' | readonly string[]
}): KeyScope {
  return {
    tenantId: tenant_id,
    environment,
    carrierIds: carrier_ids === 'all' ? null : carrier_ids,
    employerIds: employer_ids === 'all' ? null : employer_ids,
  }
}

/** Holds for rows within the scope of a key. */
export function isWithinKey<
  Table extends TableWith<'tenant_id' | 'environment' | 'carrier_id' | 'employer_id'>,
>(builder: ExpressionBuilder<ReadModels, Table>, $: Parameter<KeyScope>): Expression<SqlBool> {
  const eb = builder as unknown as ExpressionBuilder<ReadModels, 'payment_links'>
  return eb.and([
    eb('tenant_id', '=', $('tenantId')),
    eb('environment', '=', $('environment')),
    inIfGiven(eb, 'carrier_id', $('carrierIds')),
    inIfGiven(eb, 'employer_id', $('employerIds')),
  ])
}

/** The statements of a list in pages, and the projection that it reads. */
interface PagedList<Scope, Row> {
  readonly projection: string
  readonly rows: Statement<Scope & PagePart, Row>
  readonly count: Statement<Scope, { total: number }>
}

/** Rows on a page. */
export interface PagePart {
  readonly limit: number
  readonly offset: number
}

/**
 * Declares a list that is read in pages.
 * @param names the projection that it reads, and what the database knows its statements by.
 * @param query all its rows, in their order.
 */
export function pagedList<Scope, Table extends keyof ReadModels, Row>(
  { projection, name }: { readonly projection: string; readonly name: string },
  query: (db: Reading, $: Parameter<Scope>) => SelectQueryBuilder<ReadModels, Table, Row>,
): PagedList<Scope, Row> {
  return {
    projection,
    rows: statement(name, (db, $: Parameter<Scope & PagePart>) =>
      query(db, $).limit($('limit')).offset($('offset')),
    ),
    count: statement(`${name}-count`, (db, $: Parameter<Scope>) =>
      db
        .selectFrom(query(db, $).clearOrderBy().as('listed'))
        .select(({ fn }) => fn.countAll<number>().as('total')),
    ),
  }
}

/** Reads a page of a list, with what was stored before the call. */
export async function readPage<Scope, Row>(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  { projection, rows, count }: PagedList<Scope, Row>,
  scope: Scope,
  { page, limit }: PageRequest,
): Promise<ListPage<Row>> {
  await app.readModels.reached([projection], await app.log.head())
  const [items, counted] = await Promise.all([
    app.read.query(rows, { ...scope, limit, offset: (page - 1) * limit }),
    app.read.query(count, scope),
  ])
  return { items, total: counted[0]!.total }
}

/** The same of aggregates: the read model tells which there are, the log what they are. */
export async function loadPage<Scope, State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  aggregate: Decider<State | null, Command, Event>,
  list: PagedList<Scope, { readonly id: string }>,
  scope: Scope,
  page: PageRequest,
): Promise<ListPage<State>> {
  const { items, total } = await readPage(app, list, scope, page)
  const ids = items.map(({ id }) => id)
  const loaded = await app.commands.loadAll(aggregate, ids)
  return { items: loaded.map(({ state }) => state).filter((state) => state !== null), total }
}

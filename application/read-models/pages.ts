import type { ApiClient } from '../../domain/access/api-client.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { Statement } from '../ports/read-database.ts'

/** A page of a list: `page` from 1, `limit` rows on each. */
export interface PageRequest {
  readonly page: number
  readonly limit: number
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** How many there are on all pages. */
  readonly total: number
}

/** What a list of an operator is narrowed to; null is everything. */
export interface ListScope {
  readonly tenantId: string | null
  readonly environment: Environment | null
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
}: Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>): KeyScope {
  return {
    ...{ tenantId: tenant_id, environment },
    carrierIds: carrier_ids === 'all' ? null : carrier_ids,
    employerIds: employer_ids === 'all' ? null : employer_ids,
  }
}

/** The statements of a list in pages, and the projection that it reads. */
interface List<Scope, Row> {
  readonly projection: string
  readonly rows: Statement<Scope & PagePart, Row>
  readonly count: Statement<Scope, { total: number }>
}

/** Rows on a page. */
export interface PagePart {
  readonly limit: number
  readonly offset: number
}

/** Reads a page of a list, with what was stored before the call. */
export async function readPage<Scope, Row>(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  { projection, rows, count }: List<Scope, Row>,
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

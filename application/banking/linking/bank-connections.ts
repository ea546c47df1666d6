import {
  type BankConnection,
  bankConnection,
  type ConnectionStatus,
  noConnection,
} from '../../../domain/banking/linking/bank-connection.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../../queries/statement.ts'
import { insuredAsOfNow, isInScope, type Scope } from '../accounts/account-owners.ts'
import { type AccountScope, accountScope, isAccountWithinKey } from '../accounts/account-rows.ts'

/** The id of the connection of an item: the same item again is the same connection. */
export function connectionIdOf(
  { personalData }: Pick<Application, 'personalData'>,
  { tenant_id, environment }: Pick<Scope, 'tenant_id' | 'environment'>,
  itemId: string,
): string {
  return personalData.fingerprint('bank-connection', `${tenant_id}|${environment}|${itemId}`)
}

/** A connection that a partner names. */
export async function connectionOf(
  app: Application,
  client: Scope,
  connectionId: string,
): Promise<BankConnection | Rejection> {
  const connection = await stateOf(app, bankConnection, connectionId)
  return ownedBy(client, connection, 'bank connection', (one) => isInScope(app, client, one))
}

/** The same by its item. @param field what the request calls it. */
export async function connectionOfItem(
  app: Application,
  client: Scope,
  itemId: string,
  field: string,
): Promise<BankConnection | Rejection> {
  const found = await connectionOf(app, client, connectionIdOf(app, client, itemId))
  if (!isRejection(found)) return found
  return found.kind === 'not_found' ? noConnection(field) : connectionOutside(field)
}

export function connectionOutside(field: string): Rejection {
  const why = `${field} lies outside the scope of the key`
  return reject('forbidden', 'bank_connection_out_of_scope', why, field)
}

/** What a list of connections is narrowed to; null is everything. */
interface ConnectionScope extends AccountScope {
  readonly employer_id: string | null
  readonly carrier_id: string | null
  readonly status: ConnectionStatus | null
}

const CONNECTIONS = pagedList(
  { projection: 'bank-connections', name: 'bank-connections' },
  (db, $: Parameter<ConnectionScope>) =>
    db
      .selectFrom('bank_connections')
      .select('connection_id as id')
      .where((eb) => isAccountWithinKey(eb, 'bank_connections', $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Connections within the scope of a key, newest first. */
export async function listConnections(
  app: Application,
  client: Scope,
  filter: Omit<ConnectionScope, keyof AccountScope>,
  page: PageRequest,
): Promise<ListPage<BankConnection>> {
  await insuredAsOfNow(app, client)
  return loadPage(app, bankConnection, CONNECTIONS, { ...accountScope(client), ...filter }, page)
}

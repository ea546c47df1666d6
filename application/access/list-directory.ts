import { apiClient } from '../../domain/access/api-client.ts'
import { inboundConnection } from '../../domain/access/inbound-connection.ts'
import { tenant } from '../../domain/access/tenant.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'
import { isOfTenant, type ListScope, pagedList } from '../queries/pages.ts'
import { constant, equalIfGiven, type Parameter, statement } from '../queries/statement.ts'
import type { DirectoryKind } from './directory-table.ts'

/** What a list of the directory is narrowed to; null is everything. */
interface DirectoryScope extends ListScope {
  readonly kind: DirectoryKind
  readonly status: string | null
}

/** What the directory has of a kind, newest first. */
export const DIRECTORY = pagedList(
  { projection: 'directory', name: 'directory' },
  (db, $: Parameter<DirectoryScope>) =>
    db
      .selectFrom('directory')
      .select(['id', 'tenant_id', 'environment'])
      .where('kind', '=', $('kind'))
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'status'))
      .where('status', 'is distinct from', constant('deleted'))
      .orderBy('seq', 'desc'),
)

/** One entry of the directory, also of what was deleted. */
export const DIRECTORY_ENTRY = statement(
  'directory-entry',
  (db, $: Parameter<{ readonly kind: DirectoryKind; readonly id: string }>) =>
    db
      .selectFrom('directory')
      .select(['id', 'tenant_id', 'environment', 'status'])
      .where('kind', '=', $('kind'))
      .where('id', '=', $('id')),
)

/** Lists what the directory has of a kind. */
function listOfKind<
  State,
  Command,
  Event extends DomainEvent,
  By extends 'tenant_id' | 'environment' | 'status' = never,
>(kind: DirectoryKind, aggregate: Decider<State | null, Command, Event>, by: readonly By[]) {
  return operatorList(aggregate, { projection: 'directory', table: 'directory', id: 'id', kind, by })
}

/** Tenants. */
export const listTenants = listOfKind('tenant', tenant, [])
/** Payroll companies. */
export const listPayrollCompanies = listOfKind('payroll_company', payrollCompany, ['tenant_id'])
/** API clients. */
export const listApiClients = listOfKind('api_client', apiClient, [...OF_TENANT, 'status'])
/** Inbound connections. */
export const listInboundConnections = listOfKind('inbound_connection', inboundConnection, [
  ...OF_TENANT,
  'status',
])

import { type DirectoryKind, directory as table } from '../../application/access/directory-table.ts'
import { ApiClientDeactivated, ApiClientIssued } from '../../domain/access/api-client.ts'
import {
  InboundConnectionDeactivated,
  InboundConnectionOpened,
} from '../../domain/access/inbound-connection.ts'
import { TenantRegistered } from '../../domain/access/tenant.ts'
import { PayrollCompanyRegistered } from '../../domain/parties/payroll-company.ts'
import {
  WebhookSubscriptionDeleted,
  WebhookSubscriptionDisabled,
  WebhookSubscriptionEnabled,
  WebhookSubscriptionRegistered,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { projection } from '../runtime/projection.ts'

const row = (kind: DirectoryKind, id: string) => ({ directory: [[kind, id]] }) as const

/** Tenants and what opens the service to them, as operators list them; what they are stands in the log. */
export const directory = projection({
  name: 'directory',
  version: 2,
  tables: [table],
  handlers: (on) => [
    on(TenantRegistered, {
      apply: ({ data: { tenant_id }, position: seq }, { directory }) =>
        directory.put({ kind: 'tenant', id: tenant_id, tenant_id, seq }),
    }),
    on(PayrollCompanyRegistered, {
      apply: ({ data: { payroll_company_id: id, tenant_id }, position: seq }, { directory }) =>
        directory.put({ kind: 'payroll_company', id, tenant_id, seq }),
    }),
    on(ApiClientIssued, {
      apply: ({ data: { client_id: id, tenant_id, environment }, position: seq }, { directory }) =>
        directory.put({ kind: 'api_client', id, tenant_id, environment, status: 'active', seq }),
    }),
    on(ApiClientDeactivated, {
      reads: ({ data }) => row('api_client', data.client_id),
      apply: ({ data }, { directory }) =>
        directory.change(['api_client', data.client_id], { status: 'deactivated' }),
    }),
    on(InboundConnectionOpened, {
      apply: ({ data: { connection_id: id, tenant_id, environment }, position: seq }, { directory }) =>
        directory.put({ kind: 'inbound_connection', id, tenant_id, environment, status: 'active', seq }),
    }),
    on(InboundConnectionDeactivated, {
      reads: ({ data }) => row('inbound_connection', data.connection_id),
      apply: ({ data }, { directory }) =>
        directory.change(['inbound_connection', data.connection_id], { status: 'deactivated' }),
    }),
    on(WebhookSubscriptionRegistered, {
      apply: ({ data: { subscription_id: id, tenant_id, environment }, position: seq }, { directory }) =>
        directory.put({ kind: 'webhook_subscription', id, tenant_id, environment, status: 'active', seq }),
    }),
    on(WebhookSubscriptionDisabled, {
      reads: ({ data }) => row('webhook_subscription', data.subscription_id),
      apply: ({ data }, { directory }) =>
        directory.change(['webhook_subscription', data.subscription_id], { status: 'disabled' }),
    }),
    on(WebhookSubscriptionEnabled, {
      reads: ({ data }) => row('webhook_subscription', data.subscription_id),
      apply: ({ data }, { directory }) =>
        directory.change(['webhook_subscription', data.subscription_id], { status: 'active' }),
    }),
    on(WebhookSubscriptionDeleted, {
      reads: ({ data }) => row('webhook_subscription', data.subscription_id),
      apply: ({ data }, { directory }) =>
        directory.change(['webhook_subscription', data.subscription_id], { status: 'deleted' }),
    }),
  ],
})

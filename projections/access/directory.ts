import { directory as table } from '../../application/access/directory-table.ts'
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
import { changing, projection } from '../runtime/projection.ts'

const ofApiClient = changing(
  table,
  ({ client_id }: { client_id: string }) => ['api_client', client_id] as const,
)
const ofConnection = changing(
  table,
  ({ connection_id }: { connection_id: string }) => ['inbound_connection', connection_id] as const,
)
const ofSubscription = changing(
  table,
  ({ subscription_id }: { subscription_id: string }) => ['webhook_subscription', subscription_id] as const,
)

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
    ofApiClient(ApiClientDeactivated, () => ({ status: 'deactivated' })),
    on(InboundConnectionOpened, {
      apply: ({ data: { connection_id: id, tenant_id, environment }, position: seq }, { directory }) =>
        directory.put({ kind: 'inbound_connection', id, tenant_id, environment, status: 'active', seq }),
    }),
    ofConnection(InboundConnectionDeactivated, () => ({ status: 'deactivated' })),
    on(WebhookSubscriptionRegistered, {
      apply: ({ data: { subscription_id: id, tenant_id, environment }, position: seq }, { directory }) =>
        directory.put({ kind: 'webhook_subscription', id, tenant_id, environment, status: 'active', seq }),
    }),
    ofSubscription(WebhookSubscriptionDisabled, () => ({ status: 'disabled' })),
    ofSubscription(WebhookSubscriptionEnabled, () => ({ status: 'active' })),
    ofSubscription(WebhookSubscriptionDeleted, () => ({ status: 'deleted' })),
  ],
})

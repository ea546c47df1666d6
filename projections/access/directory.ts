import { type DirectoryKind, directory as table } from '../../application/access/directory-table.ts'
import { ApiClientDeactivated, ApiClientIssued } from '../../domain/access/api-client.ts'
import {
  InboundConnectionDeactivated,
  InboundConnectionOpened,
} from '../../domain/access/inbound-connection.ts'
import { TenantRegistered } from '../../domain/access/tenant.ts'
import { DebitCollectionAccepted } from '../../domain/banking/debits/debit-collection.ts'
import { PayrollCompanyRegistered } from '../../domain/parties/payroll-company.ts'
import { FinancingSessionCreated } from '../../domain/payments/financing/financing-session-events.ts'
import {
  ProcessorNoticeCarriedOut,
  ProcessorNoticeNotUnderstood,
  ProcessorNoticeResolved,
} from '../../domain/payments/processor/processor-notice.ts'
import {
  IntakeCompleted,
  IntakeReceived,
  IntakeRefused,
  IntakeUnfinished,
} from '../../domain/policies/intake.ts'
import {
  WebhookSubscriptionDeleted,
  WebhookSubscriptionDisabled,
  WebhookSubscriptionEnabled,
  WebhookSubscriptionRegistered,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { projection } from '../runtime/projection.ts'

const row = (kind: DirectoryKind, id: string) => ({ directory: [[kind, id]] }) as const

/** Tenants, what opens the service to them and what else nothing but lists asks for; what they are stands in the log. */
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
      apply: ({ data }, { directory }) => directory.remove('webhook_subscription', data.subscription_id),
    }),
    on(IntakeReceived, {
      apply: ({ data, position: seq }, { directory }) => {
        const { intake_id: id, tenant_id, environment, employer_id } = data
        directory.put({ kind: 'intake', id, tenant_id, environment, employer_id, status: 'received', seq })
      },
    }),
    on(IntakeUnfinished, {
      reads: ({ data }) => row('intake', data.intake_id),
      apply: ({ data: { intake_id } }, { directory }) => {
        // a refused one is not there
        if (directory.get('intake', intake_id))
          directory.change(['intake', intake_id], { status: 'unfinished' })
      },
    }),
    on(IntakeCompleted, {
      reads: ({ data }) => row('intake', data.intake_id),
      apply: ({ data }, { directory }) =>
        directory.change(['intake', data.intake_id], { status: 'completed' }),
    }),
    on(IntakeRefused, {
      apply: ({ data }, { directory }) => directory.remove('intake', data.intake_id),
    }),
    on(FinancingSessionCreated, {
      apply: ({ data, position: seq }, { directory }) => {
        const { financing_session_id: id, tenant_id, environment, employer_id } = data
        directory.put({ kind: 'financing_session', id, tenant_id, environment, employer_id, seq })
      },
    }),
    on(DebitCollectionAccepted, {
      apply: ({ data, position: seq }, { directory }) => {
        const { collection_id: id, tenant_id, environment, employer_id } = data
        directory.put({ kind: 'debit_collection', id, tenant_id, environment, employer_id, seq })
      },
    }),
    on(ProcessorNoticeNotUnderstood, {
      apply: ({ data, position: seq }, { directory }) => {
        const { notice_id: id, tenant_id, environment, employer_id } = data
        const status = 'not_understood'
        directory.put({ kind: 'processor_notice', id, tenant_id, environment, employer_id, status, seq })
      },
    }),
    on(ProcessorNoticeCarriedOut, {
      reads: ({ data }) => row('processor_notice', data.notice_id),
      apply: ({ data }, { directory }) =>
        directory.change(['processor_notice', data.notice_id], { status: 'carried_out' }),
    }),
    on(ProcessorNoticeResolved, {
      reads: ({ data }) => row('processor_notice', data.notice_id),
      apply: ({ data }, { directory }) =>
        directory.change(['processor_notice', data.notice_id], { status: 'resolved' }),
    }),
  ],
})

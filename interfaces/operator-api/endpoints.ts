import { agentCredentialEndpoints } from './access/agent-credentials.ts'
import { apiClientEndpoints } from './access/api-clients.ts'
import { inboundConnectionEndpoints } from './access/inbound-connections.ts'
import { operatorAccessEndpoints } from './access/operators.ts'
import { tenantEndpoints } from './access/tenants.ts'
import { auditEndpoints } from './audit/audit.ts'
import { logTreeEndpoints } from './audit/log-tree.ts'
import { storyEndpoints } from './audit/stories.ts'
import { streamEndpoints } from './audit/streams.ts'
import { subjectAccessEndpoints } from './audit/subject-access.ts'
import { achAccountEndpoints } from './banking/ach-accounts.ts'
import { bankAccountEndpoints } from './banking/bank-accounts.ts'
import { bankConnectionEndpoints } from './banking/bank-connections.ts'
import { bankFileEndpoints } from './banking/bank-files.ts'
import { bankRailEndpoints } from './banking/bank-rail.ts'
import { bankReportEndpoints } from './banking/bank-reports.ts'
import { debitCollectionEndpoints } from './banking/debit-collections.ts'
import { debitEndpoints } from './banking/debits.ts'
import { legacyCollectionEndpoints } from './banking/legacy-collections.ts'
import { moneyEndpoints } from './banking/money.ts'
import { alertEndpoints } from './operations/alerts.ts'
import { clockEndpoints } from './operations/clock.ts'
import { deadLetterEndpoints } from './operations/dead-letters.ts'
import { drainEndpoints } from './operations/drain.ts'
import { erasureEndpoints } from './operations/erasures.ts'
import { faultEndpoints } from './operations/faults.ts'
import { outboxEndpoints } from './operations/outbox.ts'
import { pendingActionEndpoints } from './operations/pending-actions.ts'
import { projectionEndpoints } from './operations/projections.ts'
import { throughputEndpoints } from './operations/throughput.ts'
import { workEndpoints } from './operations/work.ts'
import { carrierEndpoints } from './parties/carriers.ts'
import { employerEndpoints } from './parties/employers.ts'
import { payrollCompanyEndpoints } from './parties/payroll-companies.ts'
import { cardProcessorEndpoints } from './payments/card-processor.ts'
import { checkoutSettingsEndpoints } from './payments/checkout-settings.ts'
import { financingEndpoints } from './payments/financing.ts'
import { financingSessionEndpoints } from './payments/financing-sessions.ts'
import { paymentLinkEndpoints } from './payments/payment-links.ts'
import { paymentSessionEndpoints } from './payments/payment-sessions.ts'
import { processorNoticeEndpoints } from './payments/processor-notices.ts'
import { subscriptionEndpoints } from './payments/subscriptions.ts'
import { payrollFileEndpoints } from './payroll/payroll-files.ts'
import { intakeEndpoints } from './policies/intakes.ts'
import { policyEndpoints } from './policies/policies.ts'
import { searchEndpoints } from './search/search.ts'
import { webhookDeliveryEndpoints } from './webhooks/webhook-deliveries.ts'
import { webhookEventEndpoints } from './webhooks/webhook-events.ts'
import { webhookSubscriptionEndpoints } from './webhooks/webhook-subscriptions.ts'

/** All endpoints of the operator API. */
export const operatorEndpoints = [
  ...searchEndpoints,
  ...tenantEndpoints,
  ...checkoutSettingsEndpoints,
  ...carrierEndpoints,
  ...payrollCompanyEndpoints,
  ...employerEndpoints,
  ...policyEndpoints,
  ...intakeEndpoints,
  ...apiClientEndpoints,
  ...agentCredentialEndpoints,
  ...inboundConnectionEndpoints,
  ...operatorAccessEndpoints,
  ...pendingActionEndpoints,
  ...payrollFileEndpoints,
  ...paymentLinkEndpoints,
  ...paymentSessionEndpoints,
  ...subscriptionEndpoints,
  ...bankAccountEndpoints,
  ...bankConnectionEndpoints,
  ...webhookSubscriptionEndpoints,
  ...webhookDeliveryEndpoints,
  ...webhookEventEndpoints,
  ...clockEndpoints,
  ...drainEndpoints,
  ...projectionEndpoints,
  ...deadLetterEndpoints,
  ...workEndpoints,
  ...throughputEndpoints,
  ...alertEndpoints,
  ...outboxEndpoints,
  ...faultEndpoints,
  ...debitEndpoints,
  ...debitCollectionEndpoints,
  ...bankRailEndpoints,
  ...moneyEndpoints,
  ...bankFileEndpoints,
  ...bankReportEndpoints,
  ...processorNoticeEndpoints,
  ...achAccountEndpoints,
  ...legacyCollectionEndpoints,
  ...cardProcessorEndpoints,
  ...financingEndpoints,
  ...financingSessionEndpoints,
  ...streamEndpoints,
  ...storyEndpoints,
  ...auditEndpoints,
  ...logTreeEndpoints,
  ...erasureEndpoints,
  ...subjectAccessEndpoints,
]

import { achAccountEndpoints } from './ach-accounts.ts'
import { alertEndpoints } from './alerts.ts'
import { apiClientEndpoints } from './api-clients.ts'
import { auditEndpoints } from './audit.ts'
import { bankFileEndpoints } from './bank-files.ts'
import { bankRailEndpoints } from './bank-rail.ts'
import { bankReportEndpoints } from './bank-reports.ts'
import { cardProcessorEndpoints } from './card-processor.ts'
import { carrierEndpoints } from './carriers.ts'
import { checkoutSettingsEndpoints } from './checkout-settings.ts'
import { clockEndpoints } from './clock.ts'
import { debitEndpoints } from './debits.ts'
import { drainEndpoints } from './drain.ts'
import { employerEndpoints } from './employers.ts'
import { erasureEndpoints } from './erasures.ts'
import { faultEndpoints } from './faults.ts'
import { financingEndpoints } from './financing.ts'
import { inboundConnectionEndpoints } from './inbound-connections.ts'
import { legacyCollectionEndpoints } from './legacy-collections.ts'
import { moneyEndpoints } from './money.ts'
import { outboxEndpoints } from './outbox.ts'
import { payrollCompanyEndpoints } from './payroll-companies.ts'
import { policyEndpoints } from './policies.ts'
import { processorNoticeEndpoints } from './processor-notices.ts'
import { projectionEndpoints } from './projections.ts'
import { streamEndpoints } from './streams.ts'
import { tenantEndpoints } from './tenants.ts'
import { webhookSubscriptionEndpoints } from './webhook-subscriptions.ts'
import { workEndpoints } from './work.ts'

/** All endpoints of the operator API. */
export const operatorEndpoints = [
  ...tenantEndpoints,
  ...checkoutSettingsEndpoints,
  ...carrierEndpoints,
  ...payrollCompanyEndpoints,
  ...employerEndpoints,
  ...policyEndpoints,
  ...apiClientEndpoints,
  ...inboundConnectionEndpoints,
  ...webhookSubscriptionEndpoints,
  ...clockEndpoints,
  ...drainEndpoints,
  ...projectionEndpoints,
  ...workEndpoints,
  ...alertEndpoints,
  ...outboxEndpoints,
  ...faultEndpoints,
  ...debitEndpoints,
  ...bankRailEndpoints,
  ...moneyEndpoints,
  ...bankFileEndpoints,
  ...bankReportEndpoints,
  ...processorNoticeEndpoints,
  ...achAccountEndpoints,
  ...legacyCollectionEndpoints,
  ...cardProcessorEndpoints,
  ...financingEndpoints,
  ...streamEndpoints,
  ...auditEndpoints,
  ...erasureEndpoints,
]

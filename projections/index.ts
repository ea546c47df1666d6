import { agentCredentials } from './access/agent-credentials.ts'
import { directory } from './access/directory.ts'
import { bankAccounts } from './banking/accounts/bank-accounts.ts'
import { bankDebits } from './banking/debits/bank-debits.ts'
import { carrierBalances } from './banking/debits/carrier-balances.ts'
import { returnRates } from './banking/debits/return-rates.ts'
import { bankFiles } from './banking/files/bank-files.ts'
import { legacyCollections } from './banking/legacy/legacy-collections.ts'
import { bankConnections, bankTransactions } from './banking/linking/bank-connections.ts'
import { reconciliations } from './banking/reconciliation/reconciliations.ts'
import { keptThings } from './operations/kept-things.ts'
import { operatorAlerts } from './operations/operator-alerts.ts'
import { employeeRegister } from './parties/employee-register.ts'
import { employers } from './parties/employers.ts'
import { paymentLinks } from './payments/links/payment-links.ts'
import { paymentSessions } from './payments/sessions/payment-sessions.ts'
import { subscriptions } from './payments/subscriptions/subscriptions.ts'
import { payrollFiles } from './payroll/payroll-files.ts'
import { policies } from './policies/policies.ts'
import type { Projection } from './runtime/projection.ts'
import { searchTerms } from './search/search-terms.ts'
import { webhookEvents } from './webhooks/webhook-events.ts'

/** Every read model there is. */
export const projections: readonly Projection[] = [
  payrollFiles,
  policies,
  agentCredentials,
  employeeRegister,
  employers,
  operatorAlerts,
  paymentLinks,
  paymentSessions,
  bankDebits,
  bankFiles,
  bankAccounts,
  legacyCollections,
  carrierBalances,
  returnRates,
  reconciliations,
  bankConnections,
  bankTransactions,
  subscriptions,
  webhookEvents,
  directory,
  keptThings,
  searchTerms,
]

import { agentCredentials } from './agent-credentials.ts'
import { bankAccounts } from './bank-accounts.ts'
import { bankConnections, bankTransactions } from './bank-connections.ts'
import { bankDebits } from './bank-debits.ts'
import { bankFiles } from './bank-files.ts'
import { carrierBalances } from './carrier-balances.ts'
import { employeeRegister } from './employee-register.ts'
import { employers } from './employers.ts'
import { legacyCollections } from './legacy-collections.ts'
import { operatorAlerts } from './operator-alerts.ts'
import { paymentLinks } from './payment-links.ts'
import { paymentSessions } from './payment-sessions.ts'
import { payrollFiles } from './payroll-files.ts'
import { policies } from './policies.ts'
import { reconciliations } from './reconciliations.ts'
import { returnRates } from './return-rates.ts'
import type { Projection } from './runtime/projection.ts'
import { subscriptions } from './subscriptions.ts'

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
]

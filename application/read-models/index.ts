import { agentCredentials } from './agent-credentials.ts'
import { achAccounts, bankAccounts, primaryBankAccounts } from './bank-accounts.ts'
import { bankConnections, bankTransactions } from './bank-connections.ts'
import { bankDebits } from './bank-debits.ts'
import { bankFiles, bankReports } from './bank-files.ts'
import { bookedCredits, bookedDebits, carrierBalances } from './carrier-balances.ts'
import { employeeRegister } from './employee-register.ts'
import { employers } from './employers.ts'
import { legacyCollections } from './legacy-collections.ts'
import { operatorAlerts } from './operator-alerts.ts'
import { paymentLinks } from './payment-links.ts'
import { paymentSessions } from './payment-sessions.ts'
import { payrollFiles, payrollRowErrors } from './payroll-files.ts'
import { carriers, policies } from './policies.ts'
import { reconciliations } from './reconciliations.ts'
import { debitDays } from './return-rates.ts'
import { subscriptions } from './subscriptions.ts'
import type { RowOf } from './table.ts'

/** The tables of every read model there is. */
export const readModels = [
  payrollFiles,
  payrollRowErrors,
  policies,
  carriers,
  agentCredentials,
  employeeRegister,
  employers,
  operatorAlerts,
  paymentLinks,
  paymentSessions,
  bankDebits,
  bankFiles,
  bankReports,
  bankAccounts,
  achAccounts,
  primaryBankAccounts,
  legacyCollections,
  carrierBalances,
  bookedDebits,
  bookedCredits,
  debitDays,
  reconciliations,
  bankConnections,
  bankTransactions,
  subscriptions,
] as const

/** Rows by table, as queries see them. */
export type ReadModels = {
  [T in (typeof readModels)[number] as T['name']]: RowOf<T>
}

import { agentCredentials } from './agent-credentials.ts'
import { bankDebits } from './bank-debits.ts'
import { employeeRegister } from './employee-register.ts'
import { employers } from './employers.ts'
import { operatorAlerts } from './operator-alerts.ts'
import { paymentLinks } from './payment-links.ts'
import { paymentSessions } from './payment-sessions.ts'
import { payrollFiles, payrollRowErrors } from './payroll-files.ts'
import { carriers, policies } from './policies.ts'
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
  subscriptions,
] as const

/** Rows by table, as queries see them. */
export type ReadModels = {
  [T in (typeof readModels)[number] as T['name']]: RowOf<T>
}

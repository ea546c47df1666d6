import { agentCredentials } from './agent-credentials.ts'
import { bankDebits } from './bank-debits.ts'
import { employeeRegister } from './employee-register.ts'
import { employers } from './employers.ts'
import { operatorAlerts } from './operator-alerts.ts'
import { paymentLinks } from './payment-links.ts'
import { paymentSessions } from './payment-sessions.ts'
import { payrollFiles } from './payroll-files.ts'
import { policies } from './policies.ts'
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
  subscriptions,
]

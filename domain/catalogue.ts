import { agentCredential } from './access/agent-credential.ts'
import { apiClient } from './access/api-client.ts'
import { inboundConnection } from './access/inbound-connection.ts'
import { operators } from './access/operators.ts'
import { tenant } from './access/tenant.ts'
import { achAccount } from './banking/accounts/ach-account.ts'
import { bankAccount } from './banking/accounts/bank-account.ts'
import { disabledNumbers } from './banking/accounts/disabled-numbers.ts'
import { microDeposits, microDepositsOfBatch } from './banking/accounts/micro-deposits.ts'
import { payerCorrection } from './banking/accounts/payer-correction.ts'
import { primaryAccount } from './banking/accounts/primary-account.ts'
import { verificationStarts } from './banking/accounts/verification-starts.ts'
import { bankCredit } from './banking/credits/bank-credit.ts'
import { bankDebit } from './banking/debits/bank-debit.ts'
import { debitCollection } from './banking/debits/debit-collection.ts'
import { debitKey } from './banking/debits/debit-key.ts'
import { returnRate } from './banking/debits/return-rate.ts'
import { bankFile, bankFileEntries, bankFileNumbers } from './banking/files/bank-file.ts'
import { bankReport } from './banking/files/bank-report.ts'
import { legacyCollection } from './banking/legacy/legacy-collection.ts'
import { legacyImport } from './banking/legacy/legacy-import.ts'
import { bankConnection } from './banking/linking/bank-connection.ts'
import { bankTransactions } from './banking/linking/bank-transactions.ts'
import { reconciliation } from './banking/reconciliation/reconciliation.ts'
import type { Aggregate } from './kernel/decider.ts'
import { idempotencyKey } from './kernel/idempotency-key.ts'
import { reservation } from './kernel/reservation.ts'
import { dataSubject } from './operations/data-subject.ts'
import { installation } from './operations/installation.ts'
import { operatorAction } from './operations/operator-action.ts'
import { operatorAlert } from './operations/operator-alert.ts'
import { pendingActions } from './operations/pending-actions.ts'
import { processClock } from './operations/process-clock.ts'
import { raisedAlert } from './operations/raised-alert.ts'
import { readModelRebuild } from './operations/read-model-rebuild.ts'
import { virtualClock } from './operations/virtual-clock.ts'
import { carrier } from './parties/carrier.ts'
import { employeeSync } from './parties/employee-sync.ts'
import { employer } from './parties/employer.ts'
import { payrollCompany } from './parties/payroll-company.ts'
import { financingSession } from './payments/financing/financing-session.ts'
import { financingSettings } from './payments/financing/financing-settings.ts'
import { paymentLink } from './payments/links/payment-link.ts'
import { checkoutSettings } from './payments/pages/checkout-settings.ts'
import { logo } from './payments/pages/logo.ts'
import { processorCustomer } from './payments/processor/processor-customer.ts'
import { processorNotice } from './payments/processor/processor-notice.ts'
import { processorNotices } from './payments/processor/processor-notices.ts'
import { paymentSession } from './payments/sessions/payment-session.ts'
import { subscription } from './payments/subscriptions/subscription.ts'
import { payrollFile } from './payroll/payroll-file.ts'
import { intake } from './policies/intake.ts'
import { policy } from './policies/policy.ts'
import { webhookEvent } from './webhooks/webhook-event.ts'
import { webhookSubscriptions } from './webhooks/webhook-subscriptions.ts'

/** Every aggregate there is, by category: what the event registry and "state as of" are built from. */
export const aggregates: readonly Aggregate[] = [
  tenant,
  carrier,
  payrollCompany,
  employer,
  employeeSync,
  policy,
  intake,
  agentCredential,
  apiClient,
  inboundConnection,
  payrollFile,
  processorCustomer,
  processorNotices,
  processorNotice,
  checkoutSettings,
  logo,
  paymentLink,
  paymentSession,
  bankDebit,
  debitKey,
  debitCollection,
  bankCredit,
  returnRate,
  reconciliation,
  bankFile,
  bankFileEntries,
  bankFileNumbers,
  bankReport,
  microDeposits,
  microDepositsOfBatch,
  payerCorrection,
  legacyCollection,
  legacyImport,
  bankConnection,
  bankTransactions,
  bankAccount,
  achAccount,
  verificationStarts,
  disabledNumbers,
  primaryAccount,
  financingSettings,
  financingSession,
  webhookSubscriptions,
  webhookEvent,
  subscription,
  reservation,
  idempotencyKey,
  installation,
  virtualClock,
  operatorAction,
  operators,
  pendingActions,
  operatorAlert,
  raisedAlert,
  readModelRebuild,
  processClock,
  dataSubject,
]

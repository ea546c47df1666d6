import { agentCredential } from './access/agent-credential.ts'
import { apiClient } from './access/api-client.ts'
import { inboundConnection } from './access/inbound-connection.ts'
import { achAccount } from './banking/ach-account.ts'
import { bankAccount } from './banking/bank-account.ts'
import { bankConnection } from './banking/bank-connection.ts'
import { bankCredit } from './banking/bank-credit.ts'
import { bankDebit } from './banking/bank-debit.ts'
import { bankFile, bankFileEntries, bankFileNumbers } from './banking/bank-file.ts'
import { bankReport } from './banking/bank-report.ts'
import { bankTransactions } from './banking/bank-transactions.ts'
import { debitCollection } from './banking/debit-collection.ts'
import { debitKey } from './banking/debit-key.ts'
import { disabledNumbers } from './banking/disabled-numbers.ts'
import { legacyCollection } from './banking/legacy-collection.ts'
import { legacyImport } from './banking/legacy-import.ts'
import { microDeposits, microDepositsOfBatch } from './banking/micro-deposits.ts'
import { payerCorrection } from './banking/payer-correction.ts'
import { primaryAccount } from './banking/primary-account.ts'
import { reconciliation } from './banking/reconciliation.ts'
import { returnRate } from './banking/return-rate.ts'
import { verificationStarts } from './banking/verification-starts.ts'
import { financingSession } from './financing/financing-session.ts'
import { financingSettings } from './financing/financing-settings.ts'
import type { Aggregate } from './kernel/decider.ts'
import { dataSubject } from './operations/data-subject.ts'
import { installation } from './operations/installation.ts'
import { operatorAction } from './operations/operator-action.ts'
import { operatorAlert } from './operations/operator-alert.ts'
import { processClock } from './operations/process-clock.ts'
import { readModelRebuild } from './operations/read-model-rebuild.ts'
import { virtualClock } from './operations/virtual-clock.ts'
import { carrier } from './parties/carrier.ts'
import { employeeSync } from './parties/employee-sync.ts'
import { employer } from './parties/employer.ts'
import { payrollCompany } from './parties/payroll-company.ts'
import { tenant } from './parties/tenant.ts'
import { checkoutSettings } from './payments/checkout-settings.ts'
import { logo } from './payments/logo.ts'
import { paymentLink } from './payments/payment-link.ts'
import { paymentSession } from './payments/payment-session.ts'
import { processorCustomer } from './payments/processor-customer.ts'
import { processorNotice } from './payments/processor-notice.ts'
import { processorNotices } from './payments/processor-notices.ts'
import { subscription } from './payments/subscription.ts'
import { payrollFile } from './payroll/payroll-file.ts'
import { intake } from './policies/intake.ts'
import { policy } from './policies/policy.ts'
import { idempotencyKey } from './uniqueness/idempotency-key.ts'
import { reservation } from './uniqueness/reservation.ts'
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
  operatorAlert,
  readModelRebuild,
  processClock,
  dataSubject,
]

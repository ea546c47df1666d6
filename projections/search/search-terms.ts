import type { RecordedEvent } from '../../application/commands/event-registry.ts'
import { derivedId } from '../../application/commands/event-registry.ts'
import { searchNames, searchTerms as termsTable } from '../../application/search/search-tables.ts'
import { beginningsOf, MAX_SEARCH } from '../../application/search/terms.ts'
import { AgentCredentialIssued } from '../../domain/access/agent-credential.ts'
import { ApiClientIssued } from '../../domain/access/api-client.ts'
import { TenantRegistered } from '../../domain/access/tenant.ts'
import { BankCreditReceived } from '../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import { DebitKeyClaimed } from '../../domain/banking/debits/debit-key.ts'
import { BankFileRecorded } from '../../domain/banking/files/bank-file-events.ts'
import { BankReportReceived } from '../../domain/banking/files/bank-report.ts'
import {
  BankConnectionAccountsFound,
  BankConnectionLinked,
} from '../../domain/banking/linking/bank-connection.ts'
import type { DomainEvent, EventOf, EventType } from '../../domain/kernel/event-type.ts'
import { IdempotencyKeyAnswered, IdempotencyKeyClaimed } from '../../domain/kernel/idempotency-key.ts'
import { isSealed } from '../../domain/kernel/sealed.ts'
import { CarrierRegistered } from '../../domain/parties/carrier.ts'
import { EmployeeSyncReceived } from '../../domain/parties/employee-sync.ts'
import { EmployerDetailsChanged, EmployerRegistered } from '../../domain/parties/employer.ts'
import { PayrollCompanyRegistered } from '../../domain/parties/payroll-company.ts'
import { FinancingSessionCreated } from '../../domain/payments/financing/financing-session-events.ts'
import {
  PaymentLinkCreated,
  PaymentLinkPaid,
  PaymentLinkPaidAgain,
  PaymentLinkRefunded,
  PaymentLinkRefundRequested,
} from '../../domain/payments/links/payment-link-events.ts'
import { ProcessorCustomerCreated } from '../../domain/payments/processor/processor-customer.ts'
import { ProcessorNoticeNotUnderstood } from '../../domain/payments/processor/processor-notice.ts'
import {
  PaymentSessionCheckoutBegun,
  PaymentSessionCreated,
  PaymentSessionPaid,
  PaymentSessionPaidAgain,
} from '../../domain/payments/sessions/payment-session-events.ts'
import {
  SubscriptionChargePaid,
  SubscriptionChargePaidAgain,
  SubscriptionStarted,
} from '../../domain/payments/subscriptions/subscription-events.ts'
import { PayrollFileReceived } from '../../domain/payroll/payroll-file-events.ts'
import { PolicyIssued } from '../../domain/policies/policy.ts'
import { type FoldedTable, projection } from '../runtime/projection.ts'

type Term = string | null | undefined

interface Tables {
  readonly search_terms: FoldedTable<typeof termsTable>
  readonly search_names: FoldedTable<typeof searchNames>
}

/** What an event tells of a thing: terms and names that it is found by. */
interface Found {
  readonly kind: string
  readonly id: string | null | undefined
  readonly terms?: readonly Term[]
  readonly names?: readonly Term[]
}

/** What is found by fingerprints in the event's metadata, too. */
function put({ metadata }: RecordedEvent, tables: Tables, { kind, id, terms = [], names = [] }: Found): void {
  if (!id) return
  const fingerprints = (metadata.found_by ?? []).map((one) => `#${one}`)
  for (const term of [...terms, ...fingerprints]) {
    if (term && term.length <= MAX_SEARCH) tables.search_terms.put({ term, kind, id })
  }
  for (const name of names.flatMap((one) => (one && !isSealed(one) ? beginningsOf(one) : []))) {
    tables.search_names.put({ kind, name, id })
  }
}

/**
 * What a search finds things by beside their ids. Rows are only added: whether a thing still has a name or an address is
 * asked of the thing when it is found.
 */
export const searchTerms = projection({
  name: 'search-terms',
  version: 1,
  tables: [termsTable, searchNames],
  handlers(on) {
    const finds = <T extends EventType>(
      type: T,
      found: (data: Extract<EventOf<T>, DomainEvent>['data']) => Found,
    ) =>
      on(type, {
        apply: (event, tables) => put(event, tables, found(event.data)),
      })
    return [
      finds(TenantRegistered, ({ tenant_id: id, name }) => ({ kind: 'tenant', id, names: [name] })),
      finds(CarrierRegistered, ({ carrier_id: id, name }) => ({ kind: 'carrier', id, names: [name] })),
      finds(PayrollCompanyRegistered, ({ payroll_company_id: id, name }) => ({
        kind: 'payroll_company',
        id,
        names: [name],
      })),
      finds(EmployerRegistered, ({ employer_id: id, legal_name }) => ({
        kind: 'employer',
        id,
        names: [legal_name],
      })),
      finds(EmployerDetailsChanged, ({ employer_id: id, legal_name }) => ({
        kind: 'employer',
        id,
        names: [legal_name],
      })),
      finds(PolicyIssued, ({ policy_id: id, policy_number }) => ({
        kind: 'policy',
        id,
        names: [policy_number],
      })),
      finds(ApiClientIssued, ({ client_id: id, name }) => ({ kind: 'api_client', id, names: [name] })),
      finds(AgentCredentialIssued, ({ credential_id: id, api_key_prefix }) => ({
        kind: 'agent_credential',
        id,
        terms: [api_key_prefix],
      })),
      finds(PayrollFileReceived, ({ file_id: id, file_name, source }) => ({
        kind: 'payroll_file',
        id,
        terms: [source.submission_id],
        names: [file_name],
      })),
      finds(EmployeeSyncReceived, ({ file_id: id, sync_id }) => ({
        kind: 'payroll_file',
        id,
        terms: [sync_id],
      })),
      finds(PaymentLinkCreated, ({ payment_link_id: id, processor_payment_link_id, invoice_id }) => ({
        kind: 'payment_link',
        id,
        terms: [processor_payment_link_id, invoice_id],
      })),
      finds(PaymentLinkPaid, ({ payment_link_id: id, payment_id, processor_payment_id }) => ({
        kind: 'payment_link',
        id,
        terms: [payment_id, processor_payment_id],
      })),
      finds(PaymentLinkPaidAgain, ({ payment_link_id: id, processor_payment_id }) => ({
        kind: 'payment_link',
        id,
        terms: [processor_payment_id],
      })),
      finds(PaymentLinkRefundRequested, ({ payment_link_id: id, refund_id }) => ({
        kind: 'payment_link',
        id,
        terms: [refund_id],
      })),
      finds(PaymentLinkRefunded, ({ payment_link_id: id, processor_refund_id }) => ({
        kind: 'payment_link',
        id,
        terms: [processor_refund_id],
      })),
      finds(PaymentSessionCreated, ({ payment_session_id: id }) => ({ kind: 'payment_session', id })),
      finds(
        PaymentSessionCheckoutBegun,
        ({ payment_session_id: id, checkout_id, processor_checkout_id }) => ({
          kind: 'payment_session',
          id,
          terms: [checkout_id, processor_checkout_id],
        }),
      ),
      finds(PaymentSessionPaid, ({ payment_session_id: id, payment_id, processor_payment_id }) => ({
        kind: 'payment_session',
        id,
        terms: [payment_id, processor_payment_id],
      })),
      finds(PaymentSessionPaidAgain, ({ payment_session_id: id, payment_id, processor_payment_id }) => ({
        kind: 'payment_session',
        id,
        terms: [payment_id, processor_payment_id],
      })),
      finds(FinancingSessionCreated, ({ financing_session_id: id }) => ({ kind: 'financing_session', id })),
      finds(SubscriptionStarted, ({ subscription_id: id, processor_subscription_id }) => ({
        kind: 'subscription',
        id,
        terms: [processor_subscription_id],
      })),
      finds(SubscriptionChargePaid, ({ subscription_id: id, processor_payment_id }) => ({
        kind: 'subscription',
        id,
        terms: [processor_payment_id],
      })),
      finds(SubscriptionChargePaidAgain, ({ subscription_id: id, processor_payment_id }) => ({
        kind: 'subscription',
        id,
        terms: [processor_payment_id],
      })),
      finds(ProcessorCustomerCreated, ({ employer_id: id, customer_id }) => ({
        kind: 'employer',
        id,
        terms: [customer_id],
      })),
      finds(ProcessorNoticeNotUnderstood, ({ notice_id: id, processor_notice_id }) => ({
        kind: 'processor_notice',
        id,
        terms: [processor_notice_id],
      })),
      finds(BankConnectionLinked, ({ connection_id: id, item_id }) => ({
        kind: 'bank_connection',
        id,
        terms: [item_id],
      })),
      finds(BankConnectionAccountsFound, ({ connection_id: id, accounts }) => ({
        kind: 'bank_connection',
        id,
        terms: accounts.map(({ bankconnect_account_id }) => bankconnect_account_id),
      })),
      finds(BankCreditReceived, ({ credit_id: id, bank_transaction_id }) => ({
        kind: 'bank_credit',
        id,
        terms: [bank_transaction_id],
      })),
      finds(BankFileRecorded, ({ file_id: id, name }) => ({ kind: 'bank_file', id, names: [name] })),
      finds(BankReportReceived, ({ report_id: id, name }) => ({ kind: 'bank_report', id, names: [name] })),
      // the key alone says which debit it stands for
      finds(DebitKeyClaimed, ({ key }) => ({ kind: 'debit', id: derivedId(key, bankDebit.category) })),
      finds(IdempotencyKeyClaimed, ({ created_id: id }) => ({ kind: 'any', id })),
      finds(IdempotencyKeyAnswered, ({ created_id: id }) => ({ kind: 'any', id })),
    ]
  },
})

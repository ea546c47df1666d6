import { derivedId } from '../../application/commands/event-registry.ts'
import { searchNames, searchTerms as termsTable } from '../../application/search/search-tables.ts'
import { beginningsOf, MAX_SEARCH } from '../../application/search/terms.ts'
import { AgentCredentialIssued } from '../../domain/access/agent-credential.ts'
import { ApiClientIssued } from '../../domain/access/api-client.ts'
import { TenantRegistered } from '../../domain/access/tenant.ts'
import { AchAccountCreated } from '../../domain/banking/accounts/ach-account-events.ts'
import { BankAccountCreated } from '../../domain/banking/accounts/bank-account.ts'
import { BankCreditReceived } from '../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import { DebitKeyClaimed } from '../../domain/banking/debits/debit-key.ts'
import { BankFileRecorded } from '../../domain/banking/files/bank-file-events.ts'
import { BankReportReceived } from '../../domain/banking/files/bank-report.ts'
import { LegacyCollectionRecorded } from '../../domain/banking/legacy/legacy-collection.ts'
import {
  BankConnectionAccountsFound,
  BankConnectionLinked,
} from '../../domain/banking/linking/bank-connection.ts'
import { ReconciliationMade } from '../../domain/banking/reconciliation/reconciliation.ts'
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

function put(tables: Tables, { kind, id, terms = [], names = [] }: Found): void {
  if (!id) return
  for (const term of terms) {
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
  readersWait: true,
  handlers(on) {
    const finds = <T extends EventType>(
      type: T,
      found: (data: Extract<EventOf<T>, DomainEvent>['data']) => Found,
    ) =>
      on(type, {
        apply: ({ data }, tables) => put(tables, found(data)),
      })
    /** The same of what a request created or changed: by the fingerprints in the event's metadata, too. */
    const made = <T extends EventType>(
      type: T,
      found: (data: Extract<EventOf<T>, DomainEvent>['data']) => Found,
    ) =>
      on(type, {
        apply({ data, metadata }, tables) {
          const { terms = [], ...rest } = found(data)
          const fingerprints = (metadata.found_by ?? []).map((one) => `#${one}`)
          put(tables, { ...rest, terms: [...terms, ...fingerprints] })
        },
      })
    return [
      made(TenantRegistered, ({ tenant_id: id, name }) => ({ kind: 'tenant', id, names: [name] })),
      made(CarrierRegistered, ({ carrier_id: id, name }) => ({ kind: 'carrier', id, names: [name] })),
      made(PayrollCompanyRegistered, ({ payroll_company_id: id, name }) => ({
        kind: 'payroll_company',
        id,
        names: [name],
      })),
      made(EmployerRegistered, ({ employer_id: id, legal_name }) => ({
        kind: 'employer',
        id,
        names: [legal_name],
      })),
      made(EmployerDetailsChanged, ({ employer_id: id, legal_name }) => ({
        kind: 'employer',
        id,
        names: [legal_name],
      })),
      made(PolicyIssued, ({ policy_id: id, policy_number }) => ({
        kind: 'policy',
        id,
        names: [policy_number],
      })),
      made(ApiClientIssued, ({ client_id: id, name }) => ({ kind: 'api_client', id, names: [name] })),
      made(AgentCredentialIssued, ({ credential_id: id, api_key_prefix }) => ({
        kind: 'agent_credential',
        id,
        terms: [api_key_prefix],
      })),
      made(PayrollFileReceived, ({ file_id: id, file_name, source }) => ({
        kind: 'payroll_file',
        id,
        terms: [source.submission_id],
        names: [file_name],
      })),
      made(EmployeeSyncReceived, ({ file_id: id, sync_id }) => ({
        kind: 'payroll_file',
        id,
        terms: [sync_id],
      })),
      made(PaymentLinkCreated, ({ payment_link_id: id, processor_payment_link_id, invoice_id }) => ({
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
      made(PaymentLinkRefundRequested, ({ payment_link_id: id, refund_id }) => ({
        kind: 'payment_link',
        id,
        terms: [refund_id],
      })),
      finds(PaymentLinkRefunded, ({ payment_link_id: id, processor_refund_id }) => ({
        kind: 'payment_link',
        id,
        terms: [processor_refund_id],
      })),
      made(PaymentSessionCreated, ({ payment_session_id: id }) => ({ kind: 'payment_session', id })),
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
      made(FinancingSessionCreated, ({ financing_session_id: id }) => ({ kind: 'financing_session', id })),
      made(SubscriptionStarted, ({ subscription_id: id, processor_subscription_id }) => ({
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
      made(BankConnectionLinked, ({ connection_id: id, item_id }) => ({
        kind: 'bank_connection',
        id,
        terms: [item_id],
      })),
      finds(BankConnectionAccountsFound, ({ connection_id: id, accounts }) => ({
        kind: 'bank_connection',
        id,
        terms: accounts.map(({ bankconnect_account_id }) => bankconnect_account_id),
      })),
      made(BankCreditReceived, ({ credit_id: id, bank_transaction_id }) => ({
        kind: 'bank_credit',
        id,
        terms: [bank_transaction_id],
      })),
      finds(BankFileRecorded, ({ file_id: id, name }) => ({ kind: 'bank_file', id, names: [name] })),
      finds(BankReportReceived, ({ report_id: id, name }) => ({ kind: 'bank_report', id, names: [name] })),
      // the key alone says which debit it stands for
      made(DebitKeyClaimed, ({ key }) => ({ kind: 'debit', id: derivedId(key, bankDebit.category) })),
      made(BankAccountCreated, ({ bank_account_id: id }) => ({ kind: 'bank_account', id })),
      made(AchAccountCreated, ({ ach_account_id: id }) => ({ kind: 'ach_account', id })),
      made(LegacyCollectionRecorded, ({ transaction_id: id }) => ({ kind: 'legacy_collection', id })),
      made(ReconciliationMade, ({ reconciliation_id: id }) => ({ kind: 'reconciliation', id })),
      made(IdempotencyKeyClaimed, ({ created_id: id }) => ({ kind: 'any', id })),
      made(IdempotencyKeyAnswered, ({ created_id: id }) => ({ kind: 'any', id })),
    ]
  },
})

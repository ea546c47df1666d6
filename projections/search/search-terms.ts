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

interface Tables {
  readonly search_terms: FoldedTable<typeof termsTable>
  readonly search_names: FoldedTable<typeof searchNames>
}

type DataOf<T extends EventType> = Extract<EventOf<T>, DomainEvent>['data']
/** Values of an event's data: fields of it, or worked out. */
type Values<Data> = readonly (keyof Data & string)[] | ((data: Data) => readonly unknown[])

function valuesOf<Data>(data: Data, values: Values<Data>): string[] {
  const found: readonly unknown[] =
    typeof values === 'function' ? values(data) : values.map((field) => data[field])
  return found.filter((value) => typeof value === 'string' && value !== '') as string[]
}

interface Found {
  readonly kind: string
  readonly id: string
  readonly terms: readonly string[]
  readonly names: readonly string[]
}

function put(tables: Tables, { kind, id, terms, names }: Found): void {
  for (const term of terms) {
    if (term.length <= MAX_SEARCH) tables.search_terms.put({ term, kind, id })
  }
  for (const name of names.flatMap((one) => (isSealed(one) ? [] : beginningsOf(one)))) {
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
    /** What an event tells of a thing: its id, and terms and names that it is found by. */
    const foundBy =
      (isMade: boolean) =>
      <T extends EventType>(
        type: T,
        kind: string,
        idIn: (keyof DataOf<T> & string) | ((data: DataOf<T>) => string),
        by: { readonly terms?: Values<DataOf<T>>; readonly names?: Values<DataOf<T>> } = {},
      ) =>
        on(type, {
          apply({ data, metadata }, tables) {
            const id = (typeof idIn === 'function' ? idIn(data) : data[idIn]) as string | null | undefined
            if (!id) return
            const terms = valuesOf(data, by.terms ?? [])
            if (isMade) for (const one of metadata.found_by ?? []) terms.push(`#${one}`)
            put(tables, { kind, id, terms, names: valuesOf(data, by.names ?? []) })
          },
        })
    const finds = foundBy(false)
    /** The same of what a request created or changed: by the fingerprints in the event's metadata, too. */
    const made = foundBy(true)
    return [
      made(TenantRegistered, 'tenant', 'tenant_id', { names: ['name'] }),
      made(CarrierRegistered, 'carrier', 'carrier_id', { names: ['name'] }),
      made(PayrollCompanyRegistered, 'payroll_company', 'payroll_company_id', { names: ['name'] }),
      made(EmployerRegistered, 'employer', 'employer_id', { names: ['legal_name'] }),
      made(EmployerDetailsChanged, 'employer', 'employer_id', { names: ['legal_name'] }),
      made(PolicyIssued, 'policy', 'policy_id', { names: ['policy_number'] }),
      made(ApiClientIssued, 'api_client', 'client_id', { names: ['name'] }),
      made(AgentCredentialIssued, 'agent_credential', 'credential_id', { terms: ['api_key_prefix'] }),
      made(PayrollFileReceived, 'payroll_file', 'file_id', {
        terms: ({ source }) => [source.submission_id],
        names: ['file_name'],
      }),
      made(EmployeeSyncReceived, 'payroll_file', 'file_id', { terms: ['sync_id'] }),
      made(PaymentLinkCreated, 'payment_link', 'payment_link_id', {
        terms: ['processor_payment_link_id', 'invoice_id'],
      }),
      finds(PaymentLinkPaid, 'payment_link', 'payment_link_id', {
        terms: ['payment_id', 'processor_payment_id'],
      }),
      finds(PaymentLinkPaidAgain, 'payment_link', 'payment_link_id', { terms: ['processor_payment_id'] }),
      made(PaymentLinkRefundRequested, 'payment_link', 'payment_link_id', { terms: ['refund_id'] }),
      finds(PaymentLinkRefunded, 'payment_link', 'payment_link_id', { terms: ['processor_refund_id'] }),
      made(PaymentSessionCreated, 'payment_session', 'payment_session_id'),
      finds(PaymentSessionCheckoutBegun, 'payment_session', 'payment_session_id', {
        terms: ['checkout_id', 'processor_checkout_id'],
      }),
      finds(PaymentSessionPaid, 'payment_session', 'payment_session_id', {
        terms: ['payment_id', 'processor_payment_id'],
      }),
      finds(PaymentSessionPaidAgain, 'payment_session', 'payment_session_id', {
        terms: ['payment_id', 'processor_payment_id'],
      }),
      made(FinancingSessionCreated, 'financing_session', 'financing_session_id'),
      made(SubscriptionStarted, 'subscription', 'subscription_id', { terms: ['processor_subscription_id'] }),
      finds(SubscriptionChargePaid, 'subscription', 'subscription_id', { terms: ['processor_payment_id'] }),
      finds(SubscriptionChargePaidAgain, 'subscription', 'subscription_id', {
        terms: ['processor_payment_id'],
      }),
      finds(ProcessorCustomerCreated, 'employer', 'employer_id', { terms: ['customer_id'] }),
      finds(ProcessorNoticeNotUnderstood, 'processor_notice', 'notice_id', {
        terms: ['processor_notice_id'],
      }),
      made(BankConnectionLinked, 'bank_connection', 'connection_id', { terms: ['item_id'] }),
      finds(BankConnectionAccountsFound, 'bank_connection', 'connection_id', {
        terms: ({ accounts }) => accounts.map(({ bankconnect_account_id }) => bankconnect_account_id),
      }),
      made(BankCreditReceived, 'bank_credit', 'credit_id', { terms: ['bank_transaction_id'] }),
      finds(BankFileRecorded, 'bank_file', 'file_id', { names: ['name'] }),
      finds(BankReportReceived, 'bank_report', 'report_id', { names: ['name'] }),
      // the key alone says which debit it stands for
      made(DebitKeyClaimed, 'debit', ({ key }) => derivedId(key, bankDebit.category)),
      made(BankAccountCreated, 'bank_account', 'bank_account_id'),
      made(AchAccountCreated, 'ach_account', 'ach_account_id'),
      made(LegacyCollectionRecorded, 'legacy_collection', 'transaction_id'),
      made(ReconciliationMade, 'reconciliation', 'reconciliation_id'),
      made(IdempotencyKeyClaimed, 'any', 'created_id'),
      made(IdempotencyKeyAnswered, 'any', 'created_id'),
    ]
  },
})

import type { BankDebitCreated } from '../../domain/banking/debits/bank-debit-events.ts'

type Created = ReturnType<typeof BankDebitCreated.of>['data']

/** What the creation of a debit says: of a call, with nothing that it could leave out, and one id for all, unless told. */
export function createdDebit(id: string, at: string, changes: Partial<Created> = {}): Created {
  return {
    leg_id: id,
    tenant_id: id,
    environment: 'live',
    employer_id: id,
    carrier_id: id,
    policy_id: id,
    source: 'api',
    payment_session_id: null,
    installment_number: null,
    amount_cents: 10_500,
    payment_purpose: 'paygo',
    description: null,
    settlement_type: 'direct',
    account: { account_ref: 'x', fingerprint: id, account_last4: '6789', account_type: 'checking' },
    collection_id: null,
    file_id: null,
    check_date: null,
    period: null,
    bank_account_id: null,
    effective_date: null,
    metadata: {},
    ingested_at: at,
    cancellation_deadline: null,
    created_at: at,
    ...changes,
  }
}

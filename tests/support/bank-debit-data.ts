import type { BankDebitData } from '../../domain/banking/debits/bank-debit-events.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { newId } from './payroll.ts'

type Created = BankDebitData<'BankDebitCreated'>

/** What a new debit of five dollars, asked for by a partner, is recorded with. @param at when, epoch milliseconds. */
export function debitData(at: number, of: Partial<Created> = {}): Created {
  const leg_id = of.leg_id ?? newId()
  return {
    leg_id,
    tenant_id: newId(),
    environment: 'live',
    employer_id: newId(),
    carrier_id: newId(),
    policy_id: newId(),
    source: 'api',
    payment_session_id: null,
    installment_number: null,
    amount_cents: 500,
    payment_purpose: 'paygo',
    description: null,
    bank_account_id: newId(),
    settlement_type: null,
    account: { account_ref: 'x', fingerprint: leg_id, account_last4: '6789', account_type: 'checking' },
    collection_id: null,
    file_id: null,
    check_date: null,
    period: null,
    metadata: {},
    effective_date: null,
    cancellation_deadline: null,
    ingested_at: isoTime(at),
    created_at: isoTime(at),
    ...of,
  }
}

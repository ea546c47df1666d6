/** What a payment is for, in the words that partners send and are told. */
export const PAYMENT_CONTEXTS = [
  'down_payment',
  'installment',
  'late_payment',
  'extra_payment',
  'paygo',
  'overdue_payment',
  'premium_due',
  'one_time_payment',
  'full_payment',
  'deposit',
  'setup_fee',
  'minimum_payment',
  'additional_payment',
  'service_fee',
  'extra_fee',
  'extra_carrier_fee',
  'bank_fee',
  'audit_program_fee',
  'program_fee',
  'remittance',
  'late_registration_fee',
  'late_initial_reporting_fee',
  'late_payroll_reporting',
  'late_quarterly_941s',
  'late_state_unemployment',
  'late_coi_reporting',
  'payroll_billing_fee',
  'manual_reporting_fee',
] as const
export type PaymentContext = (typeof PAYMENT_CONTEXTS)[number]

/** Words that are not written like ordinary ones. */
const AS_WRITTEN: Readonly<Record<string, string>> = { '941s': '941s', coi: 'COI', paygo: 'Pay-as-you-go' }

/** What a payment is for, as the payer reads it: `Full payment`. */
export function describeContext(context: PaymentContext): string {
  const text = context
    .split('_')
    .map((word) => AS_WRITTEN[word] ?? word)
    .join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

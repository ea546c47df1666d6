import type { BankDebitData } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { WebhookPayload } from '../../../domain/webhooks/event-types.ts'
import type { NewWebhookEvent } from '../../webhooks/raise.ts'

/** What partners hear of bank debits. */

/** The service has created a debit by itself, and can still cancel it. */
export function debitCreatedPayload(debit: BankDebit): NewWebhookEvent<'payment.debit_minted'> {
  return {
    of: debit,
    type: 'payment.debit_minted',
    payload: { ...debitOf(debit), cancellation_deadline: debit.cancellation_deadline! },
  }
}

/** A debit that partners had heard of ended before any money moved. */
export function cancelledPayload(
  debit: BankDebit,
  cancelled_at: string,
): NewWebhookEvent<'payment.debit_cancelled'> {
  return {
    of: debit,
    type: 'payment.debit_cancelled',
    payload: { ...debitOf(debit), cancelled_at },
  }
}

/** The money was found in the account that receives it. */
export function clearedPayload(
  debit: BankDebit,
  {
    bank_date,
    confidence,
    matcher_version,
  }: Pick<BankDebitData<'BankDebitMatched'>, 'bank_date' | 'confidence' | 'matcher_version'>,
): NewWebhookEvent<'payment.debit_cleared'> {
  return {
    of: debit,
    type: 'payment.debit_cleared',
    payload: {
      ...debitOf(debit),
      payment_session_id: debit.payment_session_id!,
      settlement_source: 'bank' as const,
      bank_date,
      matched_cents: debit.amount_cents,
      confidence,
      matcher_version,
    },
  }
}

/** The processor reports the debit settled. Only the date of the time carries meaning: it stands at noon. */
export function settledPayload(
  debit: BankDebit,
  { settled_on, processor_status }: { readonly settled_on: string; readonly processor_status: string | null },
): NewWebhookEvent<'payment.debit_settled'> {
  return {
    of: debit,
    type: 'payment.debit_settled',
    payload: {
      ...debitOf(debit),
      payment_session_id: debit.payment_session_id!,
      settlement_source: 'processor' as const,
      settled_at: `${settled_on}T12:00:00.000Z`,
      ...(processor_status === null ? {} : { processor_status }),
    },
  }
}

/** The money went back. */
export function returnedPayload(
  debit: BankDebit,
  { return_code, at }: Pick<BankDebitData<'BankDebitReturned'>, 'return_code' | 'at'>,
): NewWebhookEvent<'payment.failed'> {
  const failure_message = `The bank returned the debit (${return_code})`
  return failedPayload(debit, { return_code, failed_at: at, failure_message })
}

/** The money did not move. */
export function notDebitedPayload(
  debit: BankDebit,
  { note, at }: Pick<BankDebitData<'BankDebitFailed'>, 'note' | 'at'>,
): NewWebhookEvent<'payment.failed'> {
  return failedPayload(debit, { failed_at: at, failure_message: `Nothing was debited. ${note}` })
}

function failedPayload(
  debit: BankDebit,
  why: Pick<WebhookPayload<'payment.failed'>, 'return_code' | 'failed_at' | 'failure_message'>,
): NewWebhookEvent<'payment.failed'> {
  const { description: _description, ...charge } = debitOf(debit)
  return { of: debit, type: 'payment.failed', payload: { ...charge, ...why } }
}

function debitOf(debit: BankDebit) {
  const { payment_session_id, leg_id, amount_cents, employer_id, policy_id, carrier_id, description } = debit
  return {
    ...(payment_session_id === null ? {} : { payment_session_id }),
    leg_id,
    amount_cents,
    currency: 'usd' as const,
    employer_id,
    policy_id,
    carrier_id,
    ...(description === null ? {} : { description }),
  }
}

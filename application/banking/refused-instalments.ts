import { disabledNote } from '../../domain/banking/ach-account.ts'
import type { BankDebit } from '../../domain/banking/bank-debit-state.ts'
import { paymentSession } from '../../domain/payments/payment-session.ts'
import type { Application } from '../application.ts'

/**
 * Why an instalment is not debited any more, for its history: a debit of its plan came back by which the account is
 * disabled. Null where it is debited.
 */
export async function refusedInstalment(
  { commands }: Pick<Application, 'commands'>,
  { source, payment_session_id }: Pick<BankDebit, 'source' | 'payment_session_id'>,
): Promise<string | null> {
  if (source !== 'instalment') return null
  const { state } = await commands.load(paymentSession, payment_session_id!)
  return state === null || state.disabled_by === null
    ? null
    : disabledNote({ return_code: state.disabled_by })
}

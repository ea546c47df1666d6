import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import {
  isAwaited,
  notPayable,
  type PaymentSession,
  sessionStatusAt,
} from '../../domain/payments/payment-session.ts'
import { PaymentSessionDebitArranged } from '../../domain/payments/payment-session-events.ts'
import type { Application } from '../application.ts'
import { createDebit, type DebitOfSession } from '../banking/create-debit.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { derivedId } from '../event-registry.ts'
import { employerSubject, sealFields } from '../sealing.ts'
import { closeCheckouts, onceClosed } from './checkouts.ts'

/** The bank account that a payer gives, in plain text. */
export interface PayersAccount {
  readonly holderName: string
  readonly routingNumber: string
  readonly accountNumber: string
  readonly accountType: 'checking' | 'savings'
  readonly bankName: string | null
}

/** The id of the debit of a session: the same in every attempt, and under every name. */
export function legOf(sessionId: string): string {
  return derivedId(sessionId, 'leg')
}

/**
 * Arranges the bank debit of a session, which the payer authorised: now, and for the instalments of a plan. What the card
 * processor could take is ended first; money that it had taken wins.
 * @throws ProviderUnavailable, ProviderRefused: then nothing is arranged.
 */
export async function arrangeDebit(
  app: Application,
  session: PaymentSession,
  account: PayersAccount,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const now = app.clock.now()
  if (!isAwaited(sessionStatusAt(session, now))) return notPayable(session, now)
  const closed = await closeCheckouts(app, session, 'arrange-debit', context)
  if (isRejection(closed)) return closed
  const { payment_session_id, employer_id } = session
  const sealedAccount = await sealFields(
    app.personalData,
    PaymentSessionDebitArranged,
    {
      payment_session_id,
      account: {
        holder_name: account.holderName,
        routing_number: account.routingNumber,
        account_number: account.accountNumber,
        account_last4: account.accountNumber.slice(-4),
        account_type: account.accountType,
        bank_name: account.bankName,
      },
    },
    () => employerSubject(app.personalData, employer_id),
  )
  const debit = { legId: legOf(payment_session_id), account: sealedAccount.account }
  const arrange = (at: number) => ({ type: 'ArrangeDebit', ...debit, at }) as const
  const arranged = await onceClosed(app, closed, 'arrange-debit', arrange, context)
  if (isRejection(arranged) || arranged.debit?.leg_id == null) return arranged
  await createDebit(app, arranged, signingDebit(arranged, arranged.debit.leg_id), context)
  return arranged
}

/** What is debited at signing. */
export function signingDebit({ amount_cents }: PaymentSession, legId: string): DebitOfSession {
  return { legId, amountCents: amount_cents, installmentNumber: null }
}

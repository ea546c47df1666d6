import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { isRejection, orThrow, type Rejection } from '../../../domain/kernel/rejection.ts'
import { notPayable, paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import {
  isAwaited,
  type PaymentSession,
  sessionStatusAt,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import { policy } from '../../../domain/policies/policy.ts'
import { keepAccount } from '../../banking/accounts/payer-accounts.ts'
import { createSessionDebit, type DebitOfSession } from '../../banking/debits/create-debit.ts'
import { debitCreatedPayload } from '../../banking/debits/debit-webhooks.ts'
import { installmentDebitId } from '../../banking/debits/session-debits.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import type { BankAccount } from '../../ports/bank-rail.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { closeCheckouts, onceClosed } from './checkouts.ts'

/** The id of the debit of a session: the same in every attempt, and under every name. */
export function debitIdOf(sessionId: string): string {
  return derivedId(sessionId, 'leg')
}

/**
 * Arranges the bank debit of a session, which the payer authorized: now, and for the installments of a plan. What the card
 * processor could take is ended first; money that it had taken wins.
 * @throws ProviderUnavailable, ProviderRefused: then nothing is arranged.
 */
export async function arrangeDebit(
  app: Application,
  session: PaymentSession,
  account: BankAccount,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const now = app.clock.now()
  if (!isAwaited(sessionStatusAt(session, now))) return notPayable(session, now)
  const closed = await closeCheckouts(app, session, 'arrange-debit', context)
  if (isRejection(closed)) return closed
  const { payment_session_id } = session
  const kept = await keepAccount(app, session, account)
  const debit = { debitId: debitIdOf(payment_session_id), account: kept }
  const arrange = (at: number) => ({ type: 'ArrangeDebit', ...debit, at }) as const
  // where this throws, it may be arranged all the same, and its account is needed
  const arranged = await onceClosed(app, closed, 'arrange-debit', arrange, context)
  const isUsed = !isRejection(arranged) && arranged.debit?.account.account_ref === kept.account_ref
  if (!isUsed) await app.vault.remove(kept.account_ref)
  if (isRejection(arranged)) return arranged
  const { leg_id } = arranged.debit!
  if (leg_id !== null) await createSessionDebit(app, arranged, signingDebit(arranged, leg_id), context)
  return arranged
}

/** What is debited at signing. */
export function signingDebit({ amount_cents }: PaymentSession, debitId: string): DebitOfSession {
  return { debitId, amountCents: amount_cents, installmentNumber: null }
}

/**
 * Creates the debit of an installment that is due, once, and tells partners of it; of a session that was cancelled, whose
 * plan was stopped, or whose down payment has come to nothing by then, there is none. A policy that is cancelled by then stops
 * the plan.
 */
export async function createInstallmentDebit(
  app: Application,
  sessionId: string,
  number: number,
  context: CommandContext,
): Promise<void> {
  const debitId = installmentDebitId(sessionId, number)
  const command = {
    type: 'CreateInstalmentDebit',
    number,
    debitId,
    ...(await obstaclesOf(app, sessionId)),
    at: app.clock.now(),
  } as const
  const outcome = orThrow(await app.commands.execute(paymentSession, sessionId, command, context))
  const session = outcome.state!
  if (!session.installments_created.includes(number)) return
  const { amount_cents: amountCents } = session.debit!.instalments.find((one) => one.number === number)!
  const debit = await createSessionDebit(
    app,
    session,
    { debitId, amountCents, installmentNumber: number },
    context,
  )
  await raiseWebhookEvent(app, debitCreatedPayload(debit), context)
}

/** What is in the way of the installments of a session, as the log has it: what follows from that may still be on its way. */
async function obstaclesOf({ commands }: Pick<Application, 'commands'>, sessionId: string) {
  const session = (await commands.load(paymentSession, sessionId)).state
  const sold = session && (await commands.load(policy, session.policy_id)).state
  const downPaymentId = session?.debit?.leg_id ?? null
  const down = downPaymentId === null ? null : (await commands.load(bankDebit, downPaymentId)).state
  return {
    isPolicyCancelled: sold?.status === 'cancelled',
    isDownPaymentGone: down?.status === 'returned' || down?.status === 'failed',
  }
}

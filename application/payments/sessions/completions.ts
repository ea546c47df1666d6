import type { Rejection } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed } from '../../commands/verbs.ts'
import { plain } from '../links/completions.ts'

/** What the card processor took for a session. */
interface SessionPayment {
  readonly sessionId: string
  readonly checkoutId: string
  readonly processorPaymentId: string
  readonly amountCents: number
  /** Epoch milliseconds. */
  readonly at: number
  /** The payment was found as the checkout was closed, for the session was to be paid by it no more. */
  readonly isFoundClosing?: boolean
  /** Nothing was taken yet: the checkout must still be open. */
  readonly isToBeTaken?: boolean
}

/**
 * Records that a session was paid by the card processor. Money that was taken counts in every state; the same payment counts
 * once.
 */
export function completeSession(
  app: Application,
  { sessionId, ...payment }: SessionPayment,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const paymentId = derivedId(sessionId, `payment/${payment.processorPaymentId}`)
  const command = { type: 'Pay', paymentId, ...payment, now: app.clock.now() } as const
  return changed(app, paymentSession, sessionId, command, context)
}

/** Records an attempt that failed, at once or days later: the session can be paid again unless its time is over. */
export function failSession(
  app: Application,
  attempt: {
    readonly sessionId: string
    readonly checkoutId: string
    readonly failureMessage: string
    /** Epoch milliseconds. */
    readonly at: number
  },
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const { sessionId, checkoutId, failureMessage, at } = attempt
  const failureId = derivedId(context.commandId, 'payment-failure')
  const message = plain(failureMessage)
  const command = { type: 'RecordPaymentFailed', checkoutId, failureId, message, at } as const
  return changed(app, paymentSession, sessionId, command, context)
}

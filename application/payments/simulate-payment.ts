import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import {
  openCheckouts,
  type PaymentSession,
  takesCards,
} from '../../domain/payments/sessions/payment-session-status.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import { completeLink, failLink } from './links/completions.ts'
import { checkoutOf } from './sessions/checkouts.ts'
import { completeSession, failSession } from './sessions/completions.ts'
import { simulateSubscriptionPayment } from './simulated-processor.ts'

/** What was simulated. */
export interface Simulated {
  readonly kind: 'payment_link' | 'payment_session' | 'subscription'
  /** The link or the session had been paid before: nothing happened. */
  readonly alreadyPaid: boolean
}

/** The payment method that a simulated payer leaves. */
const PAYERS_METHOD = 'pm_card_payer'

/**
 * Simulates what a payer does about a payment link, or the processor about a subscription.
 * @param id of either.
 * @param failureCode null: the payment succeeds.
 * @returns a conflict where another processor than the simulated one has it.
 */
export async function simulatePayment(
  app: Application,
  id: string,
  failureCode: string | null,
  context: CommandContext,
): Promise<Simulated | Rejection> {
  const session = (await app.commands.load(paymentSession, id)).state
  if (session) return simulateSession(app, session, failureCode, context)
  const { state } = await app.commands.load(subscription, id)
  const made = state ?? (await app.commands.load(paymentLink, id)).state
  if (!made) {
    const why = 'There is no such payment link, payment session or subscription'
    return reject('not_found', 'payment_link_not_found', why)
  }
  if (made.processor !== 'simulated') return notSimulated()
  if (!state) return simulateLink(app, id, failureCode, context)
  const after = await simulateSubscriptionPayment(app, state, failureCode, context)
  return isRejection(after) ? after : { kind: 'subscription', alreadyPaid: false }
}

/**
 * Simulates the customer at the checkout that is open, else at a fresh one. @param failureCode null: the payment
 * succeeds.
 */
export async function simulateSession(
  app: Application,
  session: PaymentSession,
  failureCode: string | null,
  context: CommandContext,
): Promise<Simulated | Rejection> {
  const { payment_session_id: sessionId, amount_cents: amountCents } = session
  const at = app.clock.now()
  if (session.status === 'paid' && !takesCards(session, at)) {
    return { kind: 'payment_session', alreadyPaid: true }
  }
  const checkoutId = await simulatedCheckoutOf(app, session, context)
  if (isRejection(checkoutId)) return checkoutId
  const outcome =
    failureCode === null
      ? await completeSession(
          app,
          {
            sessionId,
            checkoutId,
            amountCents,
            at,
            isToBeTaken: true,
            processorPaymentId: `pi_sim_${derivedId(checkoutId, 'processor-payment')}`,
          },
          context,
        )
      : await failSession(
          app,
          { sessionId, checkoutId, failureMessage: `The payment was declined (${failureCode})`, at },
          context,
        )
  return isRejection(outcome) ? outcome : { kind: 'payment_session', alreadyPaid: false }
}

/** The id of the checkout of a session that is open at the simulated processor; where that is in use, else a fresh one. */
async function simulatedCheckoutOf(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<string | Rejection> {
  const openAtIt = (state: PaymentSession) =>
    openCheckouts(state).find(({ processor }) => processor === 'simulated')?.checkout_id
  const open = openAtIt(session)
  if (open !== undefined) return open
  if (app.processors[session.environment].kind !== 'simulated') return notSimulated()
  const begun = await checkoutOf(app, session, context)
  if (isRejection(begun)) return begun
  const { state } = await app.commands.load(paymentSession, session.payment_session_id)
  return openAtIt(state!) ?? reject('conflict', 'checkout_closed', 'The checkout was closed')
}

function notSimulated(): Rejection {
  return reject('conflict', 'processor_not_simulated', 'The payment is not at the simulated card processor')
}

async function simulateLink(
  app: Application,
  linkId: string,
  failureCode: string | null,
  context: CommandContext,
): Promise<Simulated | Rejection> {
  const at = app.clock.now()
  if (failureCode !== null) {
    const failureMessage = `The payment was declined (${failureCode})`
    const failed = await failLink(app, { linkId, failureMessage, at }, context)
    return isRejection(failed) ? failed : { kind: 'payment_link', alreadyPaid: false }
  }
  const paid = {
    linkId,
    paymentMethodId: PAYERS_METHOD,
    amountCents: null,
    at,
    processorPaymentId: `pi_sim_${derivedId(linkId, 'processor-payment')}`,
  }
  const outcome = await completeLink(app, paid, context)
  return isRejection(outcome) ? outcome : { kind: 'payment_link', alreadyPaid: outcome.alreadyPaid }
}

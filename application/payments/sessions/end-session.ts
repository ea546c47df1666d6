import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import {
  paymentSession,
  refuseCancelling,
  refuseReplacing,
} from '../../../domain/payments/sessions/payment-session.ts'
import { isAwaited, type PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { isSecretGone } from '../../commands/secret-gone.ts'
import { ERASED } from '../../ports/personal-data.ts'
import { pageHost, refuseCheckout } from '../pages/page-host.ts'
import { closeCheckouts, onceClosed } from './checkouts.ts'
import { type Customer, type HandedOutSession, issueSession } from './create-session.ts'
import type { Invitation } from './invite.ts'
import { showSession } from './show-sessions.ts'

/**
 * Cancels a session: nobody can pay it any more. A bank debit that was arranged goes its way; further installments of a
 * plan are not collected. Money that the card processor had taken already wins.
 * @throws ProviderUnavailable, ProviderRefused: then the session is as it was.
 */
export async function cancelSession(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const refusal = refuseCancelling(session, app.clock.now())
  if (refusal) return refusal
  return onceClosed(app, session, 'cancel', (at) => ({ type: 'Cancel', at }), context)
}

/**
 * Records that nobody can pay a session any more because its time is over. Of one that may be paid more than once, the
 * checkout that is still open ends.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function expireSession(
  app: Application,
  session: PaymentSession,
  at: number,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  if (!isAwaited(session.status)) return closeCheckouts(app, session, 'expire', context)
  return onceClosed(app, session, 'expire', () => ({ type: 'Expire', at }), context)
}

/** What a partner wants of the session that takes another one's place. */
export interface Reissue {
  /** Null: as configured. */
  readonly ttlMinutes: number | null
  /** The recipient, given the customer of the session. */
  readonly invitationsTo: (customer: Customer) => readonly Invitation[] | Rejection
  readonly portalUrl: string | null
}

/**
 * Issues a session anew, with a fresh token and the same details; the one that it replaces is cancelled first. The id of
 * the new one derives from the old one's: of two requests at once one wins, and a repetition after a crash finishes it.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function reissueSession(
  app: Application,
  session: PaymentSession,
  { ttlMinutes, invitationsTo, portalUrl }: Reissue,
  context: CommandContext,
): Promise<HandedOutSession | Rejection> {
  const { payment_session_id, tenant_id } = session
  const id = derivedId(payment_session_id, 'reissue')
  const isBegun = session.replaced_by === id && (await app.commands.load(paymentSession, id)).state === null
  const refusal = isBegun ? null : refuseReplacing(session)
  if (refusal) return refusal
  const checkout = (await app.commands.load(checkoutSettings, tenant_id)).state
  const disabled = refuseCheckout(checkout)
  if (disabled) return disabled
  const host = session.mode === 'link' ? pageHost(checkout, portalUrl) : null
  if (isRejection(host)) return host
  const { customer } = await showSession(app, session)
  // no customer can write such an address
  if (customer.email === ERASED) {
    const why = 'The customer of the payment session was erased: it cannot be reissued'
    return reject('conflict', 'customer_erased', why)
  }
  const invitations = invitationsTo(customer)
  if (isRejection(invitations)) return invitations
  if (!isBegun) {
    const replace = (at: number) => ({ type: 'Replace', replacedBy: id, at }) as const
    const replaced = await onceClosed(app, session, 'reissue', replace, context)
    if (isRejection(replaced)) return replaced
  }
  const details = { ...session, customer, replaces: payment_session_id }
  const issued = await issueSession(
    app,
    { id, details, checkout, ttlMinutes, invitations, portalUrl },
    context,
  )
  // of two at once the other one was faster
  const isOthers = isRejection(issued) && isSecretGone(issued)
  return isOthers ? refuseReplacing({ ...session, replaced_by: id })! : issued
}

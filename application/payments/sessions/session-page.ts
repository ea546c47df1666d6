import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { type Checkout, checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import {
  type PaymentSession,
  sessionStatusAt,
  takesCards,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import { schedule } from '../../../domain/payments/sessions/session-plan.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, newContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'
import { logoPath } from '../pages/logos.ts'
import { sessionByToken } from '../pages/tokens.ts'

/** The bearer of a token acts as the customer: the token is the only credential. */
export function contextOfPayer(app: Pick<Application, 'randomness'>, requestId: string): CommandContext {
  return newContext(app, { type: 'payer', id: 'payer' }, requestId)
}

/** The session that a token opens. */
export async function sessionOfToken(
  app: Pick<Application, 'commands'>,
  token: string,
): Promise<PaymentSession | Rejection> {
  const session = await sessionByToken(app, token)
  return session ?? reject('not_found', 'payment_session_not_found', 'There is no such payment session')
}

/** A session after a look at it: the first look opens it. */
export async function lookedAt(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const at = app.clock.now()
  if (sessionStatusAt(session, at) !== 'pending') return session
  return changed(app, paymentSession, session.payment_session_id, { type: 'Open', at }, context)
}

/**
 * The page of a session, in any state. The first look opens the session.
 * @param context null: nobody looks.
 */
export async function openPage(app: Application, token: string, context: CommandContext | null) {
  const found = await sessionOfToken(app, token)
  const session = isRejection(found) || context === null ? found : await lookedAt(app, found, context)
  if (isRejection(session)) return session
  const { state } = await app.commands.load(checkoutSettings, session.tenant_id)
  return pageOf(session, state, app.clock.now())
}

function pageOf(session: PaymentSession, { settings, logo_id }: Checkout, now: number) {
  const status = sessionStatusAt(session, now)
  return {
    id: session.payment_session_id,
    status,
    mode: session.mode,
    seller: {
      display_name: settings.display_name,
      /** Of the copy, on the host of hosted pages. */
      logo_url: logo_id === null ? null : logoPath(logo_id),
      accent_color: settings.accent_color,
      support_email: settings.support_email,
    },
    currency: 'usd' as const,
    amount_cents: session.amount_cents,
    line_items: session.line_items,
    description: session.description,
    plan: session.plan === null ? null : planOf(session),
    takes_cards: takesCards(session, now),
    account_last4: session.debit?.account.account_last4 ?? null,
    expires_at: session.expires_at,
    paid_at: session.paid_at,
  }
}

/** The schedule of a plan session, for its payer; sessions that are over have none. */
export async function planOfToken(app: Pick<Application, 'commands' | 'clock'>, token: string) {
  const session = await sessionOfToken(app, token)
  if (isRejection(session)) return session
  const status = sessionStatusAt(session, app.clock.now())
  if (session.plan === null || status === 'cancelled' || status === 'expired') {
    return reject('not_found', 'payment_plan_not_found', 'There is no payment plan')
  }
  return planOf(session)
}

function planOf(session: PaymentSession) {
  const plan = session.plan!
  return {
    currency: 'usd' as const,
    total_cents: session.premium_cents + session.fee_cents,
    ...plan,
    installments: schedule(plan, Date.parse(session.created_at)).map(({ number, amount_cents, dueAt }) => ({
      number,
      amount_cents,
      due_at: isoTime(dueAt),
    })),
  }
}

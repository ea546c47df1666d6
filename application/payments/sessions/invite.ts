import { isoTime } from '../../../domain/kernel/calendar.ts'
import { dollars } from '../../../domain/kernel/money.ts'
import { newYorkDate } from '../../../domain/kernel/new-york.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { DeliveryChannel } from '../../../domain/payments/links/payment-link-events.ts'
import { type CheckoutSettings, senderOf } from '../../../domain/payments/pages/checkout-settings.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import { PaymentSessionInvited } from '../../../domain/payments/sessions/payment-session-events.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { readable } from '../../commands/verbs.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'

/** Where an invitation goes to: an address, or a number. */
export interface Invitation {
  readonly channel: DeliveryChannel
  readonly to: string
}

/** What an invitation is written from. */
interface Letter {
  /** The page of the session, known now only. */
  readonly url: string
  readonly settings: CheckoutSettings
  readonly invitations: readonly Invitation[]
}

/**
 * Sends the invitations of a session, once, and records what became of each. One that is not taken over is not sent
 * again: its address is not kept, and the session can be paid all the same.
 * @returns the session after that.
 */
export async function invite(
  app: Application,
  session: PaymentSession,
  { url, settings, invitations }: Letter,
  context: CommandContext,
): Promise<PaymentSession> {
  const { payment_session_id } = session
  const dataSubject = employerSubject(app.personalData, session.employer_id)
  let after = session
  for (const [ordinal, { channel, to }] of invitations.entries()) {
    const message = { ...written(session, url, settings, channel), channel, to, dataSubject }
    const reason = await app.messages
      .send({ ...message, key: `payment-session-${payment_session_id}-${channel}` })
      .then(() => null, reasonOf)
    const invitation = await sealFields(
      app.personalData,
      PaymentSessionInvited,
      {
        payment_session_id,
        channel,
        to,
        reason,
        status: reason === null ? ('sent' as const) : ('failed' as const),
        at: isoTime(app.clock.now()),
      },
      () => dataSubject,
    )
    const command = { type: 'RecordInvited', invitation } as const
    const outcome = await app.commands.execute(paymentSession, payment_session_id, command, {
      ...context,
      ordinal,
    })
    const recorded = orThrow(await readable(app, paymentSession, outcome))
    after = recorded
  }
  return after
}

/** Why a message was not taken over, in words that name nobody. */
function reasonOf(error: unknown): string {
  if (error instanceof ProviderRefused || error instanceof ProviderUnavailable) return error.message
  throw error
}

function written(
  { amount_cents, premium_cents, fee_cents, plan, description, expires_at }: PaymentSession,
  url: string,
  settings: CheckoutSettings,
  channel: DeliveryChannel,
) {
  const seller = settings.display_name!
  const asks =
    // of a plan that is paid at once nothing is left for later
    plan === null || amount_cents === premium_cents + fee_cents
      ? `asks you to pay ${dollars(amount_cents)}`
      : `offers you a payment plan: ${dollars(amount_cents)} now, then ${plan.total_installments} monthly installments`
  // texts go out from the service's own number
  if (channel === 'sms') return { from: null, subject: null, text: `${seller} ${asks}: ${url}` }
  return {
    from: senderOf(settings),
    subject: `${seller}: payment request`,
    text: `${seller} ${asks}.${description === null ? '' : `\n\n${description}`}

${url}

The link can be used until ${newYorkDate(Date.parse(expires_at))}. Whoever has it can open the page: do not pass it on.
Questions: ${settings.support_email}
`,
  }
}

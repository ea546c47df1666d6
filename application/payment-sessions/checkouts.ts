import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import {
  type Checkout,
  notPayable,
  openCheckouts,
  type PaymentSession,
  paymentSession,
  takesCards,
} from '../../domain/payments/payment-session.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import { completeSession } from './completions.ts'

/** What mounts a checkout of the card processor in a page. */
export interface HandedOutCheckout {
  readonly client_secret: string
  readonly publishable_key: string
}

type Charged = {
  readonly payment_session_id: string
  readonly environment: Environment
  readonly amount_cents: number
  readonly description: string | null
}

/**
 * Begins a checkout at the card processor. Its key derives from the session: asked for again, it is the same one.
 * @param number of the checkout within the session, from 0.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function beginCheckout(
  { processors }: Pick<Application, 'processors'>,
  { payment_session_id: sessionId, environment, amount_cents: amountCents, description }: Charged,
  number: number,
): Promise<{ readonly checkout: Omit<Checkout, 'isOpen'>; readonly handedOut: HandedOutCheckout }> {
  const processor = processors[environment]
  const checkoutId = derivedId(sessionId, `checkout/${number}`)
  const { processorCheckoutId, clientSecret } = await processor.openCheckout(
    { sessionId, checkoutId, amountCents, description },
    `checkout-${checkoutId}`,
  )
  return {
    checkout: {
      checkout_id: checkoutId,
      processor: processor.kind,
      processor_checkout_id: processorCheckoutId,
    },
    handedOut: { client_secret: clientSecret, publishable_key: processor.publishableKey },
  }
}

/**
 * The checkout by which a customer pays a session by card: the one that is open, else a fresh one.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function checkoutOf(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<HandedOutCheckout | Rejection> {
  const now = app.clock.now()
  if (!takesCards(session, now)) return notPayable(session, now)
  const { payment_session_id, environment, checkouts } = session
  const processor = app.processors[environment]
  const open = openCheckouts(session).find(({ processor: kind }) => kind === processor.kind)
  const secret = open && (await processor.secretOf(open.processor_checkout_id))
  if (secret) return { client_secret: secret, publishable_key: processor.publishableKey }
  const { checkout, handedOut } = await beginCheckout(app, session, checkouts.length)
  const command = { type: 'BeginCheckout', checkout, at: now } as const
  const outcome = await app.commands.execute(
    paymentSession,
    payment_session_id,
    command,
    within(context, session),
  )
  return isRejection(outcome) ? outcome : handedOut
}

/**
 * Ends what the card processor could still take money by, before something else is decided. Money that it had taken
 * already wins.
 * @returns the session after that; it is paid when money had been taken.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function closeCheckouts(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  let after = session
  for (const { checkout_id, processor_checkout_id } of openCheckouts(session)) {
    const { payment_session_id: sessionId, environment } = session
    const payment = await app.processors[environment].closeCheckout(
      processor_checkout_id,
      `close-${checkout_id}`,
    )
    if (payment) {
      const completed = await completeSession(
        app,
        { ...payment, sessionId, checkoutId: checkout_id },
        context,
      )
      if (isRejection(completed)) return completed
    }
    const command = { type: 'RecordCheckoutClosed', checkoutId: checkout_id, at: app.clock.now() } as const
    const own = {
      ...within(context, session),
      commandId: derivedId(context.commandId, `close/${checkout_id}`),
    }
    const closed = await readable(
      app,
      paymentSession,
      await app.commands.execute(paymentSession, sessionId, command, own),
    )
    if (isRejection(closed)) return closed
    after = closed
  }
  return after
}

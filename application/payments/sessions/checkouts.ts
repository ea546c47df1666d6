import type { Environment } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import {
  notPayable,
  type PaymentSessionCommand,
  paymentSession,
} from '../../../domain/payments/sessions/payment-session.ts'
import {
  type CheckoutAtProcessor,
  openCheckouts,
  type PaymentSession,
  takesCards,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { readable, within } from '../../commands/verbs.ts'
import { heldUp, processorOf, processorToAsk } from '../processor/processor-of.ts'
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
): Promise<{ readonly checkout: CheckoutAtProcessor; readonly handedOut: HandedOutCheckout }> {
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
 * The checkout by which a customer pays a session by card: the one that is open, else a fresh one. Before that, what
 * became of the others is known: one that took money, or is about to, is the last one.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function checkoutOf(
  app: Application,
  session: PaymentSession,
  context: CommandContext,
): Promise<HandedOutCheckout | Rejection> {
  let current = session
  for (;;) {
    const now = app.clock.now()
    if (!takesCards(current, now)) return notPayable(current, now)
    const handedOut = await handedOutAgain(app, current)
    if (handedOut) return handedOut
    const closed = await closeCheckouts(app, current, 'checkout', context)
    if (isRejection(closed)) return closed
    if (!takesCards(closed, now)) return notPayable(closed, now)
    const begun = await beginCheckout(app, closed, closed.checkouts.length)
    const command = { type: 'BeginCheckout', checkout: begun.checkout, at: app.clock.now() } as const
    const outcome = await app.commands.execute(
      paymentSession,
      session.payment_session_id,
      command,
      within(context, session),
    )
    if (isRejection(outcome)) return outcome
    current = outcome.state!
    // another request may have closed it, as it was begun under the same key
    const { checkout_id } = begun.checkout
    if (openCheckouts(current).some((one) => one.checkout_id === checkout_id)) return begun.handedOut
  }
}

/** What mounts the checkout that is open at the card processor in use; null when there is none. */
async function handedOutAgain(
  { processors }: Pick<Application, 'processors'>,
  session: PaymentSession,
): Promise<HandedOutCheckout | null> {
  const processor = processors[session.environment]
  const [open, ...others] = openCheckouts(session)
  if (open?.processor !== processor.kind || others.length > 0) return null
  const secret = await processor.secretOf(open.processor_checkout_id)
  return secret === null ? null : { client_secret: secret, publishable_key: processor.publishableKey }
}

/**
 * Does something to a session once no checkout of it is open; one that is begun meanwhile is closed as well.
 * @param work by what name operators hear of it where the card processor is not configured any more.
 * @param commandAt what is done, at a moment in epoch milliseconds. It is rejected while a checkout is open.
 * @throws ProviderUnavailable, ProviderRefused: then it is not done.
 */
export async function onceClosed(
  app: Application,
  session: PaymentSession,
  work: string,
  commandAt: (now: number) => PaymentSessionCommand,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const { payment_session_id } = session
  let current = session
  for (;;) {
    const closed = await closeCheckouts(app, current, work, context)
    if (isRejection(closed)) return closed
    const command = commandAt(app.clock.now())
    const outcome = await app.commands.execute(
      paymentSession,
      payment_session_id,
      command,
      within(context, session),
    )
    if (!isRejection(outcome) || outcome.code !== 'checkout_open') {
      return readable(app, paymentSession, outcome)
    }
    current = (await app.commands.load(paymentSession, payment_session_id)).state!
  }
}

/**
 * Ends what the card processor could still take money by. Money that it had taken already wins, and a payment that it is
 * still carrying out is waited for.
 * @returns the session after that.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function closeCheckouts(
  app: Application,
  session: PaymentSession,
  work: string,
  context: CommandContext,
): Promise<PaymentSession | Rejection> {
  const { payment_session_id: sessionId, environment, tenant_id } = session
  let after = session
  for (const { checkout_id: checkoutId, processor, processor_checkout_id } of openCheckouts(session)) {
    const made = { processor, environment, tenant_id }
    // the owner of a timer that waits reports it
    const at =
      work === 'expire'
        ? processorOf(app, made)
        : await processorToAsk(app, made, heldUp('payment_session', sessionId, work), context)
    const closed = await at.closeCheckout(processor_checkout_id)
    const own = {
      ...within(context, session),
      commandId: derivedId(context.commandId, `close/${checkoutId}`),
    }
    if (closed.outcome === 'paid') {
      const { outcome: _paid, ...payment } = closed
      const found = { ...payment, sessionId, checkoutId, isFoundClosing: work !== 'checkout' }
      const completed = await completeSession(app, found, own)
      if (isRejection(completed)) return completed
    }
    const now = app.clock.now()
    const type = closed.outcome === 'processing' ? 'RecordPaymentProcessing' : 'RecordCheckoutClosed'
    const outcome = await app.commands.execute(paymentSession, sessionId, { type, checkoutId, at: now }, own)
    const known = await readable(app, paymentSession, outcome)
    if (isRejection(known)) return known
    after = known
  }
  return after
}

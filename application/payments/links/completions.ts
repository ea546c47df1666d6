import { streamOf } from '../../../domain/kernel/decider.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { type PaymentLink, paymentLink } from '../../../domain/payments/links/payment-link.ts'
import { PaymentLinkPaid } from '../../../domain/payments/links/payment-link-events.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed, readable, within } from '../../commands/verbs.ts'
import { activatePolicy } from '../../policies/activation.ts'

/** What a payer, a processor or a simulation did about a payment link. Times are epoch milliseconds. */
export interface LinkPayment {
  readonly linkId: string
  /** The processor's id of the payment; null of a simulated one. */
  readonly processorPaymentId: string | null
  /** Kept for the monthly charges of a plan. */
  readonly paymentMethodId: string | null
  /** What was taken; null: what the link asks for. */
  readonly amountCents: number | null
  readonly at: number
}

/** Characters of what a processor says of a declined attempt. */
const MOST_MESSAGE = 500

/**
 * Records that a link was paid. Money counts in every state: a link that was cancelled or had expired is paid late. The
 * policy is active when this returns, and can be read as such unless the read models are late.
 * @returns whether it had been paid before; then nothing happens. A simulated payment of a closed link is rejected.
 */
export async function completeLink(
  app: Application,
  { linkId, processorPaymentId, paymentMethodId, amountCents, at }: LinkPayment,
  context: CommandContext,
): Promise<{ readonly alreadyPaid: boolean } | Rejection> {
  const { state: link } = await app.commands.load(paymentLink, linkId)
  const scoped = link ? within(context, link) : context
  const command = {
    type: 'Pay',
    paymentId: derivedId(linkId, 'payment'),
    processorPaymentId,
    paymentMethodId,
    amountCents,
    at,
    now: app.clock.now(),
  } as const
  const outcome = await app.commands.execute(paymentLink, linkId, command, scoped)
  const paid = await readable(app, paymentLink, outcome)
  if (isRejection(outcome) || isRejection(paid)) return paid as Rejection
  await activatePolicyOf(app, paid, scoped)
  return { alreadyPaid: !outcome.events.some(({ type }) => type === 'PaymentLinkPaid') }
}

/** Makes the policy of a paid link active, once. One that cannot be holds nothing back: the operator is alerted of it. */
export async function activatePolicyOf(
  app: Application,
  { payment_link_id, policy_id }: Pick<PaymentLink, 'payment_link_id' | 'policy_id'>,
  context: CommandContext,
): Promise<void> {
  const commandId = derivedId(payment_link_id, 'activate-policy')
  await activatePolicy(app, policy_id, { ...context, commandId, mayRepeat: true }, async () => {
    const events = await app.log.readStream(streamOf(paymentLink, payment_link_id))
    return events.find(({ type }) => type === PaymentLinkPaid.name)?.position ?? null
  })
}

/**
 * Completes a link of the sandbox as a payment would. Calling it again changes nothing.
 * @returns a rejection where it cannot be paid.
 */
export async function simulateCompletion(
  app: Application,
  link: PaymentLink,
  context: CommandContext,
): Promise<{ readonly alreadyPaid: boolean } | Rejection> {
  if (link.payment_type !== 'ONE_TIME') {
    return reject(
      'invalid',
      'direct_billing_not_simulated',
      'Completion can be simulated of ONE_TIME links only',
    )
  }
  const nothingTaken = { processorPaymentId: null, paymentMethodId: null, amountCents: null }
  const payment = { linkId: link.payment_link_id, ...nothingTaken, at: app.clock.now() }
  return completeLink(app, payment, context)
}

/** Records a declined attempt: the link stays payable. */
export function failLink(
  app: Application,
  attempt: { readonly linkId: string; readonly failureMessage: string; readonly at: number },
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  const { linkId, failureMessage, at } = attempt
  const message = plain(failureMessage)
  const failureId = derivedId(context.commandId, 'payment-failure')
  const command = { type: 'RecordPaymentFailed', failureId, message, at } as const
  return changed(app, paymentLink, linkId, command, context)
}

/** Records that a link can no longer be paid because its time is over. A paid or cancelled one stays as it is. */
export function expireLink(
  app: Application,
  { linkId, at }: { readonly linkId: string; readonly at: number },
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  return changed(app, paymentLink, linkId, { type: 'Expire', at }, context)
}

/** A text of others, without what is no character to be shown. */
export function plain(text: string): string {
  return text.replaceAll(/\p{C}/gu, ' ').trim().slice(0, MOST_MESSAGE) || 'The payment was declined'
}

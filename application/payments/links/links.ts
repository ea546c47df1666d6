import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type PaymentLink,
  paymentLink,
  refuseUnlessOpen,
  statusAt,
} from '../../../domain/payments/links/payment-link.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { readable } from '../../commands/verbs.ts'
import { partnerList } from '../../queries/lists.ts'
import { heldUp, processorToAsk } from '../processor/processor-of.ts'

/** A payment link that a partner names. */
export async function linkOf(app: Reads, client: KeyScope, linkId: string): Promise<PaymentLink | Rejection> {
  const link = await stateOf(app, paymentLink, linkId)
  return ownedBy(client, link, 'payment link', (one) => mayReach(client, one))
}

/** The payment links within the scope of a key. */
export const listLinks = partnerList(paymentLink, {
  projection: 'payment-links',
  table: 'payment_links',
  id: 'payment_link_id',
  by: ['carrier_id', 'employer_id', 'status'],
  expires: true,
})

/**
 * Cancels a payment link: nobody can pay it any more, at the card processor first. Money that was on its way still
 * counts when the processor tells of it. Cancelling again changes nothing.
 * @throws ProviderUnavailable, ProviderRefused: then the link is as it was.
 */
export async function cancelLink(
  app: Application,
  link: PaymentLink,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  const { payment_link_id, processor_payment_link_id } = link
  const status = statusAt(link, app.clock.now())
  if (status === 'cancelled') return link
  const refusal = refuseUnlessOpen(status)
  if (refusal) return refusal
  const processor = await processorToAsk(
    app,
    link,
    heldUp('payment_link', payment_link_id, 'cancel'),
    context,
  )
  await processor.deactivatePaymentLink(processor_payment_link_id, deactivationKey(payment_link_id))
  const cancelled = await app.commands.execute(
    paymentLink,
    payment_link_id,
    { type: 'Cancel', at: app.clock.now() },
    context,
  )
  return isRejection(cancelled) ? cancelled : readable(app, paymentLink, cancelled)
}

/** The key under which the processor is told that nobody is to pay a link any more. */
export function deactivationKey(linkId: string): string {
  return `deactivate-${linkId}`
}

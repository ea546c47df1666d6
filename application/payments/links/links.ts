import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type PaymentLink,
  type PaymentLinkStatus,
  paymentLink,
  refuseUnlessOpen,
  statusAt,
} from '../../../domain/payments/links/payment-link.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { readable } from '../../commands/verbs.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import {
  isWithinKey,
  keyScope,
  type KeyScope as ListedScope,
  loadPage,
  pagedList,
} from '../../queries/pages.ts'
import { equalIfGiven, type Parameter, readsStatus, type StatusWanted } from '../../queries/statement.ts'
import { heldUp, processorToAsk } from '../processor/processor-of.ts'

/** A payment link that a partner names. */
export async function linkOf(app: Reads, client: KeyScope, linkId: string): Promise<PaymentLink | Rejection> {
  const link = await stateOf(app, paymentLink, linkId)
  return ownedBy(client, link, 'payment link', (one) => mayReach(client, one))
}

/** What a list of payment links is narrowed to; null is everything. */
interface LinkScope extends ListedScope, StatusWanted {
  readonly carrier_id: string | null
  readonly employer_id: string | null
  readonly status: PaymentLinkStatus | null
}

const LINKS = pagedList(
  { projection: 'payment-links', name: 'payment-links' },
  (db, $: Parameter<LinkScope>) =>
    db
      .selectFrom('payment_links')
      .select('payment_link_id as id')
      .where((eb) => isWithinKey(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'carrier_id', 'employer_id'))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** The payment links within the scope of a key, newest first. */
export async function listLinks(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  client: KeyScope,
  filter: Pick<LinkScope, 'carrier_id' | 'employer_id' | 'status'>,
  page: PageRequest,
): Promise<ListPage<PaymentLink>> {
  const now = isoTime(app.clock.now())
  const scope = { ...keyScope(client), ...filter, now, expired: 'expired' as const }
  return loadPage(app, paymentLink, LINKS, scope, page)
}

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

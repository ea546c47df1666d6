import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  type PaymentLink,
  type PaymentLinkStatus,
  paymentLink,
  refuseUnlessOpen,
  statusAt,
} from '../../domain/payments/payment-link.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable } from '../command-handling/verbs.ts'
import {
  isWithinKey,
  type KeyScope,
  keyScope,
  type ListPage,
  loadPage,
  type PageRequest,
  pagedList,
} from '../read-models/pages.ts'
import { equalsIfGiven, type Parameter, readsStatus, type StatusWanted } from '../read-models/statement.ts'
import { processorToAsk, recordHeldUp } from './held-up.ts'

type Scope = Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>

/** A payment link that a partner names: one of another tenant or environment is not found, one out of scope forbidden. */
export async function linkOf(
  { commands }: Pick<Application, 'commands'>,
  client: Scope,
  linkId: string,
): Promise<PaymentLink | Rejection> {
  const state = isId(linkId) ? (await commands.load(paymentLink, linkId)).state : null
  if (state?.tenant_id !== client.tenant_id || state.environment !== client.environment) {
    return reject('not_found', 'payment_link_not_found', 'There is no such payment link')
  }
  if (mayActFor(client, state.employer_id) && mayUseCarrier(client, state.carrier_id)) return state
  return reject(
    'forbidden',
    'payment_link_out_of_scope',
    'The payment link lies outside the scope of the key',
  )
}

/** What a list of payment links is narrowed to; null is everything. */
interface LinkScope extends KeyScope, StatusWanted {
  readonly carrierId: string | null
  readonly employerId: string | null
  readonly status: PaymentLinkStatus | null
}

const LINKS = pagedList(
  { projection: 'payment-links', name: 'payment-links' },
  (db, $: Parameter<LinkScope>) =>
    db
      .selectFrom('payment_links')
      .select('payment_link_id as id')
      .where((eb) => isWithinKey(eb, $))
      .where((eb) => equalsIfGiven(eb, 'carrier_id', $('carrierId')))
      .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** The payment links within the scope of a key, newest first. */
export async function listLinks(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  client: Scope,
  filter: Pick<LinkScope, 'carrierId' | 'employerId' | 'status'>,
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
  const processor = await processorToAsk(app, link, (since) =>
    recordHeldUp(app, paymentLink, payment_link_id, { work: 'cancel', since }, context),
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

import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  isOpen,
  linkAmountCents,
  paymentLink,
  statusAt,
  totalCents,
} from '../../../domain/payments/links/payment-link.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { describeContext } from '../../../domain/payments/pages/payment-contexts.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { logoPath } from '../pages/logos.ts'
import { sellerOf } from './deliver-link.ts'

/** What the page of a payment link shows: nothing of it is about the customer. */
export type LinkPage = Exclude<Awaited<ReturnType<typeof linkPage>>, Rejection>

/** The page of a payment link, which its address opens. */
export async function linkPage({ commands, clock }: Pick<Application, 'commands' | 'clock'>, linkId: string) {
  const link = await stateOf({ commands }, paymentLink, linkId)
  if (link === null) return reject('not_found', 'payment_link_not_found', 'There is no such payment link')
  const { settings, logo_id } = (await commands.load(checkoutSettings, link.tenant_id)).state
  const status = statusAt(link, clock.now())
  const isPayable = isOpen(status)
  return {
    _id: link.payment_link_id,
    status: isPayable ? ('payable' as const) : status,
    environment: link.environment,
    seller: await sellerOf({ commands }, link, settings),
    accent_color: settings.accent_color,
    support_email: settings.support_email,
    /** Of the copy on the host of hosted pages. */
    logo_path: logo_id === null ? null : logoPath(logo_id),
    description: describeContext(link.payment_context),
    amount_cents: linkAmountCents(link),
    currency: 'usd' as const,
    premium_cents: link.premium_cents,
    fee_cents: link.fee_cents,
    total_cents: totalCents(link),
    installment_plan: link.installment_plan,
    expires_at: link.expires_at,
    processor_url: isPayable ? link.processor_url : null,
    after_completion_url: status === 'paid' ? link.after_completion_url : null,
  }
}

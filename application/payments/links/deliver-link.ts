import { dollars } from '../../../domain/kernel/money.ts'
import { newYorkDate } from '../../../domain/kernel/new-york.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import {
  isOpen,
  linkAmountCents,
  type PaymentLink,
  paymentLink,
  statusAt,
} from '../../../domain/payments/links/payment-link.ts'
import type { DeliveryChannel } from '../../../domain/payments/links/payment-link-events.ts'
import {
  type CheckoutSettings,
  checkoutSettings,
  senderOf,
} from '../../../domain/payments/pages/checkout-settings.ts'
import { describeContext } from '../../../domain/payments/pages/payment-contexts.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { employerSubject } from '../../commands/sealing.ts'
import { readable, within } from '../../commands/verbs.ts'
import { ERASED } from '../../ports/personal-data.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { showLink } from './show-links.ts'

/**
 * Sends a payment link to its customer, while it can be paid. By a channel that it was sent by it is not sent again,
 * whatever the work that asks for it remembers: the log may outlive the database.
 * @throws ProviderUnavailable
 */
export async function deliverLink(
  app: Application,
  linkId: string,
  channel: DeliveryChannel,
  context: CommandContext,
): Promise<void> {
  const { state: link } = await app.commands.load(paymentLink, linkId)
  if (link === null || !isOpen(statusAt(link, app.clock.now())) || link.sent_by.includes(channel)) return
  const { customer } = await showLink(app, link)
  const to = channel === 'email' ? customer.email : customer.phone
  if (to === null || to === ERASED) return
  const { settings } = (await app.commands.load(checkoutSettings, link.tenant_id)).state
  const seller = await sellerOf(app, link, settings)
  const record = async (type: 'RecordSent' | 'RecordDeliveryFailed') => {
    const command = { type, channel, at: app.clock.now() }
    const outcome = await app.commands.execute(paymentLink, linkId, command, within(context, link))
    orThrow(await readable(app, paymentLink, outcome))
  }
  try {
    await app.messages.send({
      key: `payment-link-${linkId}-${channel}`,
      channel,
      to,
      from: channel === 'email' ? senderOf(settings) : null,
      subject: channel === 'email' ? `${seller}: ${describeContext(link.payment_context)}` : null,
      text: channel === 'email' ? emailOf(link, seller, customer.name) : textOf(link, seller),
      dataSubject: employerSubject(app.personalData, link.employer_id),
    })
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
    return record('RecordDeliveryFailed')
  }
  await record('RecordSent')
}

/** The payee's name. */
export async function sellerOf(
  { commands }: Pick<Application, 'commands'>,
  { carrier_id }: Pick<PaymentLink, 'carrier_id'>,
  { display_name }: Pick<CheckoutSettings, 'display_name'>,
): Promise<string> {
  return display_name ?? (await commands.load(carrier, carrier_id)).state?.name ?? ''
}

function emailOf(link: PaymentLink, seller: string, name: string): string {
  return `Dear ${name},

${seller} asks you to pay ${dollars(linkAmountCents(link))}: ${describeContext(link.payment_context)}.

${link.processor_url}

The link can be used until ${newYorkDate(Date.parse(link.expires_at))}.
`
}

function textOf(link: PaymentLink, seller: string): string {
  return `${seller} asks you to pay ${dollars(linkAmountCents(link))}: ${link.processor_url}`
}

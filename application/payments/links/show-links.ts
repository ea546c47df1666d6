import {
  type PaymentLink,
  type PaymentLinkStatus,
  statusAt,
} from '../../../domain/payments/links/payment-link.ts'
import { PaymentLinkCreated } from '../../../domain/payments/links/payment-link-events.ts'
import { refundedCents } from '../../../domain/payments/links/payment-link-refunds.ts'
import type { Application } from '../../commands/application.ts'
import { opened } from '../../commands/sealed-fields.ts'

/** A payment link as its partner sees it: the payer is opened, `(erased)` where the employer's data key was destroyed. */
export interface ShownLink {
  readonly link: PaymentLink
  /** As of now: one whose time is over reads `expired`. */
  readonly status: PaymentLinkStatus
  readonly refunded_cents: number
  readonly customer: { readonly name: string; readonly email: string; readonly phone: string | null }
}

/** Opens what is sealed of payment links, all in one go. */
export async function showLinks(
  { personalData, clock }: Pick<Application, 'personalData' | 'clock'>,
  links: readonly PaymentLink[],
): Promise<readonly ShownLink[]> {
  // only what the sealed fields are bound to, as links may be large
  const { data } = await opened(
    personalData,
    links.map(({ payment_link_id, customer }) => ({
      schema: PaymentLinkCreated.schema,
      data: { payment_link_id, customer },
    })),
  )
  const now = clock.now()
  return links.map((link, index) => ({
    link,
    status: statusAt(link, now),
    refunded_cents: refundedCents(link),
    customer: (data[index] as Pick<ShownLink, 'customer'>).customer,
  }))
}

/** One payment link as its partner sees it. */
export async function showLink(
  app: Pick<Application, 'personalData' | 'clock'>,
  link: PaymentLink,
): Promise<ShownLink> {
  return (await showLinks(app, [link]))[0]!
}

import { paymentLinks as table } from '../../../application/payments/links/payment-links-table.ts'
import {
  PaymentLinkCancelled,
  PaymentLinkCreated,
  PaymentLinkExpired,
  PaymentLinkPaid,
  PaymentLinkSent,
} from '../../../domain/payments/links/payment-link-events.ts'
import { projection } from '../../runtime/projection.ts'

const ofLink = ({ data }: { data: { payment_link_id: string } }) =>
  ({ payment_links: [[data.payment_link_id]] }) as const

/** Payment links as they are listed; the payer stays in the log. */
export const paymentLinks = projection({
  name: 'payment-links',
  version: 2,
  tables: [table],
  handlers: (on) => [
    on(PaymentLinkCreated, {
      apply: ({ data, position }, { payment_links }) =>
        payment_links.put({ ...data, status: 'created', open: true, seq: position }),
    }),
    on(PaymentLinkSent, {
      reads: ofLink,
      apply({ data: { payment_link_id } }, { payment_links }) {
        if (payment_links.get(payment_link_id)?.status !== 'created') return
        payment_links.change([payment_link_id], { status: 'sent' })
      },
    }),
    on(PaymentLinkPaid, {
      reads: ofLink,
      apply: ({ data }, { payment_links }) =>
        payment_links.change([data.payment_link_id], { status: 'paid', open: false }),
    }),
    on(PaymentLinkCancelled, {
      reads: ofLink,
      apply: ({ data }, { payment_links }) =>
        payment_links.change([data.payment_link_id], { status: 'cancelled', open: false }),
    }),
    on(PaymentLinkExpired, {
      reads: ofLink,
      apply: ({ data }, { payment_links }) =>
        payment_links.change([data.payment_link_id], { status: 'expired', open: false }),
    }),
  ],
})

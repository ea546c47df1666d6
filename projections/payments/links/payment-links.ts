import { paymentLinks as table } from '../../../application/payments/links/payment-links-table.ts'
import {
  PaymentLinkCancelled,
  PaymentLinkCreated,
  PaymentLinkExpired,
  PaymentLinkPaid,
  PaymentLinkSent,
} from '../../../domain/payments/links/payment-link-events.ts'
import { changing, projection } from '../../runtime/projection.ts'

const ofLink = changing(table)

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
    ofLink(PaymentLinkSent, (_event, row) => (row?.status === 'created' ? { status: 'sent' } : null)),
    ofLink(PaymentLinkPaid, () => ({ status: 'paid', open: false })),
    ofLink(PaymentLinkCancelled, () => ({ status: 'cancelled', open: false })),
    ofLink(PaymentLinkExpired, () => ({ status: 'expired', open: false })),
  ],
})

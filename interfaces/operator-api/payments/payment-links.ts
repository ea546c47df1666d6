import { z } from 'zod'
import { MASK } from '../../../application/commands/sealed-fields.ts'
import { listAllLinks } from '../../../application/payments/operator-lists.ts'
import {
  LINK_STATUSES,
  linkAmountCents,
  type PaymentLink,
  paymentLink,
  statusAt,
} from '../../../domain/payments/links/payment-link.ts'
import { refundedCents } from '../../../domain/payments/links/payment-link-refunds.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { shownTime, whose } from '../host/values.ts'
import { Payer } from './payer.ts'

const Link = z
  .object({
    payment_link_id: id(),
    ...whose,
    policy_id: id(),
    status: z.enum(LINK_STATUSES).describe('An open one whose time is over reads `expired`'),
    amount_cents: z.int().describe('What it charges: the total, or the down payment of its plan'),
    refunded_cents: z.int(),
    payment_type: z.string(),
    payment_context: z.string(),
    customer: Payer,
    processor: z.string(),
    processor_payment_link_id: z.string(),
    processor_payment_id: z.string().nullable().describe('Null until it is paid, and of a simulated payment'),
    created_at: shownTime(),
    expires_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorPaymentLink' })

export const paymentLinkEndpoints = [
  endpoint({
    operation: 'listPaymentLinks',
    route: 'GET /payment-links',
    summary: 'List payment links, newest first',
    ...listOf(Link, {
      ...scope,
      employer_id: narrowing(id()),
      carrier_id: narrowing(id()),
      status: narrowing(word(...LINK_STATUSES)),
    }),
    columns: 'payment_link_id created_at environment status amount_cents employer_id',
    handle: handleList(listAllLinks, shown),
  }),
  endpoint({
    operation: 'showPaymentLink',
    route: 'GET /payment-links/{payment_link_id}',
    summary: 'Show a payment link; its payer is masked',
    ...ofOne('payment_link_id', 'payment link'),
    answers: { 200: Link },
    handle: async ({ host, params }) =>
      shown(await loaded(host, paymentLink, params.payment_link_id, 'payment link'), host),
  }),
]

function shown(link: PaymentLink, { app }: OperatorHost) {
  return {
    ...link,
    status: statusAt(link, app.clock.now()),
    amount_cents: linkAmountCents(link),
    refunded_cents: refundedCents(link),
    customer: { name: MASK, email: MASK, phone: link.customer.phone && MASK },
    processor_payment_id: link.payment?.processor_payment_id ?? null,
  }
}

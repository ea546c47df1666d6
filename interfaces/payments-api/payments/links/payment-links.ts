import { z } from 'zod'
import { simulateCompletion } from '../../../../application/payments/links/completions.ts'
import { createLink } from '../../../../application/payments/links/create-link.ts'
import { linkPage } from '../../../../application/payments/links/link-page.ts'
import { cancelLink, linkOf, listLinks } from '../../../../application/payments/links/links.ts'
import { refundLink } from '../../../../application/payments/links/refunds.ts'
import { showLink, showLinks } from '../../../../application/payments/links/show-links.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { LINK_STATUSES, paymentLink } from '../../../../domain/payments/links/payment-link.ts'
import { refundedCents } from '../../../../domain/payments/links/payment-link-refunds.ts'
import { create, created, once, REPEATED } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, ofOne, reference, word } from '../../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../../endpoints/lists.ts'
import { LINK_STATES } from '../../../endpoints/state-codes.ts'
import { contextOf, endpoint, keyed, partnerIn, payerOf, publicEndpoint } from '../../host/api.ts'
import { POLICY_REFUSALS } from '../../host/policy-refusals.ts'
import {
  CreatedPaymentLink,
  InstallmentPlan,
  newPaymentLink,
  RefundedPaymentLink,
  refundRequest,
  ShownPaymentLink,
  showCreated,
  shownRefunds,
  showPaymentLink,
} from './payment-link-schemas.ts'

const one = ofOne('payment_link_id', 'payment link')
const AWAY = { 502: 'The card processor could not be reached' } as const

export const paymentLinkEndpoints = [
  endpoint({
    operation: 'createPaymentLink',
    route: 'POST /payment-links',
    summary: 'Create a hosted checkout for a one-time charge, or for the down payment of an installment plan',
    description:
      'The service adds no fee: `total_cents` is `premium_cents` and `fee_cents`. For DIRECT_BILLING the link charges the ' +
      'down payment, and a monthly subscription takes the rest once that is paid. A live link is sent to the customer ' +
      'shortly after the answer.',
    body: newPaymentLink,
    ...created(CreatedPaymentLink),
    errors: {
      ...AWAY,
      404: 'Employer, policy or carrier is not there; the message names which',
      409: 'The policy is cancelled, or the card processor does not take the amount',
    },
    asksOutside: true,
    refuses: {
      400: [
        ...POLICY_REFUSALS[400],
        'charge_too_large',
        'email_refused',
        'installments_too_small',
        'no_installments_left',
        'return_url_refused',
      ],
      403: POLICY_REFUSALS[403],
      404: POLICY_REFUSALS[404],
      409: ['amount_refused', 'policy_cancelled'],
    },
    handle(call) {
      const { host, caller, body } = call
      return create(keyed(call), 'POST /payment-links', {
        create: (context) => createLink(host.app, caller.client, body, context),
        show: showCreated,
        repeated: paymentLink,
      })
    },
  }),
  endpoint({
    operation: 'listPaymentLinks',
    route: 'GET /payment-links',
    summary: 'List payment links, newest first',
    ...listOf(ShownPaymentLink, {
      carrier_id: narrowing(reference()),
      employer_id: narrowing(reference()),
      status: narrowing(word(...LINK_STATUSES)),
    }),
    handle: ({ host: { app }, caller, query }) =>
      listed(query, async (wanted) => {
        const { items, total } = await listLinks(app, caller.client, query, wanted)
        return { items: (await showLinks(app, items)).map(showPaymentLink), total }
      }),
  }),
  endpoint({
    operation: 'showPaymentLink',
    route: 'GET /payment-links/{payment_link_id}',
    summary: 'Show a payment link',
    ...one,
    answers: { 200: ShownPaymentLink },
    refuses: { 403: ['payment_link_out_of_scope'] },
    async handle({ host: { app }, caller, params }) {
      const link = accepted(await linkOf(app, caller.client, params.payment_link_id))
      return showPaymentLink(await showLink(app, link))
    },
  }),
  endpoint({
    operation: 'cancelPaymentLink',
    route: 'DELETE /payment-links/{payment_link_id}',
    summary: 'Cancel a payment link that is not paid; cancelling again changes nothing',
    description: 'A payment that was under way at the card processor still counts, with `late_payment`.',
    ...one,
    answers: { 200: ShownPaymentLink },
    errors: {
      ...one.errors,
      ...AWAY,
      409: 'The link is paid (refund it instead), or has expired',
    },
    asksOutside: true,
    refuses: { 409: ['payment_link_expired', 'payment_link_paid'], 403: ['payment_link_out_of_scope'] },
    async handle(call) {
      const { app } = call.host
      const link = accepted(await linkOf(app, call.caller.client, call.params.payment_link_id))
      return showPaymentLink(await showLink(app, accepted(await cancelLink(app, link, contextOf(call)))))
    },
  }),
  endpoint({
    operation: 'refundPaymentLink',
    route: 'POST /payment-links/{payment_link_id}/refund',
    summary: 'Refund a paid link, in part or in full',
    description:
      'Send an `Idempotency-Key`: only then can a request be repeated safely at any time. When the card processor does ' +
      'not answer (502), it may have refunded: the refund stays `pending`, and the service finds out after 15 minutes. ' +
      'Until then the same request without a key goes on with it; later it is a second refund. A refund that the ' +
      'processor takes its time for is answered as `pending`.',
    ...one,
    body: refundRequest,
    idempotent: REPEATED.answered,
    answers: { 200: RefundedPaymentLink },
    errors: {
      ...one.errors,
      ...AWAY,
      409: 'The link is not paid, nothing is left to refund, or another refund of it is under way',
    },
    asksOutside: true,
    refuses: {
      400: ['refund_exceeds_rest'],
      403: ['payment_link_out_of_scope'],
      409: ['nothing_to_refund', 'payment_link_not_paid', 'refund_pending'],
    },
    async handle(call) {
      const { host, caller, body } = call
      const { payment_link_id } = accepted(await linkOf(host.app, caller.client, call.params.payment_link_id))
      const refund = { amountCents: body.amount_cents, reason: body.reason }
      return once(keyed(call), `POST /payment-links/refund ${payment_link_id}`, async (context) => {
        const link = await refundLink(host.app, payment_link_id, refund, context)
        if (isRejection(link)) return link
        return {
          _id: payment_link_id,
          payment_id: link.payment!.payment_id,
          status: 'paid' as const,
          refunded_cents: refundedCents(link),
          refunds: shownRefunds(link),
        }
      })
    },
  }),
  endpoint({
    operation: 'simulateCompletion',
    route: 'POST /payment-links/{payment_link_id}/simulate-completion',
    summary: 'Pay a ONE_TIME link of the sandbox in full; a paid one stays as it is',
    access: partnerIn('sandbox', 'Completion simulation is available for sandbox keys only'),
    ...one,
    body: z.looseObject({}).describe('Whatever it holds is discarded'),
    answers: {
      200: z
        .object({ _id: id(), status: z.literal('paid'), already_paid: z.literal(true).optional() })
        .meta({ id: 'SimulatedCompletion' }),
    },
    errors: { ...one.errors, 409: 'The link is cancelled or has expired' },
    refuses: {
      400: ['direct_billing_not_simulated'],
      403: ['payment_link_out_of_scope'],
      409: LINK_STATES,
    },
    async handle(call) {
      const { app } = call.host
      const link = accepted(await linkOf(app, call.caller.client, call.params.payment_link_id))
      const { alreadyPaid } = accepted(await simulateCompletion(app, link, contextOf(call)))
      return {
        _id: link.payment_link_id,
        status: 'paid' as const,
        ...(alreadyPaid && { already_paid: true as const }),
      }
    },
  }),
]

export const publicPaymentLinkEndpoints = [
  publicEndpoint({
    operation: 'showPaymentLinkPage',
    route: 'GET /payment-links/{payment_link_id}',
    summary: 'What the page of a payment link shows to whoever has its address',
    access: payerOf('payment link'),
    ...one,
    answers: {
      200: z
        .object({
          _id: id(),
          status: z.enum(['payable', 'paid', 'cancelled', 'expired']),
          environment: z.enum(['live', 'sandbox']),
          seller: z.string().describe('Who asks for the money'),
          description: z.string(),
          amount_cents: z.int().describe('What is charged now'),
          currency: z.literal('usd'),
          premium_cents: z.int(),
          fee_cents: z.int(),
          total_cents: z.int(),
          installment_plan: InstallmentPlan.nullable(),
          expires_at: z.iso.datetime({ precision: 3 }),
          processor_url: z.string().nullable().describe('Where it is paid, while it can be'),
          after_completion_url: z.string().nullable().describe('Where the payer goes on, once it is paid'),
        })
        .meta({ id: 'PaymentLinkPage' }),
    },
    handle: ({ host: { app }, params }) => linkPage(app, params.payment_link_id),
  }),
]

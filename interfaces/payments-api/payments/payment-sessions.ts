import { z } from 'zod'
import { cancelFinancingSession } from '../../../application/payments/financing/cancel-session.ts'
import { showFinancingSession } from '../../../application/payments/financing/show-session.ts'
import {
  createSession,
  type HandedOutSession,
} from '../../../application/payments/sessions/create-session.ts'
import { cancelSession, reissueSession } from '../../../application/payments/sessions/end-session.ts'
import { listSessions, sessionOf } from '../../../application/payments/sessions/sessions.ts'
import { showSession, showSessions } from '../../../application/payments/sessions/show-sessions.ts'
import { isRejection, reject } from '../../../domain/kernel/rejection.ts'
import { SESSION_STATUSES } from '../../../domain/payments/sessions/payment-session-status.ts'
import { create, REPEATED } from '../../endpoints/creations.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne, reference, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../endpoints/lists.ts'
import { contextOf, endpoint, keyed, type PaymentsHost, partnerIn } from '../host/api.ts'
import { POLICY_REFUSALS } from '../host/policy-refusals.ts'
import { createFinanced, financedSession, NO_SANDBOX, sessionRequestFor } from './financing/financing.ts'
import {
  CreatedFinancingSession,
  newFinancingSession,
  showAsPaymentSession,
} from './financing/financing-schemas.ts'
import {
  asksForDelivery,
  CreatedSession,
  invitationsOf,
  newPaymentSession,
  reissueRequest,
  ShownPaymentSession,
  showHandedOut,
  showPaymentSession,
} from './sessions/payment-session-schemas.ts'

// a key of the sandbox is told what it may not do, whatever it names
const one = ofOne('payment_session_id', 'payment session', () => true)
const AWAY = { 502: 'The card processor could not be reached' } as const
const OFF = {
  403: 'The key does not open this API or reach what is named, or custom checkout is off or lacks a setting',
  503: 'No host serves the payment page',
} as const
const seller = partnerIn('live', NO_SANDBOX, 400)

export const paymentSessionEndpoints = [
  endpoint({
    operation: 'createPaymentSession',
    route: 'POST /payment-sessions',
    summary: 'Invite a customer to pay, on a page of yours or embedded in your application',
    description:
      'The address, or the client secret, is shown once. With `total_installments` the page sells a payment plan by ' +
      'bank debit: `amount_cents` is its down payment then. Sandbox keys create financing test sessions, and nothing else: ' +
      'try sessions with a live key of an installation whose card processor and bank rail are simulated.',
    body: z.union([newPaymentSession, newFinancingSession]),
    bodyFor: sessionRequestFor,
    idempotent: `${REPEATED.secret}. A financing session is answered again`,
    example: {
      employer_id: '66838f2a5b1c4d7e9f012345',
      policy_id: '66838f2a5b1c4d7e9f012345',
      premium_cents: 125_000,
      customer: { name: 'Ann Lee', email: 'ann.lee@acme-roofing.example' },
    },
    answers: {
      201: z.union([...CreatedSession.options, CreatedFinancingSession]),
      200: CreatedFinancingSession,
    },
    errors: { ...AWAY, ...OFF, 404: 'Employer, policy or carrier is not there; the message names which' },
    asksOutside: true,
    refuses: {
      400: [
        ...POLICY_REFUSALS[400],
        'amount_missing',
        'amounts_disagree',
        'down_payment_exceeds_total',
        'fee_breakdown_disagrees',
        'fee_exceeds_amount',
        'plan_incomplete',
        'sms_without_number',
        'total_out_of_bounds',
        'wrong_environment',
      ],
      403: [...POLICY_REFUSALS[403], 'checkout_not_enabled'],
      404: POLICY_REFUSALS[404],
      409: ['already_created', 'checkout_unavailable'],
      503: ['financing_off', 'no_payment_page_host'],
    },
    handle(call) {
      const { host, caller, body } = call
      if ('billing_method' in body) return createFinanced(call, body)
      const { customer, deliver } = body
      const invitations = accepted(invitationsOf(deliver, customer))
      return create(keyed(call), 'POST /payment-sessions', {
        create: (context) =>
          createSession(host.app, caller.client, body, invitations, host.portalUrl(), context),
        idOf: ({ session }) => session.payment_session_id,
        show: (handedOut) => shown(host, handedOut),
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'listPaymentSessions',
    route: 'GET /payment-sessions',
    summary: 'List payment sessions, newest first',
    access: seller,
    ...listOf(ShownPaymentSession, {
      employer_id: narrowing(reference()),
      policy_id: narrowing(reference()),
      carrier_id: narrowing(reference()),
      status: narrowing(word(...SESSION_STATUSES)),
    }),
    refuses: { 400: ['wrong_environment'] },
    handle: ({ host: { app }, caller, query }) =>
      listed(query, async (wanted) => {
        const { items, total } = await listSessions(app, caller.client, query, wanted)
        return { items: (await showSessions(app, items)).map(showPaymentSession), total }
      }),
  }),
  endpoint({
    operation: 'showPaymentSession',
    route: 'GET /payment-sessions/{payment_session_id}',
    summary: 'Show a payment session',
    description: 'With a sandbox key, a financing test session.',
    ...one,
    answers: { 200: ShownPaymentSession },
    refuses: {
      400: ['wrong_environment'],
      403: ['payment_session_out_of_scope'],
    },
    async handle({ host, caller, params }) {
      const { app } = host
      const financed = await financedSession({ host, caller }, params.payment_session_id)
      if (financed) return showAsPaymentSession(await showFinancingSession(app, financed))
      const session = accepted(await sessionOf(app, caller.client, params.payment_session_id))
      return showPaymentSession(await showSession(app, session))
    },
  }),
  endpoint({
    operation: 'cancelPaymentSession',
    route: 'DELETE /payment-sessions/{payment_session_id}',
    summary: 'Cancel a payment session that is not paid; cancelling again changes nothing',
    description:
      'A bank debit that was arranged goes its way; installments that are not yet created are not collected. With a ' +
      'sandbox key, of a financing test session.',
    ...one,
    answers: { 200: z.object({ id: id(), status: z.literal('cancelled') }).meta({ id: 'CancelledSession' }) },
    errors: { ...one.errors, ...AWAY, 409: 'The session is paid, or has expired' },
    asksOutside: true,
    refuses: {
      400: ['wrong_environment'],
      403: ['payment_session_out_of_scope'],
      409: ['checkout_open', 'payment_session_expired', 'payment_session_paid', 'payment_session_replaced'],
    },
    async handle(call) {
      const { app } = call.host
      const financed = await financedSession(call, call.params.payment_session_id)
      if (financed) {
        const { financing_session_id } = accepted(
          await cancelFinancingSession(app, financed, contextOf(call)),
        )
        return { id: financing_session_id, status: 'cancelled' as const }
      }
      const session = accepted(await sessionOf(app, call.caller.client, call.params.payment_session_id))
      const { payment_session_id } = accepted(await cancelSession(app, session, contextOf(call)))
      return { id: payment_session_id, status: 'cancelled' as const }
    },
  }),
  endpoint({
    operation: 'reissuePaymentSession',
    route: 'POST /payment-sessions/{payment_session_id}/reissue',
    summary: 'Issue a payment session anew; the old one is cancelled first',
    access: seller,
    ...one,
    body: reissueRequest,
    idempotent: REPEATED.secret,
    answers: { 201: CreatedSession },
    errors: {
      ...one.errors,
      ...AWAY,
      ...OFF,
      409: 'The session is paid, a bank debit is arranged for it, or another session replaced it',
    },
    asksOutside: true,
    refuses: {
      400: ['embedded_delivery', 'sms_without_number', 'wrong_environment'],
      403: ['payment_session_out_of_scope'],
      409: [
        'customer_erased',
        'debit_arranged',
        'payment_session_expired',
        'payment_session_paid',
        'payment_session_replaced',
      ],
      503: ['no_payment_page_host'],
    },
    async handle(call) {
      const { host, caller, body } = call
      const { app } = host
      const session = accepted(await sessionOf(app, caller.client, call.params.payment_session_id))
      const { payment_session_id } = session
      if (session.mode === 'embedded' && asksForDelivery(body.deliver)) {
        return reject('invalid', 'embedded_delivery', 'deliver is not for the mode embedded', 'deliver')
      }
      return create(keyed(call), `POST /payment-sessions/reissue ${payment_session_id}`, {
        async create(context) {
          // as it is now: another request may have replaced it meanwhile
          const current = await sessionOf(app, caller.client, payment_session_id)
          if (isRejection(current)) return current
          const wanted = {
            ttlMinutes: body.ttl_minutes,
            invitationsTo: (customer: Parameters<typeof invitationsOf>[1]) =>
              invitationsOf(body.deliver, customer),
            portalUrl: host.portalUrl(),
          }
          return reissueSession(app, current, wanted, context)
        },
        idOf: (handedOut: HandedOutSession) => handedOut.session.payment_session_id,
        show: (handedOut) => shown(host, handedOut),
        repeated: null,
      })
    },
  }),
]

async function shown({ app }: PaymentsHost, handedOut: HandedOutSession) {
  return showHandedOut(handedOut, await showSession(app, handedOut.session))
}

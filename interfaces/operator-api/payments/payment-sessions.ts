import { z } from 'zod'
import { MASK } from '../../../application/commands/sealed-fields.ts'
import { listAllSessions } from '../../../application/payments/operator-lists.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import {
  type PaymentSession,
  SESSION_STATUSES,
  sessionStatusAt,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, ofPolicy, scope } from '../host/lists.ts'
import { shownTime, whose } from '../host/values.ts'
import { Payer } from './payer.ts'

const Session = z
  .object({
    payment_session_id: id(),
    ...whose,
    policy_id: id(),
    status: z.enum(SESSION_STATUSES).describe('An open one whose time is over reads `expired`'),
    amount_cents: z.int(),
    customer: Payer,
    processor_payment_ids: z.array(z.string()).describe('What the card processor took, the first one first'),
    debit_leg_id: id().nullable().describe('The bank debit that the payer chose'),
    replaced_by: id().nullable(),
    created_at: shownTime(),
    expires_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorPaymentSession' })

export const paymentSessionEndpoints = [
  endpoint({
    operation: 'listPaymentSessions',
    route: 'GET /payment-sessions',
    summary: 'List payment sessions, newest first',
    ...listOf(Session, {
      ...scope,
      ...ofPolicy,
      status: narrowing(word(...SESSION_STATUSES)),
    }),
    columns: 'payment_session_id created_at environment status amount_cents employer_id',
    handle: handleList(listAllSessions, shown),
  }),
  endpoint({
    operation: 'showPaymentSession',
    route: 'GET /payment-sessions/{payment_session_id}',
    summary: 'Show a payment session; its payer is masked',
    ...ofOne('payment_session_id', 'payment session'),
    answers: { 200: Session },
    handle: async ({ host, params }) =>
      shown(await loaded(host, paymentSession, params.payment_session_id, 'payment session'), host),
  }),
]

function shown(session: PaymentSession, { app }: OperatorHost) {
  return {
    ...session,
    status: sessionStatusAt(session, app.clock.now()),
    customer: { name: MASK, email: MASK, phone: session.customer.phone && MASK },
    processor_payment_ids: session.payments.map(({ processor_payment_id }) => processor_payment_id),
    debit_leg_id: session.debit?.leg_id ?? null,
  }
}

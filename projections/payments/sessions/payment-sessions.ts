import { paymentSessions as table } from '../../../application/payments/sessions/payment-sessions-table.ts'
import {
  PaymentSessionCancelled,
  PaymentSessionCreated,
  PaymentSessionDebitArranged,
  PaymentSessionDebitConfirmed,
  PaymentSessionExpired,
  PaymentSessionOpened,
  PaymentSessionPaid,
  PaymentSessionPaymentFailed,
  PaymentSessionPaymentProcessing,
  PaymentSessionReplaced,
} from '../../../domain/payments/sessions/payment-session-events.ts'
import { projection } from '../../runtime/projection.ts'

type OfSession = { readonly data: { readonly payment_session_id: string } }

const ofSession = ({ data }: OfSession) => ({ payment_sessions: [[data.payment_session_id]] }) as const

/** Payment sessions as they are listed; the payer stays in the log. */
export const paymentSessions = projection({
  name: 'payment-sessions',
  version: 2,
  tables: [table],
  handlers: (on) => [
    on(PaymentSessionCreated, {
      apply: ({ data, position }, { payment_sessions }) =>
        payment_sessions.put({ ...data, status: 'pending', open: true, seq: position }),
    }),
    on(PaymentSessionOpened, {
      reads: ofSession,
      apply({ data: { payment_session_id } }, { payment_sessions }) {
        if (payment_sessions.get(payment_session_id)?.status !== 'pending') return
        payment_sessions.change([payment_session_id], { status: 'opened' })
      },
    }),
    on(PaymentSessionPaid, {
      reads: ofSession,
      apply: ({ data }, { payment_sessions }) =>
        payment_sessions.change([data.payment_session_id], { status: 'paid', open: false }),
    }),
    // a bank debit by the card processor is on its way
    on(PaymentSessionPaymentProcessing, {
      reads: ofSession,
      apply({ data: { payment_session_id } }, { payment_sessions }) {
        if (!payment_sessions.get(payment_session_id)?.open) return
        payment_sessions.change([payment_session_id], { status: 'scheduled', open: false })
      },
    }),
    on(PaymentSessionPaymentFailed, {
      reads: ofSession,
      apply({ data: { payment_session_id, ends_checkout } }, { payment_sessions }) {
        if (!ends_checkout || payment_sessions.get(payment_session_id)?.status !== 'scheduled') return
        payment_sessions.change([payment_session_id], { status: 'opened', open: true })
      },
    }),
    on(PaymentSessionDebitArranged, {
      reads: ofSession,
      apply: ({ data }, { payment_sessions }) =>
        payment_sessions.change([data.payment_session_id], { status: 'scheduled', open: false }),
    }),
    on(PaymentSessionDebitConfirmed, {
      reads: ofSession,
      apply({ data: { payment_session_id, sells_plan } }, { payment_sessions }) {
        // a plan stays scheduled for its life, and what was cancelled stays so
        if (sells_plan || payment_sessions.get(payment_session_id)?.status !== 'scheduled') return
        payment_sessions.change([payment_session_id], { status: 'paid' })
      },
    }),
    on(PaymentSessionCancelled, {
      reads: ofSession,
      apply: ({ data }, { payment_sessions }) =>
        payment_sessions.change([data.payment_session_id], { status: 'cancelled', open: false }),
    }),
    on(PaymentSessionExpired, {
      reads: ofSession,
      apply: ({ data }, { payment_sessions }) =>
        payment_sessions.change([data.payment_session_id], { status: 'expired', open: false }),
    }),
    on(PaymentSessionReplaced, {
      reads: ofSession,
      apply({ data: { payment_session_id } }, { payment_sessions }) {
        if (!payment_sessions.get(payment_session_id)?.open) return
        payment_sessions.change([payment_session_id], { status: 'cancelled', open: false })
      },
    }),
  ],
})

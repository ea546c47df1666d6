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
import { changing, projection } from '../../runtime/projection.ts'

const ofSession = changing(table)

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
    ofSession(PaymentSessionOpened, (_event, row) =>
      row?.status === 'pending' ? { status: 'opened' } : null,
    ),
    ofSession(PaymentSessionPaid, () => ({ status: 'paid', open: false })),
    // a bank debit by the card processor is on its way
    ofSession(PaymentSessionPaymentProcessing, (_event, row) =>
      row?.open ? { status: 'scheduled', open: false } : null,
    ),
    ofSession(PaymentSessionPaymentFailed, ({ data: { ends_checkout } }, row) =>
      ends_checkout && row?.status === 'scheduled' ? { status: 'opened', open: true } : null,
    ),
    ofSession(PaymentSessionDebitArranged, () => ({ status: 'scheduled', open: false })),
    // a plan stays scheduled for its life, and what was cancelled stays so
    ofSession(PaymentSessionDebitConfirmed, ({ data: { sells_plan } }, row) =>
      !sells_plan && row?.status === 'scheduled' ? { status: 'paid' } : null,
    ),
    ofSession(PaymentSessionCancelled, () => ({ status: 'cancelled', open: false })),
    ofSession(PaymentSessionExpired, () => ({ status: 'expired', open: false })),
    ofSession(PaymentSessionReplaced, (_event, row) =>
      row?.open ? { status: 'cancelled', open: false } : null,
    ),
  ],
})

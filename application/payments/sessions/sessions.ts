import type { Rejection } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { partnerList } from '../../queries/lists.ts'

/** A session that a partner names. */
export async function sessionOf(
  app: Reads,
  client: KeyScope,
  sessionId: string,
): Promise<PaymentSession | Rejection> {
  const session = await stateOf(app, paymentSession, sessionId)
  return ownedBy(client, session, 'payment session', (one) => mayReach(client, one))
}

/** The sessions within the scope of a key. */
export const listSessions = partnerList(paymentSession, {
  projection: 'payment-sessions',
  table: 'payment_sessions',
  id: 'payment_session_id',
  by: ['employer_id', 'policy_id', 'carrier_id', 'status'],
  expires: true,
})

import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  type PaymentSession,
  paymentSession,
  type SessionStatus,
} from '../../domain/payments/payment-session.ts'
import type { Application } from '../application.ts'

type Scope = Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>

/** A session that a partner names: one of another tenant or environment is not found, one out of scope forbidden. */
export async function sessionOf(
  { commands }: Pick<Application, 'commands'>,
  client: Scope,
  sessionId: string,
): Promise<PaymentSession | Rejection> {
  const state = isId(sessionId) ? (await commands.load(paymentSession, sessionId)).state : null
  if (state?.tenant_id !== client.tenant_id || state.environment !== client.environment) {
    return reject('not_found', 'payment_session_not_found', 'There is no such payment session')
  }
  if (mayActFor(client, state.employer_id) && mayUseCarrier(client, state.carrier_id)) return state
  const why = 'The payment session lies outside the scope of the key'
  return reject('forbidden', 'payment_session_out_of_scope', why)
}

void isoTime
export type { SessionStatus }

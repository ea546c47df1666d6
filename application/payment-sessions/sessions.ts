import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { paymentSession } from '../../domain/payments/payment-session.ts'
import type { PaymentSession, SessionStatus } from '../../domain/payments/payment-session-status.ts'
import type { Application } from '../application.ts'
import {
  isWithinKey,
  type KeyScope,
  keyScope,
  type ListPage,
  loadPage,
  type PageRequest,
  pagedList,
} from '../read-models/pages.ts'
import { equalsIfGiven, type Parameter, readsStatus, type StatusWanted } from '../read-models/statement.ts'

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

/** What a list of sessions is narrowed to; null is everything. */
interface SessionScope extends KeyScope, StatusWanted {
  readonly employerId: string | null
  readonly policyId: string | null
  readonly carrierId: string | null
  readonly status: SessionStatus | null
}

const SESSIONS = pagedList(
  { projection: 'payment-sessions', name: 'payment-sessions' },
  (db, $: Parameter<SessionScope>) =>
    db
      .selectFrom('payment_sessions')
      .select('payment_session_id as id')
      .where((eb) => isWithinKey(eb, $))
      .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
      .where((eb) => equalsIfGiven(eb, 'policy_id', $('policyId')))
      .where((eb) => equalsIfGiven(eb, 'carrier_id', $('carrierId')))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** Sessions within the scope of a key, newest first. */
export async function listSessions(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  client: Scope,
  filter: Pick<SessionScope, 'employerId' | 'policyId' | 'carrierId' | 'status'>,
  page: PageRequest,
): Promise<ListPage<PaymentSession>> {
  const now = isoTime(app.clock.now())
  const scope = { ...keyScope(client), ...filter, now, expired: 'expired' as const }
  return loadPage(app, paymentSession, SESSIONS, scope, page)
}

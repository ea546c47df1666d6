import { isoTime } from '../../../domain/kernel/calendar.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type {
  PaymentSession,
  SessionStatus,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { Reads } from '../../commands/command-handler.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import {
  isWithinKey,
  keyScope,
  type KeyScope as ListedScope,
  loadPage,
  pagedList,
} from '../../queries/pages.ts'
import { equalIfGiven, type Parameter, readsStatus, type StatusWanted } from '../../queries/statement.ts'

/** A session that a partner names. */
export async function sessionOf(
  app: Reads,
  client: KeyScope,
  sessionId: string,
): Promise<PaymentSession | Rejection> {
  const session = await stateOf(app, paymentSession, sessionId)
  return ownedBy(client, session, 'payment session', (one) => mayReach(client, one))
}

/** What a list of sessions is narrowed to; null is everything. */
interface SessionScope extends ListedScope, StatusWanted {
  readonly employer_id: string | null
  readonly policy_id: string | null
  readonly carrier_id: string | null
  readonly status: SessionStatus | null
}

const SESSIONS = pagedList(
  { projection: 'payment-sessions', name: 'payment-sessions' },
  (db, $: Parameter<SessionScope>) =>
    db
      .selectFrom('payment_sessions')
      .select('payment_session_id as id')
      .where((eb) => isWithinKey(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'policy_id', 'carrier_id'))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** Sessions within the scope of a key, newest first. */
export async function listSessions(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  client: KeyScope,
  filter: Pick<SessionScope, 'employer_id' | 'policy_id' | 'carrier_id' | 'status'>,
  page: PageRequest,
): Promise<ListPage<PaymentSession>> {
  const now = isoTime(app.clock.now())
  const scope = { ...keyScope(client), ...filter, now, expired: 'expired' as const }
  return loadPage(app, paymentSession, SESSIONS, scope, page)
}

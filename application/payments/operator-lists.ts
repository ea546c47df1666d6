import { isoTime } from '../../domain/kernel/calendar.ts'
import {
  type PaymentLink,
  type PaymentLinkStatus,
  paymentLink,
} from '../../domain/payments/links/payment-link.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession, SessionStatus } from '../../domain/payments/sessions/payment-session-status.ts'
import { type Subscription, subscription } from '../../domain/payments/subscriptions/subscription.ts'
import type { SubscriptionStatus } from '../../domain/payments/subscriptions/subscription-events.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter, readsStatus, type StatusWanted } from '../queries/statement.ts'

/** What operators see of what was sold, across tenants. */

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>

/** What a list is narrowed to; null is everything. */
interface SaleScope extends ListScope {
  readonly employer_id: string | null
  readonly carrier_id: string | null
}
type WithStatus<Status> = SaleScope & { readonly status: Status | null }

const LINKS = pagedList(
  { projection: 'payment-links', name: 'operator-payment-links' },
  (db, $: Parameter<SaleScope & StatusWanted>) =>
    db
      .selectFrom('payment_links')
      .select('payment_link_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id'))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** Payment links, newest first. */
export function listAllLinks(
  app: Parts & Pick<Application, 'clock'>,
  scope: WithStatus<PaymentLinkStatus>,
  page: PageRequest,
): Promise<ListPage<PaymentLink>> {
  return loadPage(app, paymentLink, LINKS, asOfNow(app, scope), page)
}

const SESSIONS = pagedList(
  { projection: 'payment-sessions', name: 'operator-payment-sessions' },
  (db, $: Parameter<SaleScope & StatusWanted & { readonly policy_id: string | null }>) =>
    db
      .selectFrom('payment_sessions')
      .select('payment_session_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'policy_id'))
      .where((eb) => readsStatus(eb, $))
      .orderBy('seq', 'desc'),
)

/** Payment sessions, newest first. */
export function listAllSessions(
  app: Parts & Pick<Application, 'clock'>,
  scope: WithStatus<SessionStatus> & { readonly policy_id: string | null },
  page: PageRequest,
): Promise<ListPage<PaymentSession>> {
  return loadPage(app, paymentSession, SESSIONS, asOfNow(app, scope), page)
}

const SUBSCRIPTIONS = pagedList(
  { projection: 'subscriptions', name: 'operator-subscriptions' },
  (db, $: Parameter<WithStatus<SubscriptionStatus> & { readonly policy_id: string | null }>) =>
    db
      .selectFrom('subscriptions')
      .select('subscription_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'policy_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Subscriptions, newest first. */
export function listAllSubscriptions(
  app: Parts,
  scope: WithStatus<SubscriptionStatus> & { readonly policy_id: string | null },
  page: PageRequest,
): Promise<ListPage<Subscription>> {
  return loadPage(app, subscription, SUBSCRIPTIONS, scope, page)
}

function asOfNow<Scope>({ clock }: Pick<Application, 'clock'>, scope: Scope) {
  return { ...scope, now: isoTime(clock.now()), expired: 'expired' as const }
}

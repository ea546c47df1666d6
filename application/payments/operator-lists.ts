import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'

/** Payment links. */
export const listAllLinks = operatorList(paymentLink, {
  projection: 'payment-links',
  table: 'payment_links',
  id: 'payment_link_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'status'],
  expires: true,
})

/** Payment sessions. */
export const listAllSessions = operatorList(paymentSession, {
  projection: 'payment-sessions',
  table: 'payment_sessions',
  id: 'payment_session_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'policy_id', 'status'],
  expires: true,
})

/** Subscriptions. */
export const listAllSubscriptions = operatorList(subscription, {
  projection: 'subscriptions',
  table: 'subscriptions',
  id: 'subscription_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'policy_id', 'status'],
})

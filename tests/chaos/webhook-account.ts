import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import type { ReceivedRequest } from '../support/webhook-receiver.ts'
import type { LoggedEvent, LoggedEvents } from './logged-events.ts'
import type { WebhookListeners } from './webhook-listeners.ts'

/** A delivery that has to be made of an event, as the log says. */
export interface OwedDelivery {
  readonly eventId: string
  readonly eventType: string
  readonly body: string
  readonly subscriptionId: string
}

/** What partners are owed, computed from the log apart from the service. */
export interface Owed {
  /** By event and subscription: {@link keyOf}. */
  readonly deliveries: ReadonlyMap<string, OwedDelivery>
  /** Subscriptions by the paths that they had. */
  readonly ownerOfPath: ReadonlyMap<string, string>
  readonly deleted: ReadonlySet<string>
}

export function keyOf({ eventId, subscriptionId }: Pick<OwedDelivery, 'eventId' | 'subscriptionId'>): string {
  return `${eventId} ${subscriptionId}`
}

interface Subscription {
  isActive: boolean
  events: readonly string[]
  readonly carriers: 'all' | readonly string[]
  readonly employers: 'all' | readonly string[]
}

/** Everything that was raised goes to the subscriptions as of its place in the log. */
export function owedBy(log: LoggedEvents): Owed {
  const deliveries = new Map<string, OwedDelivery>()
  const ownerOfPath = new Map<string, string>()
  const deleted = new Set<string>()
  const scopes = new Map<string, Map<string, Subscription>>()
  for (const { category, of, type, data } of log.all) {
    if (category === 'webhookSubscriptions') {
      const subscriptions = scopes.get(of) ?? new Map<string, Subscription>()
      scopes.set(of, subscriptions)
      const id = data.subscription_id
      if (data.url !== undefined) ownerOfPath.set(new URL(data.url).pathname, id)
      const known = subscriptions.get(id)
      if (type === 'WebhookSubscriptionRegistered') {
        const { events, carrier_ids: carriers, employer_ids: employers } = data
        subscriptions.set(id, { isActive: true, events, carriers, employers } as Subscription)
      } else if (type === 'WebhookSubscriptionDeleted') {
        subscriptions.delete(id)
        deleted.add(id)
      } else if (type === 'WebhookSubscriptionDisabled') known!.isActive = false
      else if (type === 'WebhookSubscriptionEnabled') known!.isActive = true
      else if (data.events) known!.events = data.events as string[]
    }
    if (type !== 'WebhookEventRaised') continue
    const { event_id: eventId, event_type: eventType } = data as Record<string, string>
    for (const [subscriptionId, one] of scopes.get(`${data.tenant_id}_${data.environment}`) ?? []) {
      const holds = (ids: 'all' | readonly string[], id: string) => ids === 'all' || ids.includes(id)
      if (!one.isActive || !one.events.includes(eventType!)) continue
      if (!holds(one.carriers, data.carrier_id) || !holds(one.employers, data.employer_id)) continue
      const owed = {
        eventId: eventId!,
        eventType: eventType!,
        body: JSON.stringify(data.payload),
        subscriptionId,
      }
      deliveries.set(keyOf(owed), owed)
    }
  }
  return { deliveries, ownerOfPath, deleted }
}

/** What partners have to hear of everything that happened, and what they heard, each as lines in an order of their own. */
export function sentAndDue(log: LoggedEvents): { readonly told: string[]; readonly due: string[] } {
  const due = log.all.flatMap(dueOf)
  const told = log.ofType('WebhookEventRaised').map(({ data: { event_type, payload } }) => {
    switch (event_type) {
      case 'payment.completed':
        return line(event_type, soldBy(payload), payload.payment_id, payload.amount_paid_cents)
      case 'payment.failed':
        return line(event_type, soldBy(payload), payload.failed_at)
      case 'payment.refunded':
        return line(event_type, payload.payment_link_id, payload.amount_cents, payload.refunded_cents)
      case 'installment.paid':
      case 'installment.failed': {
        const { subscription_id, installment_number, amount_cents, paid_at, failed_at } = payload
        return line(event_type, subscription_id, installment_number, amount_cents, paid_at ?? failed_at)
      }
      default:
        return line(event_type, payload.subscription_id)
    }
  })
  return { told: told.sort(), due: due.sort() }
}

function dueOf({ type, data }: LoggedEvent): string[] {
  switch (type) {
    case 'PaymentLinkPaid':
      return [line('payment.completed', data.payment_link_id, data.payment_id, data.amount_cents)]
    case 'PaymentSessionPaid':
      return [line('payment.completed', data.payment_session_id, data.payment_id, data.amount_cents)]
    case 'PaymentLinkPaymentFailed':
    case 'PaymentSessionPaymentFailed':
      return [line('payment.failed', soldBy(data), data.failed_at)]
    case 'PaymentLinkRefunded':
      return [line('payment.refunded', data.payment_link_id, data.amount_cents, data.refunded_cents)]
    case 'SubscriptionStarted':
      return [line('subscription.created', data.subscription_id)]
    case 'SubscriptionChargePaid':
    case 'SubscriptionChargeFailed': {
      const event = type === 'SubscriptionChargePaid' ? 'installment.paid' : 'installment.failed'
      return [line(event, data.subscription_id, data.number, data.amount_cents, data.at)]
    }
    case 'SubscriptionEnded':
      return data.reason === 'requested' ? [line('subscription.cancelled', data.subscription_id)] : []
    default:
      return []
  }
}

/** The link or the session by which something was sold. */
function soldBy(data: LoggedEvent['data']): string {
  return data.payment_link_id ?? data.payment_session_id
}

function line(...parts: readonly unknown[]): string {
  return parts.join(' ')
}

/**
 * Holds every attempt that came in against the log: it was owed, its body is that of the event byte for byte, its
 * headers name the event, and both signatures are valid, made anew for each attempt.
 * @returns attempts by delivery, each oldest first.
 */
export function checkAttempts(
  requests: readonly ReceivedRequest[],
  owed: Owed,
  secrets: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlyMap<string, readonly ReceivedRequest[]> {
  const attempts = new Map<string, ReceivedRequest[]>()
  for (const request of requests) {
    const { headers, path, body } = request
    const eventId = headers['x-webhook-id']!
    const subscriptionId = owed.ownerOfPath.get(path) ?? 'nobody'
    const key = keyOf({ eventId, subscriptionId })
    const delivery = owed.deliveries.get(key)
    expect(delivery, `${headers['x-webhook-event']} ${eventId} came to ${path}`).toBeDefined()
    expect(body.toString(), `${eventId} at ${path}`).toBe(delivery!.body)
    expect([headers['x-webhook-event'], headers['webhook-id']]).toEqual([delivery!.eventType, eventId])
    const isValid = [...(secrets.get(subscriptionId) ?? [])].some((secret) => isSigned(request, secret))
    expect(isValid, `the signatures of ${eventId} at ${path}`).toBe(true)
    attempts.set(key, [...(attempts.get(key) ?? []), request])
  }
  for (const [key, made] of attempts) {
    const times = made.map(({ headers }) => headers['x-webhook-timestamp'])
    expect(new Set(times).size, `${key} was signed at ${times}`).toBe(times.length)
  }
  return attempts
}

/** Whether both signatures are of a secret: ours by what is documented, the other by its standard's library. */
function isSigned({ headers, body }: ReceivedRequest, secret: string): boolean {
  const text = `${headers['x-webhook-timestamp']}.${body}`
  if (createHmac('sha256', secret).update(text).digest('hex') !== headers['x-webhook-signature']) return false
  const signature = new Webhook(secret).sign(
    headers['webhook-id']!,
    new Date(Number(headers['webhook-timestamp']) * 1000),
    body.toString(),
  )
  return headers['webhook-signature'] === signature
}

/** When deliveries were accepted, by event and subscription, whatever its address was then. */
export function acceptedBySubscription(
  { accepted }: Pick<WebhookListeners, 'accepted'>,
  { ownerOfPath }: Pick<Owed, 'ownerOfPath'>,
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>()
  for (const [pair, times] of accepted) {
    const [eventId, path] = pair.split(' ') as [string, string]
    const key = keyOf({ eventId, subscriptionId: ownerOfPath.get(path)! })
    found.set(key, [...(found.get(key) ?? []), ...times].sort())
  }
  return found
}

import { isRejection, orThrow } from '../../domain/kernel/rejection.ts'
import {
  afterFailure,
  DROP_AGE,
  FAILURES_TO_DISABLE,
  IMMEDIATE_ATTEMPTS,
  isExpired,
  isLive,
  type NextAttempt,
} from '../../domain/webhooks/delivery-schedule.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import {
  subscriptionOf,
  subscriptionsId,
  type WebhookSubscription,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { LeaseLost, TimeLimitExceeded } from '../followers/attempt.ts'
import { contextOf, type WorkItem, type WorkOutcome } from '../followers/process-manager.ts'
import type { AttemptResult, Delivery, WebhookAnswer } from '../ports/webhooks.ts'
import type { DeliveryParts } from './delivery-parts.ts'

/** How long an attempt under way is waited for when the service stops, in real milliseconds. */
const GRACE_MS = 1_500

type Payload = { subscription_id: string; host: string }
type Outcome = WorkOutcome<Payload>

const DONE: Outcome = { outcome: 'done' }

/**
 * Attempts a delivery, or finds that it is over, or has to wait. The claim of the work is what says that an attempt is
 * under way: a crash makes the next claim repeat it under its number. Its result is recorded before the work ends, so that
 * what was accepted is not sent again.
 */
export async function deliver(parts: DeliveryParts, item: WorkItem<Payload>): Promise<Outcome> {
  const { records, commands, clock } = parts
  const delivery = await records.load(item.key)
  if (delivery?.nextAttemptAt == null) return DONE
  const { tenantId, environment, subscriptionId } = delivery
  const { state, revision } = await commands.load(
    webhookSubscriptions,
    subscriptionsId(tenantId, environment),
  )
  const subscription = subscriptionOf(state, subscriptionId)
  if (!subscription) {
    await records.giveUp(delivery.deliveryId, 'The subscription was deleted')
    await records.forgetFailures(subscriptionId)
    return DONE
  }
  const now = clock.now()
  if (isExpired(delivery, now)) return drop(parts, item, delivery)
  if (subscription.status === 'disabled') return again(delivery.createdAt + DROP_AGE)
  // the count was stored, and a crash came before the command
  if (delivery.failureCount >= FAILURES_TO_DISABLE && (await disable(parts, item, delivery))) {
    return again(delivery.createdAt + DROP_AGE)
  }
  // the first is due when the event was raised, whatever the clock of who raised it said
  if (delivery.attempts > 0 && delivery.nextAttemptAt > now) return again(delivery.nextAttemptAt)
  const secret = await parts.vault.get(subscription.secret_ref)
  if (secret === null) return afterRotation(parts, delivery, subscription)
  const answer = await attempt(parts, item, delivery, { url: subscription.url, secret }, now)
  const isAccepted = answer.error === null
  item.freeKey(isAccepted)
  parts.heard.attempted({
    isFirst: delivery.attempts === 0,
    isAccepted,
    sinceRaisedMs: now - delivery.createdAt,
  })
  const next = isAccepted ? null : afterFailure(delivery, clock.now(), spread(parts, delivery))
  const failures = await records.record(resultOf(delivery, { answer, next, revision, at: now }))
  if (next === null) return DONE
  if (delivery.attempts + 1 === IMMEDIATE_ATTEMPTS) {
    parts.heard.failed()
    if (failures >= FAILURES_TO_DISABLE) await disable(parts, item, delivery)
  }
  return again(next.at)
}

/** Waits for a time of the service's clock, as work that nothing new waits for. */
function again(at: number): Outcome {
  return { outcome: 'again', at, kind: 'redeliver' }
}

/** Goes on by what a subscription has become, whose secret left the vault after it was read. @throws Error when it has not. */
async function afterRotation(
  { commands }: DeliveryParts,
  { tenantId, environment }: Delivery,
  { _id, secret_ref }: WebhookSubscription,
): Promise<Outcome> {
  const { state } = await commands.load(webhookSubscriptions, subscriptionsId(tenantId, environment))
  if (subscriptionOf(state, _id)?.secret_ref !== secret_ref) return { outcome: 'again', afterMs: 0 }
  throw new Error('The secret of a webhook subscription is not in the vault')
}

async function attempt(
  { sender }: DeliveryParts,
  { signal }: WorkItem,
  { eventId, eventType, body }: Delivery,
  { url, secret }: { readonly url: string; readonly secret: string },
  timestamp: number,
): Promise<WebhookAnswer> {
  const ended = withGrace(signal)
  try {
    return await sender.post({ url, secret, eventId, eventType, body, timestamp }, ended.signal)
  } finally {
    ended.forget()
  }
}

/** @param at when the attempt began. */
function resultOf(
  delivery: Delivery,
  made: {
    readonly answer: WebhookAnswer
    readonly next: NextAttempt | null
    readonly revision: number
    readonly at: number
  },
): AttemptResult {
  const { deliveryId, subscriptionId, attempts } = delivery
  const { answer, next, revision, at } = made
  const attempt = attempts + 1
  const health = next === null ? 'success' : attempt === IMMEDIATE_ATTEMPTS ? 'failure' : null
  return {
    deliveryId,
    subscriptionId,
    attempt,
    at,
    revision,
    ...answer,
    status: next?.status ?? 'delivered',
    rung: next?.rung ?? delivery.rung,
    nextAttemptAt: next?.at ?? null,
    counts: isLive(delivery) ? health : null,
  }
}

/** Redeliveries of one outage are spread, always the same for one delivery; a clock of tests is told no other times. */
function spread({ clock }: DeliveryParts, { deliveryId }: Delivery): number {
  return clock.kind === 'virtual' ? 0 : Number.parseInt(deliveryId.slice(0, 6), 16) / 2 ** 24
}

/** Gives a delivery up: the log says so first, where operators find it. */
async function drop(parts: DeliveryParts, item: WorkItem, delivery: Delivery): Promise<Outcome> {
  const { eventId, subscriptionId, deliveryId } = delivery
  orThrow(
    await parts.commands.execute(
      webhookEvent,
      eventId,
      { type: 'Drop', subscriptionId, deliveryId },
      contextOf(item),
    ),
  )
  await parts.records.giveUp(deliveryId, 'It was not accepted within 48 hours')
  parts.heard.dropped()
  return DONE
}

/**
 * Disables a subscription whose count is full, unless it was enabled since: then the count begins anew, whether or not
 * who enabled it has come to that.
 * @returns whether it is disabled.
 */
async function disable(parts: DeliveryParts, item: WorkItem, delivery: Delivery): Promise<boolean> {
  const { tenantId, environment, subscriptionId } = delivery
  const { commands, records } = parts
  const id = subscriptionsId(tenantId, environment)
  const { state } = await commands.load(webhookSubscriptions, id)
  const enabledRevision = subscriptionOf(state, subscriptionId)?.enabled_revision ?? -1
  if (enabledRevision >= 0) {
    await records.resetFailures(subscriptionId, enabledRevision)
    const counts = await records.failureCounts([subscriptionId])
    if ((counts.get(subscriptionId) ?? 0) < FAILURES_TO_DISABLE) return false
  }
  const outcome = await commands.execute(
    webhookSubscriptions,
    id,
    { type: 'Disable', subscriptionId, by: 'failures', enabledRevision, at: parts.clock.now() },
    // the same piece may find a full count again, after the subscription was enabled
    { ...contextOf(item), ordinal: enabledRevision + 1 },
  )
  // it was deleted
  if (isRejection(outcome)) return false
  if (outcome.events.length > 0) parts.heard.disabled()
  return subscriptionOf(outcome.state, subscriptionId)?.status === 'disabled'
}

/** A signal that leaves an attempt some time when the service stops, so that it need not be repeated. */
function withGrace(signal: AbortSignal): { readonly signal: AbortSignal; forget(): void } {
  const ended = new AbortController()
  let grace: NodeJS.Timeout | undefined
  const abort = () => {
    const { reason } = signal
    const isOver = reason instanceof TimeLimitExceeded || reason instanceof LeaseLost
    if (isOver) ended.abort(reason)
    else grace = setTimeout(() => ended.abort(reason), GRACE_MS)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', abort)
  return {
    signal: ended.signal,
    forget() {
      clearTimeout(grace)
      signal.removeEventListener('abort', abort)
    },
  }
}

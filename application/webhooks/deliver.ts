import { isRejection, orThrow } from '../../domain/kernel/rejection.ts'
import {
  afterFailure,
  DROP_AGE,
  FAILURES_TO_DISABLE,
  IMMEDIATE_ATTEMPTS,
  isExpired,
  isLive,
} from '../../domain/webhooks/delivery-schedule.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import {
  subscriptionOf,
  subscriptionsId,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { LeaseLost, TimeLimitExceeded } from '../followers/attempt.ts'
import { contextOf, type WorkItem, type WorkOutcome } from '../followers/process-manager.ts'
import type { Delivery } from '../ports/webhooks.ts'
import type { DeliveryParts } from './delivery-parts.ts'

/** How long an attempt under way is waited for when the service stops, in real milliseconds. */
const GRACE_MS = 1_500

type Item = WorkItem<Delivery>
type Outcome = WorkOutcome<Delivery>

const DONE: Outcome = { outcome: 'done' }

/**
 * Attempts a delivery, or finds that it is over, or has to wait. Its claim is what says that an attempt is under way: a
 * crash makes the next claim repeat it under its number. What it came to is recorded in the row that was claimed.
 */
export async function deliver(parts: DeliveryParts, item: Item): Promise<Outcome> {
  const { records, commands, clock } = parts
  const delivery = item.payload
  const { tenantId, environment, subscriptionId } = delivery
  const { state, revision } = await commands.load(
    webhookSubscriptions,
    subscriptionsId(tenantId, environment),
  )
  const subscription = subscriptionOf(state, subscriptionId)
  if (!subscription) {
    await records.forget(subscriptionId)
    return DONE
  }
  const now = clock.now()
  if (isExpired(delivery, now)) return drop(parts, item, delivery)
  const isDisabled =
    subscription.status === 'disabled' ||
    // the count was stored, and a crash came before the command
    (delivery.failureCount >= FAILURES_TO_DISABLE && (await disable(parts, item, delivery)))
  if (isDisabled && delivery.isResent) {
    await records.giveUp(delivery.deliveryId, 'The subscription was disabled')
    return DONE
  }
  if (isDisabled) {
    await records.sleep(delivery.deliveryId, revision)
    return { outcome: 'again', at: delivery.createdAt + DROP_AGE }
  }
  const secret = await parts.vault.get(subscription.secret_ref)
  // it was rotated after it was read
  if (secret === null) return { outcome: 'retry', why: 'The secret of the subscription is not in the vault' }
  const { deliveryId, eventId, eventType, body, createdAt } = delivery
  const { signal, forget } = withGrace(item.signal)
  const request = { url: subscription.url, secret, eventId, eventType, body, timestamp: now }
  const answer = await parts.sender.post(request, signal).finally(forget)
  const isAccepted = answer.error === null
  item.freeKey(isAccepted)
  const attempt = delivery.attempts + 1
  const isFirst = attempt === 1 && isLive(delivery)
  parts.heard.attempted({ isFirst, isAccepted, sinceRaisedMs: now - createdAt })
  const next = isAccepted ? null : afterFailure(delivery, clock.now(), spread(parts, delivery))
  const health = isAccepted ? 'success' : attempt === IMMEDIATE_ATTEMPTS ? 'failure' : null
  const failures = await records.record({
    deliveryId,
    subscriptionId,
    attempt,
    at: now,
    revision,
    ...answer,
    status: next?.status ?? 'delivered',
    rung: next?.rung ?? delivery.rung,
    nextAttemptAt: next?.at ?? null,
    counts: isLive(delivery) ? health : null,
  })
  if (next === null) return DONE
  if (attempt === IMMEDIATE_ATTEMPTS) {
    if (isLive(delivery)) parts.heard.failed()
    if (failures >= FAILURES_TO_DISABLE) await disable(parts, item, delivery)
  }
  return next.at === null ? DONE : { outcome: 'again', at: next.at }
}

/** Redeliveries of one outage are spread, always the same for one delivery; a clock of tests is told no other times. */
function spread({ clock }: DeliveryParts, { deliveryId }: Delivery): number {
  return clock.kind === 'virtual' ? 0 : Number.parseInt(deliveryId.slice(0, 6), 16) / 2 ** 24
}

/** Gives a delivery up: the log says so first, where operators find it. */
async function drop(parts: DeliveryParts, item: Item, delivery: Delivery): Promise<Outcome> {
  const { eventId, subscriptionId, deliveryId } = delivery
  orThrow(
    await parts.commands.execute(
      webhookEvent,
      eventId,
      { type: 'Drop', subscriptionId, deliveryId },
      contextOf(item),
    ),
  )
  await parts.records.giveUp(deliveryId, 'The event was not accepted within 48 hours')
  parts.heard.dropped()
  return DONE
}

/**
 * Disables a subscription whose count is full, unless it was enabled since: then the count begins anew, whether or not
 * who enabled it has come to that.
 * @returns whether it is disabled.
 */
async function disable(parts: DeliveryParts, item: Item, delivery: Delivery): Promise<boolean> {
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

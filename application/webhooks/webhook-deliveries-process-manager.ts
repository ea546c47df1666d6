import { z } from 'zod'
import type { EventOf } from '../../domain/kernel/event-type.ts'
import { isExpired } from '../../domain/webhooks/delivery-schedule.ts'
import { WebhookEventRaised } from '../../domain/webhooks/webhook-event.ts'
import {
  WebhookSecretRotated,
  WebhookSubscriptionDeleted,
  WebhookSubscriptionEnabled,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { derivedId, type RecordedEvent } from '../commands/event-registry.ts'
import { groupBy } from '../commands/group-by.ts'
import { backoff, on, perform, processManager, type SlotsPerKey, work } from '../followers/process-manager.ts'
import type { Delivery } from '../ports/webhooks.ts'
import { deliver } from './deliver.ts'
import type { DeliveryParts } from './delivery-parts.ts'
import { Recipients } from './recipients.ts'

/** Events at a time: each may have a hundred recipients. */
const EVENTS_AT_ONCE = 200
/** A crash costs an attempt, never the delivery: what ends it is its age. */
const UNTIL_IT_ENDS = backoff(Number.POSITIVE_INFINITY)
/** An attempt has ten seconds; the rest is for log and database. */
const TIME_LIMIT_MS = 60_000
/**
 * Deliveries under way in a process: receivers that are silent hold theirs for ten seconds. First attempts and later ones
 * have slots of their own, so that what fails again and again holds up nothing new.
 */
const FIRST_SLOTS = 2_048
const LATER_SLOTS = 1_024

/**
 * A receiver that is new or slow has few deliveries under way at a time; a quick one has more. All for one
 * host together are bounded, and all of one tenant, however many subscriptions these are. What a receiver has answered
 * counts no more, though its result is not stored yet.
 */
const PER_SUBSCRIPTION: SlotsPerKey<Delivery> = {
  slots: 2,
  of: ({ subscriptionId }) => subscriptionId,
  growth: {
    upTo: 64,
    shared: { slots: 128, of: ({ host }, tenantId) => [`host ${host}`, `tenant ${tenantId}`] },
  },
}

type Raised = RecordedEvent<EventOf<typeof WebhookEventRaised>>

/** Deliveries to be made of an event, by their ids. */
type Prepared = ReadonlyMap<string, readonly Delivery[]>

/**
 * Delivers what was raised to the subscriptions as of the event: freezes the event and its deliveries, whose rows are
 * their work, then attempts each until it is accepted or the event is 48 hours old.
 */
export function webhookDeliveries(parts: DeliveryParts) {
  const recipients = new Recipients(parts.log, parts.registry)
  let earliest: number | null = null
  // looked for once: what is pruned meanwhile was there
  const earliestKept = async () => (earliest ??= await parts.records.earliest())
  const attempts = {
    // what the work store makes of a row
    payload: z.custom<Delivery>(),
    retry: UNTIL_IT_ENDS,
    timeLimitMs: TIME_LIMIT_MS,
    perKey: PER_SUBSCRIPTION,
  }
  return processManager({
    name: 'webhook-deliveries',
    startAt: 'beginning',
    pageSize: EVENTS_AT_ONCE,
    prepare: (events: readonly RecordedEvent[]) => freeze(parts, recipients, earliestKept, events),
    on: [
      on(WebhookEventRaised, ({ data: { event_id } }, prepared: Prepared) =>
        (prepared.get(event_id) ?? []).map((delivery) => perform('deliver', delivery.deliveryId, delivery)),
      ),
      on(WebhookSubscriptionEnabled, ({ data: { subscription_id }, revision }) => [
        perform('wake', subscription_id, { subscription_id, enabled_by: revision }),
      ]),
      on(WebhookSubscriptionDeleted, ({ data: { subscription_id, former_ref } }) => [
        perform('wake', subscription_id, { subscription_id, enabled_by: null }),
        ...forgetting(former_ref),
      ]),
      on(WebhookSecretRotated, ({ data: { former_ref } }) => forgetting(former_ref)),
    ],
    work: {
      deliver: work({ ...attempts, slots: FIRST_SLOTS, isBegunAsStored: true }, (item) =>
        deliver(parts, item),
      ),
      redeliver: work({ ...attempts, slots: LATER_SLOTS }, (item) => deliver(parts, item)),
      'forget-secret': work(
        { payload: z.object({ secret_ref: z.string() }), timeLimitMs: TIME_LIMIT_MS },
        async ({ payload }) => {
          await parts.vault.remove(payload.secret_ref)
        },
      ),
      wake: work(
        {
          payload: z.object({ subscription_id: z.string(), enabled_by: z.number().nullable() }),
          timeLimitMs: TIME_LIMIT_MS,
        },
        async ({ payload: { subscription_id, enabled_by } }) => {
          if (enabled_by === null) await parts.records.forget(subscription_id)
          else await parts.records.resetFailures(subscription_id, enabled_by)
          parts.notices.wake('work')
        },
      ),
    },
  })
}

/** Has a secret that ended leave the vault. @param ref absent in events from before it was named there. */
function forgetting(ref: string | undefined) {
  return ref === undefined ? [] : [perform('forget-secret', ref, { secret_ref: ref })]
}

/**
 * The deliveries of events, each under an id that it has whenever the events come again. One that is read too late is a
 * delivery all the same, which is found to be too old and dropped: its partner missed it, and operators are told. But what
 * is older than all records is history: a database that was made anew reads all of the log.
 */
async function freeze(
  { clock, heard }: DeliveryParts,
  recipients: Recipients,
  earliestKept: () => Promise<number | null>,
  events: readonly RecordedEvent[],
): Promise<Prepared> {
  const raised = events.filter((event): event is Raised => event.type === WebhookEventRaised.name)
  const now = clock.now()
  const isTooOld = (createdAt: number) => isExpired({ createdAt, isResent: false }, now)
  const areSome = raised.some(({ metadata }) => isTooOld(Date.parse(metadata.recorded_at)))
  const earliest = (areSome ? await earliestKept() : null) ?? now
  const deliveries: Delivery[] = []
  for (const [{ data, metadata }, receiving] of await recipients.of(raised)) {
    const createdAt = Date.parse(metadata.recorded_at)
    if (isTooOld(createdAt) && createdAt < earliest) {
      heard.missed(receiving.length)
      continue
    }
    const body = JSON.stringify(data.payload)
    for (const { _id: subscriptionId, url } of receiving) {
      deliveries.push({
        deliveryId: derivedId(data.event_id, subscriptionId),
        subscriptionId,
        host: new URL(url).host,
        eventId: data.event_id,
        tenantId: data.tenant_id,
        environment: data.environment,
        eventType: data.event_type,
        body,
        createdAt,
        attempts: 0,
        rung: 0,
        isResent: false,
        failureCount: 0,
      })
    }
  }
  return groupBy(deliveries, ({ eventId }) => eventId)
}

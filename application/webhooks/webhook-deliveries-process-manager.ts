import { z } from 'zod'
import type { EventOf } from '../../domain/kernel/event-type.ts'
import { isExpired } from '../../domain/webhooks/delivery-schedule.ts'
import { WebhookEventRaised } from '../../domain/webhooks/webhook-event.ts'
import {
  WebhookSecretRotated,
  WebhookSubscriptionDeleted,
  WebhookSubscriptionEnabled,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import type { Application } from '../commands/application.ts'
import { derivedId, type RecordedEvent } from '../commands/event-registry.ts'
import { groupBy } from '../commands/group-by.ts'
import { backoff, on, perform, processManager, type SlotsPerKey, work } from '../followers/process-manager.ts'
import type { FrozenEvent } from '../ports/webhooks.ts'
import { deliver } from './deliver.ts'
import type { DeliveryParts } from './delivery-parts.ts'
import { Recipients } from './recipients.ts'
import { type WaitingParts, wakeWaiting } from './wake-waiting.ts'

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

/** What is stored with a piece of work; everything else stands in the records. */
const delivery = z.object({ subscription_id: z.string(), host: z.string() })

/**
 * Whoever was not heard of yet, or is late, has few deliveries under way at a time; who is quick has more. All for one
 * host together are bounded, and all of one tenant, however many subscriptions these are. What a receiver has answered
 * counts no more, though its result is not stored yet.
 */
const PER_SUBSCRIPTION: SlotsPerKey<z.output<typeof delivery>> = {
  slots: 2,
  of: ({ subscription_id }) => subscription_id,
  growth: {
    upTo: 64,
    shared: { slots: 128, of: ({ host }, tenantId) => [`host ${host}`, `tenant ${tenantId}`] },
  },
}

type Raised = RecordedEvent<EventOf<typeof WebhookEventRaised>>

/** Deliveries to be made of an event, by their ids. */
type Prepared = ReadonlyMap<
  string,
  readonly { readonly deliveryId: string; readonly subscriptionId: string; readonly host: string }[]
>

type Parts = Pick<Application, 'log' | 'registry'> & DeliveryParts & WaitingParts

/**
 * Delivers what was raised to the subscriptions as of the event: freezes the event and its deliveries as records, then
 * attempts each until it is accepted or the event is 48 hours old.
 */
export function webhookDeliveries(parts: Parts) {
  const recipients = new Recipients(parts.log, parts.registry)
  let earliest: number | null = null
  // looked for once: what is pruned meanwhile was there
  const earliestKept = async () => (earliest ??= await parts.records.earliest())
  const attempts = {
    payload: delivery,
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
        (prepared.get(event_id) ?? []).map(({ deliveryId, subscriptionId, host }) =>
          perform('deliver', deliveryId, { subscription_id: subscriptionId, host }),
        ),
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
      deliver: work({ ...attempts, slots: FIRST_SLOTS }, (item) => deliver(parts, item)),
      redeliver: work({ ...attempts, slots: LATER_SLOTS }, (item) => deliver(parts, item)),
      'forget-secret': work(
        { payload: z.object({ secret_ref: z.string() }), retry: backoff(), timeLimitMs: TIME_LIMIT_MS },
        async ({ payload }) => {
          await parts.vault.remove(payload.secret_ref)
          return { outcome: 'done' }
        },
      ),
      wake: work(
        {
          payload: z.object({ subscription_id: z.string(), enabled_by: z.number().nullable() }),
          retry: backoff(),
          timeLimitMs: TIME_LIMIT_MS,
        },
        async ({ payload, signal }) => {
          const { subscription_id: subscriptionId, enabled_by } = payload
          if (enabled_by !== null) await parts.records.resetFailures(subscriptionId, enabled_by)
          await wakeWaiting(parts, { subscriptionId, isDeleted: enabled_by === null }, signal)
          if (enabled_by === null) await parts.records.forgetFailures(subscriptionId)
          return { outcome: 'done' }
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
 * Keeps events and deliveries as records, each under an id that it has whenever the events come again. One that is read
 * too late is a delivery all the same, which is found to be too old and dropped: its partner missed it, and operators are
 * told. But what is older than all records is history: a database that was made anew reads all of the log.
 */
async function freeze(
  { records, clock, heard }: Parts,
  recipients: Recipients,
  earliestKept: () => Promise<number | null>,
  events: readonly RecordedEvent[],
): Promise<Prepared> {
  const raised = events.filter((event): event is Raised => event.type === WebhookEventRaised.name)
  const now = clock.now()
  const isTooOld = (createdAt: number) => isExpired({ createdAt }, now)
  const areSome = raised.some(({ metadata }) => isTooOld(Date.parse(metadata.recorded_at)))
  const earliest = (areSome ? await earliestKept() : null) ?? now
  const found = [...(await recipients.of(raised))].filter(([{ metadata }, receiving]) => {
    const createdAt = Date.parse(metadata.recorded_at)
    const isHistory = isTooOld(createdAt) && createdAt < earliest
    if (isHistory) heard.missed(receiving.length)
    return !isHistory && receiving.length > 0
  })
  const deliveries = found.flatMap(([{ data, metadata }, receiving]) =>
    receiving.map(({ _id: subscriptionId, url }) => ({
      host: new URL(url).host,
      deliveryId: derivedId(data.event_id, subscriptionId),
      eventId: data.event_id,
      subscriptionId,
      createdAt: Date.parse(metadata.recorded_at),
    })),
  )
  await records.add(
    found.map(([event]) => frozen(event)),
    deliveries,
  )
  return groupBy(deliveries, ({ eventId }) => eventId)
}

function frozen({ data, metadata }: Raised): FrozenEvent {
  return {
    eventId: data.event_id,
    tenantId: data.tenant_id,
    environment: data.environment,
    eventType: data.event_type,
    body: JSON.stringify(data.payload),
    createdAt: Date.parse(metadata.recorded_at),
  }
}

import type { ClaimedWork, KindOfWork, WorkEnd, WorkToStore } from '../../application/followers/work-store.ts'
import type { Delivery } from '../../application/ports/webhooks.ts'
import { DROP_AGE } from '../../domain/webhooks/delivery-schedule.ts'
import { isGone } from '../ownership/owner-session.ts'

/** The process manager whose pieces of work are the deliveries that are not over, and its kinds of them. */
const DELIVERIES = 'webhook-deliveries'
const KINDS = ['deliver', 'redeliver']

export function isDelivery({ processManager, kind }: KindOfWork): boolean {
  return processManager === DELIVERIES && KINDS.includes(kind)
}

/** A delivery that nobody holds. */
export const FREED = 'lease_owner = NULL, lease_until = NULL, lease_token = NULL'

/**
 * Stores events, and deliveries of these or earlier ones that are due, as parts of a statement. What is to be leased
 * is, but for earlier events, whose bodies may be others. A delivery whose work an earlier release was about to store
 * gets its state.
 * @param first number of the parameter with the events; that with the deliveries follows.
 */
export const add = (first: number, condition = 'true') => `
  events AS (
    INSERT INTO webhooks.events
      (event_id, tenant_id, environment, event_type, body, created_at, correlation_id, causation_id, traceparent)
    SELECT * FROM jsonb_to_recordset($${first}::jsonb) AS given ("eventId" text, "tenantId" text, environment text,
      "eventType" text, body text, "createdAt" bigint, "correlationId" text, "causationId" text,
      traceparent text)
    WHERE ${condition}
    ON CONFLICT DO NOTHING RETURNING event_id
  ), deliveries AS (
    INSERT INTO webhooks.deliveries AS delivery (delivery_id, event_id, subscription_id, host, created_at, next_attempt_at,
      state, tries, lease_owner, lease_token, lease_until)
    SELECT "deliveryId", "eventId", "subscriptionId", host, "createdAt", "createdAt",
      CASE WHEN leased THEN 'leased' ELSE 'due' END, leased::integer, CASE WHEN leased THEN "leaseTo" END,
      CASE WHEN leased THEN nextval('runtime.work_claims') END, CASE WHEN leased THEN 'infinity'::timestamptz END
    FROM jsonb_to_recordset($${first + 1}::jsonb) AS given ("deliveryId" text, "eventId" text, "subscriptionId" text,
      host text, "createdAt" bigint, "leaseTo" text)
      CROSS JOIN LATERAL (SELECT "leaseTo" IS NOT NULL AND "eventId" IN (TABLE events)) AS wanted (leased)
    WHERE ${condition}
    ON CONFLICT (delivery_id) DO UPDATE SET state = 'due', host = excluded.host
      WHERE delivery.state IS NULL AND delivery.next_attempt_at IS NOT NULL
    RETURNING delivery_id, subscription_id, lease_token
  )`

/** What {@link add} has stored leased. */
export const ADDED_LEASED = `
  SELECT delivery_id AS key, lease_token AS token, COALESCE(failure_count, 0) AS "failureCount"
  FROM deliveries LEFT JOIN webhooks.health USING (subscription_id) WHERE lease_token IS NOT NULL`

/** Work that was stored leased, as a claim brings it. @param rows of {@link ADDED_LEASED}. */
export function leasedBy(stored: readonly WorkToStore[], rows: readonly Record<string, unknown>[]) {
  const wanted = new Map(stored.filter(isDelivery).map((work) => [work.key, work]))
  return new Map(
    rows.flatMap(({ key, token, failureCount }): [WorkToStore, ClaimedWork][] => {
      const work = wanted.get(key as string)
      if (!work) return []
      const { concurrencyKey = '', traceparent = null } = work
      const of = { concurrencyKey, traceparent, payload: { ...(work.payload as Delivery), failureCount } }
      return [[work, { ...work, ...of, token: BigInt(token as string), awaySince: null, attempt: 1 }]]
    }),
  )
}

/** The parameters of {@link add} for the deliveries among work: each event once. */
export function addedBy(work: readonly WorkToStore[]): [string, string] {
  const deliveries = work
    .filter(isDelivery)
    .map(({ payload, ...of }) => ({ ...of, ...(payload as Delivery) }))
  return added([...new Map(deliveries.map((one) => [one.eventId, one])).values()], deliveries)
}

const COLUMNS = ['deliveryId', 'eventId', 'subscriptionId', 'host', 'createdAt', 'leaseTo'] as const

/** The parameters of {@link add}. */
export function added(
  events: readonly object[],
  deliveries: readonly Partial<Record<(typeof COLUMNS)[number], unknown>>[],
): [string, string] {
  return [JSON.stringify(events), JSON.stringify(deliveries, [...COLUMNS])]
}

/** Whether the subscription of a delivery that sleeps was enabled since. */
const IS_WOKEN = 'health.reset_revision > delivery.revision'

/**
 * Deliveries that have waited long enough, as parts of the statement that makes work due at a time of the service's clock
 * ($1), asked by $2, which runs what it claimed under the tokens $3. What an earlier release stored as work is taken over, unless somebody works on it.
 * What sleeps is woken here, and what is over loses its state, of whichever release the process is that enabled or ended it.
 */
export const DELIVERIES_DUE = `
  taken_over AS (
    DELETE FROM runtime.work WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM runtime.work
      WHERE process_manager = '${DELIVERIES}' AND kind IN ('${KINDS.join(`', '`)}') AND state IN ('due', 'later', 'paused')
      LIMIT 5000 FOR UPDATE SKIP LOCKED))
    RETURNING key, payload ->> 'host' AS host, correlation_id, causation_id
  ), untraced AS (
    SELECT event.ctid AS place, taken_over.correlation_id, taken_over.causation_id
    FROM taken_over JOIN webhooks.deliveries ON delivery_id = key JOIN webhooks.events AS event USING (event_id)
    WHERE event.correlation_id IS NULL FOR UPDATE OF event SKIP LOCKED
  ), traced AS (
    UPDATE webhooks.events SET correlation_id = untraced.correlation_id, causation_id = untraced.causation_id
    FROM untraced WHERE events.ctid = place
  ), later_deliveries AS (
    SELECT ctid FROM webhooks.deliveries WHERE state = 'later' AND next_attempt_at <= $1 FOR UPDATE SKIP LOCKED
  ), woken_deliveries AS (
    -- a look for each of the few subscriptions that were enabled again, not at all that sleeps
    SELECT woken.ctid FROM webhooks.health CROSS JOIN LATERAL (
      SELECT ctid FROM webhooks.deliveries AS delivery
      WHERE state = 'asleep' AND delivery.subscription_id = health.subscription_id AND ${IS_WOKEN}
      FOR UPDATE SKIP LOCKED) AS woken
    WHERE reset_revision >= 0
  ), old_deliveries AS (
    SELECT ctid FROM webhooks.deliveries WHERE state = 'asleep' AND created_at <= $1 - ${DROP_AGE} FOR UPDATE SKIP LOCKED
  ), over_deliveries AS (
    SELECT ctid FROM webhooks.deliveries WHERE state IS NOT NULL AND next_attempt_at IS NULL FOR UPDATE SKIP LOCKED
  ), lost_deliveries AS (
    SELECT ctid FROM webhooks.deliveries
    WHERE state = 'leased' AND (lease_until <= clock_timestamp()
      OR lease_owner = $2 AND lease_token <> ALL ($3::bigint[])
      OR lease_owner IS NOT NULL AND ${isGone('lease_owner')} AND NOT ${isGone('$2')})
    FOR UPDATE SKIP LOCKED
  ), deliveries_due AS (
    UPDATE webhooks.deliveries SET ${FREED},
      host = COALESCE(host, (SELECT taken_over.host FROM taken_over WHERE key = delivery_id)),
      state = CASE WHEN next_attempt_at IS NULL THEN NULL
        WHEN state = 'leased' OR attempts = 0 OR next_attempt_at <= $1 OR created_at <= $1 - ${DROP_AGE} THEN 'due'
        ELSE 'later' END
    WHERE ctid = ANY (ARRAY(
      TABLE later_deliveries UNION ALL TABLE woken_deliveries UNION ALL TABLE old_deliveries UNION ALL
      TABLE over_deliveries UNION ALL TABLE lost_deliveries UNION ALL
      SELECT ctid FROM webhooks.deliveries WHERE state IS NULL AND delivery_id = ANY (ARRAY(SELECT key FROM taken_over))))
  )`

/**
 * Which of the tokens $4 stand, by the deliveries $5 that they were given for: all but those of which somebody else has
 * the delivery. The record of a result frees its row, and who made the attempt is not at its end yet.
 */
export const STANDING_DELIVERIES = `
  SELECT token FROM unnest($4::bigint[], $5::text[]) AS given (token, key)
  WHERE NOT EXISTS (SELECT FROM webhooks.deliveries WHERE delivery_id = key AND lease_token <> token)`

/** What a claim of deliveries brings, as work with the delivery as its payload. */
export const CLAIMED_DELIVERIES = `
  SELECT '${DELIVERIES}' AS "processManager", CASE WHEN attempts = 0 THEN 'deliver' ELSE 'redeliver' END AS kind,
    delivery_id AS key, subscription_id AS "concurrencyKey", next_attempt_at AS "dueAt", seq AS "order",
    tries AS attempt, lease_token AS token, COALESCE(correlation_id, event_id) AS "correlationId",
    COALESCE(causation_id, event_id) AS "causationId", tenant_id AS "tenantId", environment, traceparent,
    json_build_object('deliveryId', delivery_id, 'eventId', event_id, 'subscriptionId', subscription_id, 'host', host,
      'tenantId', tenant_id, 'environment', environment, 'eventType', event_type, 'body', body,
      'createdAt', claimed.created_at, 'attempts', attempts, 'rung', rung, 'isResent', resent,
      'failureCount', COALESCE(failure_count, 0)) AS payload
  FROM claimed JOIN webhooks.events USING (event_id) LEFT JOIN webhooks.health USING (subscription_id)`

/** Ends a claim that was interrupted. */
const GIVE_BACK = `
  UPDATE webhooks.deliveries SET ${FREED}, state = 'due', tries = tries - 1
  WHERE delivery_id = $1 AND lease_token = $2`

/**
 * Ends a claim after a pause in real time. What failed behind the record of its attempt, which freed the row, is done by
 * the next claim: that is then made at once.
 */
const PAUSE = `
  UPDATE webhooks.deliveries SET state = 'leased', lease_owner = NULL, lease_token = NULL,
    lease_until = clock_timestamp() + $3 * interval '1 millisecond', tries = GREATEST(0, tries - $4)
  WHERE delivery_id = $1 AND (lease_token = $2 OR lease_token IS NULL AND state = 'later' AND attempts = $5)`

/** The statement that ends a claim; null where the record of what it came to has ended it. */
export function endOfDelivery({ key, token, payload }: ClaimedWork, end: WorkEnd) {
  const mine = [key, String(token)]
  if (end.end === 'interrupted') return { name: 'webhooks/give-back', text: GIVE_BACK, values: mine }
  if (!('afterMs' in end)) return null
  const isTry = end.end === 'retry' && end.isTry !== false
  const recorded = (payload as Delivery).attempts + 1
  return { name: 'webhooks/pause', text: PAUSE, values: [...mine, end.afterMs, isTry ? 0 : 1, recorded] }
}

/** Deliveries that are not over, as rows of work; what sleeps falls due when it is to be dropped, or is woken. */
export const COUNTED_DELIVERIES = `
  SELECT '${DELIVERIES}', CASE WHEN attempts = 0 THEN 'deliver' ELSE 'redeliver' END,
    CASE WHEN ${IS_WOKEN} AND state = 'asleep' THEN 'due' WHEN state = 'asleep' THEN 'later'
      WHEN state = 'leased' AND lease_owner IS NULL THEN 'paused' ELSE state END,
    CASE state WHEN 'asleep' THEN created_at + ${DROP_AGE} ELSE next_attempt_at END
  FROM webhooks.deliveries AS delivery LEFT JOIN webhooks.health USING (subscription_id)
  WHERE state IS NOT NULL`

/** When the next delivery is due behind a time of the service's clock ($1). */
export const NEXT_DELIVERY = `LEAST(
  (SELECT min(next_attempt_at) FROM webhooks.deliveries WHERE state = 'later' AND next_attempt_at > $1),
  (SELECT min(created_at) + ${DROP_AGE} FROM webhooks.deliveries WHERE state = 'asleep' AND created_at > $1 - ${DROP_AGE}))`

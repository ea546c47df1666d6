import { FREED } from './delivery-queue.ts'

/** The commit does not wait for the disk: a crash of the database may take the last moments of it away. */
const WITHOUT_WAITING = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`

/**
 * What a batch of attempts came to, each under its number, once: that ends their claims. Successes and failures of a subscription count in the
 * order in which they came in; the rows of all are locked in one order, so that two processes do not wait for each other.
 */
export const RECORD = `
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::integer[], $6::text[], $7::text[],
      $8::integer[], $9::bigint[], $10::integer[], $11::text[]) WITH ORDINALITY
      AS given (delivery_id, subscription_id, attempt, at, code, error, status, rung, next_at, revision, counts, place)
    WHERE ${WITHOUT_WAITING}
  ), changed AS (
    UPDATE webhooks.deliveries AS delivery SET
      attempts = given.attempt, status = given.status, rung = given.rung, next_attempt_at = given.next_at,
      last_attempt_at = given.at, last_response_code = given.code, last_error = given.error, revision = given.revision,
      delivered_at = CASE WHEN given.status = 'delivered' THEN given.at END,
      ${FREED}, tries = 0, state = CASE WHEN given.next_at IS NOT NULL THEN 'later' END
    FROM given
    WHERE delivery.delivery_id = given.delivery_id AND delivery.attempts = given.attempt - 1
      AND delivery.next_attempt_at IS NOT NULL
    RETURNING given.subscription_id, given.counts, given.revision, given.place
  ), locked AS (
    SELECT subscription_id, failure_count, reset_revision FROM webhooks.health
    WHERE subscription_id IN (SELECT subscription_id FROM changed WHERE counts IS NOT NULL)
    ORDER BY subscription_id FOR UPDATE
  ), counting AS (
    SELECT changed.*, locked.failure_count,
      max(place) FILTER (WHERE counts = 'success') OVER (PARTITION BY subscription_id) AS success
    FROM changed LEFT JOIN locked USING (subscription_id)
    WHERE counts IS NOT NULL AND revision >= COALESCE(reset_revision, -1)
  ), tally AS (
    SELECT subscription_id, bool_or(success IS NOT NULL) AS is_reset,
      count(*) FILTER (WHERE counts = 'failure' AND place > COALESCE(success, 0))::integer AS failures
    FROM counting GROUP BY subscription_id HAVING bool_or(counts = 'failure') OR max(failure_count) > 0
  ), counted AS (
    INSERT INTO webhooks.health AS health (subscription_id, failure_count) SELECT subscription_id, failures FROM tally
    ON CONFLICT (subscription_id) DO UPDATE SET failure_count = excluded.failure_count
      + CASE WHEN (SELECT is_reset FROM tally WHERE tally.subscription_id = excluded.subscription_id)
          THEN 0 ELSE health.failure_count END
    RETURNING subscription_id, failure_count
  )
  SELECT subscription_id, failure_count FROM counted WHERE failure_count > 0`

/** A delivery that is given up, for a reason ($2). */
const GIVEN_UP = `
  UPDATE webhooks.deliveries SET next_attempt_at = NULL, status = 'failed', state = NULL, ${FREED},
    last_error = $2 || COALESCE('; the last attempt: ' || last_error, '')`

export const GIVE_UP = `${GIVEN_UP} WHERE delivery_id = $1 AND next_attempt_at IS NOT NULL`

/** What others hold a lock on is found to be over at its next attempt. */
export const FORGET = `
  WITH forgotten AS (DELETE FROM webhooks.health WHERE subscription_id = $1)
  ${GIVEN_UP} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM webhooks.deliveries
    WHERE subscription_id = $1 AND state IN ('due', 'later', 'asleep', 'leased') FOR UPDATE SKIP LOCKED))`

/** What was put to sleep by subscriptions of an earlier revision than that which enabled its own is due. */
export const SLEEP = `
  UPDATE webhooks.deliveries SET state = 'asleep', revision = $2, tries = 0, ${FREED}
  WHERE delivery_id = $1 AND state = 'leased'`

/**
 * Deliveries of events that are sent again. An event is kept as long as the latest of them, and its body stays as it was
 * frozen first; one that had no delivery is frozen here.
 */
export const RESEND = `
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
      AS given (delivery_id, event_id, event_type, body, place)
  ), kept AS (
    INSERT INTO webhooks.events AS event (event_id, tenant_id, environment, event_type, body, created_at)
    SELECT event_id, $5, $6, event_type, body, $7::bigint FROM given
    ON CONFLICT (event_id) DO UPDATE SET created_at = GREATEST(event.created_at, excluded.created_at)
  )
  INSERT INTO webhooks.deliveries
    (delivery_id, event_id, subscription_id, host, created_at, next_attempt_at, state, resent)
  SELECT delivery_id, event_id, $8, $9, $7::bigint, $7::bigint, 'due', true FROM given ORDER BY place
  ON CONFLICT DO NOTHING`

/**
 * Newest first; of those of one moment the last one stored. Columns by name: one that a release adds leaves the statements
 * that the release before has prepared as they are.
 */
export const LIST = `
  SELECT delivery_id, event_id, subscription_id, event_type, body, delivery.created_at, test, resent, status, attempts,
    next_attempt_at, last_attempt_at, last_response_code, last_error, delivered_at
  FROM (
    SELECT * FROM webhooks.deliveries WHERE subscription_id = $1
    ORDER BY created_at DESC, seq DESC LIMIT $2 OFFSET $3
  ) AS delivery JOIN webhooks.events AS event USING (event_id)
  ORDER BY delivery.created_at DESC, delivery.seq DESC`

/** Those that are not over stay at any age: dropping one is an event of the log. */
export const PRUNE_DELIVERIES = `
  DELETE FROM webhooks.deliveries WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM webhooks.deliveries WHERE created_at < $1 AND next_attempt_at IS NULL LIMIT $2))`

/** An event is as old as its deliveries. For when these are pruned: of the old ones only those are there that are not over. */
export const PRUNE_EVENTS = `
  WITH waiting AS MATERIALIZED (
    SELECT event_id FROM webhooks.deliveries WHERE created_at < $1 AND next_attempt_at IS NOT NULL
  )
  DELETE FROM webhooks.events WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM webhooks.events WHERE created_at < $1 AND event_id NOT IN (TABLE waiting) LIMIT $2))`

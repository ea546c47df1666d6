import type { KindToClaim, WorkStore } from '../../application/followers/work-store.ts'
import { isGone } from '../ownership/owner-session.ts'
import { CLAIMED_DELIVERIES, DELIVERIES_DUE, STANDING_DELIVERIES } from '../webhooks/delivery-queue.ts'

/** Leased work is due again; unless it was stored again meanwhile, with a time of its own. */
const LEFT_BEHIND = `
  state = CASE WHEN again THEN 'later' ELSE 'due' END, attempts = CASE WHEN again THEN 0 ELSE attempts END`

/** Three ways to wait, each found by an index of its own. What another process has locked is left to the next look. */
export const MAKE_DUE = `
  WITH ${DELIVERIES_DUE}, later AS (
    SELECT ctid FROM runtime.work WHERE state = 'later' AND due_at <= $1 FOR UPDATE SKIP LOCKED
  ), paused AS (
    SELECT ctid FROM runtime.work
    WHERE state = 'paused' AND paused_until <= clock_timestamp() FOR UPDATE SKIP LOCKED
  ), lost AS (
    SELECT ctid FROM runtime.work
    WHERE state = 'leased' AND (lease_until <= clock_timestamp()
      OR lease_until = 'infinity' AND lease_owner = $2 AND lease_token <> ALL ($3::bigint[])
      OR ${isGone('lease_owner')} AND NOT ${isGone('$2')})
    FOR UPDATE SKIP LOCKED
  ), made_due AS (UPDATE runtime.work SET ${LEFT_BEHIND}, paused_until = NULL, again = false,
    lease_owner = NULL, lease_until = NULL, lease_token = NULL
  WHERE ctid = ANY (ARRAY(TABLE later UNION ALL TABLE paused UNION ALL TABLE lost)))
  SELECT lease_token FROM runtime.work WHERE lease_token = ANY ($3) AND state = 'leased'
  UNION ALL ${STANDING_DELIVERIES}`

/**
 * Goes from one concurrency key that has due work to the next, over as many as can give a piece, and those that are
 * busy; takes the first piece of each, then the second, as far as the slots go. Rows are changed where they lie: no
 * estimate of how many there are leads to a look at all of them. Candidates are locked as they are found, so that what
 * somebody else claims at the same time makes room for the next: without concurrency keys, fewer pieces than slots
 * means that there are no more. An index of the table has what is due by kind, key and order.
 */
const claimFrom = (
  isOf: (asked: string) => string,
  {
    table,
    key,
    order,
    counted,
    claimed,
  }: Readonly<Record<'table' | 'key' | 'order' | 'counted' | 'claimed', string>>,
) => `
  WITH RECURSIVE asked AS (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS asked (process_manager text, kind text, slots integer,
      per_key integer, busy jsonb, visits integer, from_key text)
  ), visited AS (
    SELECT asked.*, 1 AS visit, (
      SELECT ${key} FROM ${table} WHERE state = 'due' AND ${isOf('asked')} AND ${key} >= asked.from_key
      ORDER BY ${key} LIMIT 1) AS concurrency_key
    FROM asked
    UNION ALL
    SELECT process_manager, kind, slots, per_key, busy, visits, from_key, visit + 1, (
      SELECT ${key} FROM ${table} WHERE state = 'due' AND ${isOf('visited')} AND ${key} > visited.concurrency_key
      ORDER BY ${key} LIMIT 1)
    FROM visited WHERE visit < visits AND concurrency_key IS NOT NULL
  ), found AS (
    SELECT first.place_on_disk, slots,
      row_number() OVER (PARTITION BY process_manager, kind ORDER BY place, visit) AS turn
    FROM visited CROSS JOIN LATERAL (
      SELECT ctid AS place_on_disk, row_number() OVER (ORDER BY ${order}) AS place FROM (
        SELECT ctid, ${order} FROM ${table}
        WHERE state = 'due' AND ${isOf('visited')} AND ${key} = visited.concurrency_key
        ORDER BY ${order}
        LIMIT GREATEST(0, LEAST(slots, per_key - COALESCE((busy ->> visited.concurrency_key)::integer, 0)))
        FOR UPDATE SKIP LOCKED
      ) AS locked
    ) AS first
  ), claimed AS (
    UPDATE ${table} SET
      state = 'leased', lease_owner = $2, lease_token = nextval('runtime.work_claims'),
      lease_until = COALESCE(clock_timestamp() + $3 * interval '1 millisecond', 'infinity'), ${counted}
    WHERE ctid = ANY (ARRAY(SELECT place_on_disk FROM found WHERE turn <= slots))
    RETURNING *
  )
  ${claimed}`

export const CLAIM = claimFrom(
  (asked) => `process_manager = ${asked}.process_manager AND kind = ${asked}.kind`,
  {
    table: 'runtime.work',
    key: 'concurrency_key',
    order: 'due_at, stored_order',
    counted: 'attempts = attempts + 1, again = false',
    claimed: `
    SELECT process_manager AS "processManager", kind, key, payload, concurrency_key AS "concurrencyKey",
      due_at AS "dueAt", away_since AS "awaySince", stored_order AS "order", attempts AS attempt, lease_token AS token,
      correlation_id AS "correlationId", causation_id AS "causationId", tenant_id AS "tenantId", environment,
      traceparent
    FROM claimed`,
  },
)

export const CLAIM_DELIVERIES = claimFrom(
  (asked) => `(attempts > 0) = (${asked}.kind = 'redeliver') AND next_attempt_at IS NOT NULL`,
  {
    table: 'webhooks.deliveries',
    key: 'subscription_id',
    order: 'next_attempt_at, seq',
    counted: 'tries = tries + 1',
    claimed: CLAIMED_DELIVERIES,
  },
)

/** The parameters of {@link CLAIM}. */
export function claimParameters({ owner, leaseMs, kinds }: Parameters<WorkStore['claim']>[0]): unknown[] {
  return [JSON.stringify(kinds.map(askedOf)), owner, leaseMs]
}

function askedOf({ processManager, kind, slots, perKey = slots, busy, after }: KindToClaim) {
  const saturated = [...(busy?.values() ?? [])].filter((taken) => taken >= perKey).length
  return {
    process_manager: processManager,
    kind,
    slots,
    per_key: perKey,
    busy: Object.fromEntries(busy ?? []),
    visits: slots + saturated,
    // the least text behind it
    from_key: after == null ? '' : `${after}\u0001`,
  }
}

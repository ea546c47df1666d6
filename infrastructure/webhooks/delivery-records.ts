import type { Pool } from 'pg'
import type { ListPage, PageRequest } from '../../application/ports/read-database.ts'
import type {
  AttemptResult,
  DeliveryRecord,
  DeliveryRecords,
  ResentEvents,
  WebhookDeliveries,
} from '../../application/ports/webhooks.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { IMMEDIATE_ATTEMPTS } from '../../domain/webhooks/delivery-schedule.ts'
import { plainTypes } from '../database/plain-types.ts'
import { Gathered } from '../gathered.ts'
import { add, added } from './delivery-queue.ts'
import {
  FORGET,
  GIVE_UP,
  LIST,
  PRUNE_DELIVERIES,
  PRUNE_EVENTS,
  RECORD,
  RESEND,
  SLEEP,
} from './delivery-statements.ts'

/** Rows of each table that are forgotten at once. */
const PRUNED_AT_ONCE = 5_000

/** A delivery with its event, in the history. */
interface Row {
  delivery_id: string
  event_id: string
  subscription_id: string
  event_type: DeliveryRecord['event_type']
  body: string
  created_at: number
  test: boolean
  resent: boolean
  status: DeliveryRecord['status']
  attempts: number
  next_attempt_at: number | null
  last_attempt_at: number | null
  last_response_code: number | null
  last_error: string | null
  delivered_at: number | null
}

/**
 * The records of deliveries in the schema `webhooks`. Results are committed without waiting for the disk: what a crash of
 * the database takes away is attempted once more, which receivers must expect.
 */
export class PostgresDeliveryRecords implements DeliveryRecords {
  readonly #pool: Pool
  readonly #records: Gathered<AttemptResult, ReadonlyMap<string, number>>

  constructor(pool: Pool) {
    this.#pool = pool
    this.#records = new Gathered((results) => this.#recordAll(results), 'ordered')
  }

  /**
   * Keeps events and their deliveries, due and none attempted; those that are there stay as they are. For events of tests;
   * the work store keeps all others with the checkpoint.
   */
  async add(...rows: Parameters<typeof added>): Promise<void> {
    await this.#pool.query({ name: 'webhooks/add', text: `WITH ${add(1)} SELECT 1`, values: added(...rows) })
  }

  async earliest(): Promise<number | null> {
    const { rows } = await this.#pool.query<{ earliest: number | null }>({
      name: 'webhooks/earliest',
      text: 'SELECT min(created_at) AS earliest FROM webhooks.events',
      types: plainTypes,
    })
    return rows[0]!.earliest
  }

  async record(result: AttemptResult): Promise<number> {
    return (await this.#records.ask(result)).get(result.subscriptionId) ?? 0
  }

  async giveUp(deliveryId: string, why: string): Promise<void> {
    await this.#pool.query({ name: 'webhooks/give-up', text: GIVE_UP, values: [deliveryId, why] })
  }

  async sleep(deliveryId: string, revision: number): Promise<void> {
    await this.#pool.query({ name: 'webhooks/sleep', text: SLEEP, values: [deliveryId, revision] })
  }

  async prune(before: number): Promise<boolean> {
    const values = [before, PRUNED_AT_ONCE]
    for (const [name, text] of [
      ['webhooks/prune-deliveries', PRUNE_DELIVERIES],
      ['webhooks/prune-events', PRUNE_EVENTS],
    ] as const) {
      const { rowCount } = await this.#pool.query({ name, text, values })
      if (rowCount! >= PRUNED_AT_ONCE) return true
    }
    return false
  }

  async list(subscriptionId: string, limit: number, offset = 0): Promise<readonly DeliveryRecord[]> {
    const { rows } = await this.#pool.query<Row>({
      name: 'webhooks/list',
      text: LIST,
      values: [subscriptionId, limit, offset],
      types: plainTypes,
    })
    return rows.map(recordOf)
  }

  async count(subscriptionId: string): Promise<number> {
    const { rows } = await this.#pool.query<{ total: number }>({
      name: 'webhooks/count',
      text: 'SELECT count(*)::integer AS total FROM webhooks.deliveries WHERE subscription_id = $1',
      values: [subscriptionId],
    })
    return rows[0]!.total
  }

  async failureCounts(subscriptionIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#pool.query<{ subscription_id: string; failure_count: number }>({
      name: 'webhooks/failure-counts',
      text: `SELECT subscription_id, failure_count FROM webhooks.health
             WHERE subscription_id = ANY ($1) AND failure_count > 0`,
      values: [subscriptionIds],
    })
    return new Map(rows.map((row) => [row.subscription_id, row.failure_count]))
  }

  async failing({ page, limit }: PageRequest): Promise<ListPage<string>> {
    const { rows } = await this.#pool.query<{ readonly total: number; readonly ids: readonly string[] }>({
      name: 'webhooks/failing',
      text: `SELECT (SELECT count(*)::integer FROM webhooks.health WHERE failure_count > 0) AS total,
               ARRAY(SELECT subscription_id FROM webhooks.health WHERE failure_count > 0
                      ORDER BY failure_count DESC, subscription_id LIMIT $1 OFFSET $2) AS ids`,
      values: [limit, (page - 1) * limit],
    })
    const { total, ids } = rows[0]!
    return { items: ids, total }
  }

  async resetFailures(subscriptionId: string, revision: number): Promise<void> {
    await this.#pool.query({
      name: 'webhooks/reset-failures',
      text: `INSERT INTO webhooks.health AS health (subscription_id, failure_count, reset_revision) VALUES ($1, 0, $2)
             ON CONFLICT (subscription_id) DO UPDATE SET failure_count = 0, reset_revision = excluded.reset_revision
               WHERE health.reset_revision < excluded.reset_revision`,
      values: [subscriptionId, revision],
    })
  }

  async forget(subscriptionId: string): Promise<void> {
    const values = [subscriptionId, 'The subscription was deleted']
    await this.#pool.query({ name: 'webhooks/forget', text: FORGET, values })
  }

  async recordTest(test: Parameters<WebhookDeliveries['recordTest']>[0]): Promise<void> {
    const { deliveryId, subscriptionId, eventId, answer, at } = test
    await this.add([{ ...test, createdAt: at }], [])
    const isAccepted = answer.error === null
    await this.#pool.query({
      name: 'webhooks/record-test',
      text: `INSERT INTO webhooks.deliveries (delivery_id, event_id, subscription_id, created_at, test, status, attempts,
               last_attempt_at, last_response_code, last_error, delivered_at)
             VALUES ($1, $2, $3, $4, true, $5, 1, $4, $6, $7, $8) ON CONFLICT DO NOTHING`,
      values: [
        ...[deliveryId, eventId, subscriptionId, at, isAccepted ? 'delivered' : 'failed'],
        ...[answer.statusCode, answer.error, isAccepted ? at : null],
      ],
    })
  }

  async resend({ subscriptionId, host, tenantId, environment, at, events }: ResentEvents): Promise<void> {
    const given = columns(events, 'deliveryId', 'eventId', 'eventType', 'body')
    const values = [...given, tenantId, environment, at, subscriptionId, host]
    await this.#pool.query({ name: 'webhooks/resend', text: RESEND, values })
  }

  async #recordAll(results: readonly AttemptResult[]): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#pool.query<{ subscription_id: string; failure_count: number }>({
      name: 'webhooks/record',
      text: RECORD,
      values: columns(
        results,
        ...(['deliveryId', 'subscriptionId', 'attempt', 'at', 'statusCode', 'error', 'status'] as const),
        ...(['rung', 'nextAttemptAt', 'revision', 'counts'] as const),
      ),
    })
    return new Map(rows.map((row) => [row.subscription_id, row.failure_count]))
  }
}

function recordOf(row: Row): DeliveryRecord {
  const lastAttemptAt = timeOf(row.last_attempt_at)
  // what comes behind the immediate ladder is the background redelivery
  const sweeps = Math.max(0, row.attempts - IMMEDIATE_ATTEMPTS)
  return {
    _id: row.delivery_id,
    subscription_id: row.subscription_id,
    event_id: row.event_id,
    event_type: row.event_type,
    status: row.status,
    attempts: row.attempts,
    last_response_code: row.last_response_code,
    last_attempt_at: lastAttemptAt,
    delivered_at: timeOf(row.delivered_at),
    created_at: timeOf(row.created_at)!,
    payload: row.body,
    last_error: row.last_error,
    test: row.test,
    resent: row.resent,
    dedupe_key: `${row.event_id}:${row.subscription_id}`,
    sweep_attempts: sweeps,
    next_sweep_after: row.status === 'failed' ? timeOf(row.next_attempt_at) : null,
    sweep_claimed_at: null,
    last_swept_at: sweeps > 0 ? lastAttemptAt : null,
  }
}

function timeOf(epochMs: number | null): string | null {
  return epochMs === null ? null : isoTime(epochMs)
}

/** One array for each column, for `unnest`. */
function columns<Item>(items: readonly Item[], ...names: readonly (keyof Item)[]): unknown[] {
  return names.map((name) => items.map((item) => item[name]))
}

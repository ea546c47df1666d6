import type { Pool } from 'pg'
import { storable } from '../../application/commands/storable-text.ts'
import {
  type Checkpoint,
  CheckpointMoved,
  type ClaimedWork,
  DEAD_LETTERED_STREAM,
  type FailedWork,
  type KindOfWork,
  type WorkChanges,
  type WorkCounts,
  type WorkEnd,
  type WorkKey,
  type WorkStore,
} from '../../application/followers/work-store.ts'
import { plainTypes } from '../database/plain-types.ts'
import { Gathered } from '../gathered.ts'
import {
  ADDED_LEASED,
  add,
  addedBy,
  COUNTED_DELIVERIES,
  endOfDelivery,
  isDelivery,
  leasedBy,
  NEXT_DELIVERY,
} from '../webhooks/delivery-queue.ts'
import { CLAIM, CLAIM_DELIVERIES, claimParameters, MAKE_DUE } from './work-claims.ts'
import { shown, WorkEnds } from './work-ends.ts'

type ClaimedRow = Omit<ClaimedWork, 'token'> & { readonly token: number | string; readonly order: number }

/** Work stored again loses what failed attempts and holds left behind; leased work is done once more. */
const STORE = `
  INSERT INTO runtime.work AS work (process_manager, kind, key, payload, concurrency_key, due_at, state,
    correlation_id, causation_id, tenant_id, environment, traceparent, dead_lettered_at)
  SELECT process_manager, kind, key, payload, concurrency_key, due_at, state,
    correlation_id, causation_id, tenant_id, environment, traceparent,
    CASE kind WHEN '${DEAD_LETTERED_STREAM}' THEN clock_timestamp() END
  FROM jsonb_to_recordset($1::jsonb) AS wanted (process_manager text, kind text, key text, payload jsonb,
    concurrency_key text, due_at bigint, state text, correlation_id text, causation_id text, tenant_id text,
    environment text, traceparent text)
  WHERE EXISTS (SELECT FROM locked)
  ON CONFLICT (process_manager, kind, key) DO UPDATE SET
    payload = excluded.payload, concurrency_key = excluded.concurrency_key, due_at = excluded.due_at,
    correlation_id = excluded.correlation_id, causation_id = excluded.causation_id,
    tenant_id = excluded.tenant_id, environment = excluded.environment, traceparent = excluded.traceparent,
    state = CASE WHEN work.state = 'leased' THEN 'leased' ELSE excluded.state END,
    again = work.state = 'leased',
    attempts = CASE WHEN work.state = 'leased' THEN work.attempts ELSE 0 END,
    paused_until = NULL, held_at = NULL, last_error = NULL`

const move = (first: number) => `
  UPDATE runtime.process_managers SET position = $${first}, problem = NULL
  WHERE name = $${first + 1} AND position = $${first + 2} AND epoch = $${first + 3} RETURNING 1`

/** A checkpoint that moves over events without work. */
interface BareCheckpoint {
  readonly processManager: string
  readonly from: Checkpoint
  readonly to: bigint
}

/**
 * Moves bare checkpoints of one moment. What somebody else has locked is passed over: nobody waits for another's lock.
 * The commit does not wait for the disk: what a crash of the database takes away led to no work, and the log has the events.
 */
const MOVE_ALL = `
  WITH free AS MATERIALIZED (
    SELECT name, wanted.to, wanted.place
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
        WITH ORDINALITY AS wanted (name, epoch, "from", "to", place)
      JOIN runtime.process_managers AS stored USING (name, epoch)
    WHERE stored.position = wanted.from AND set_config('synchronous_commit', 'off', true) IS NOT NULL
    FOR NO KEY UPDATE OF stored SKIP LOCKED
  )
  UPDATE runtime.process_managers AS stored SET position = free.to, problem = NULL
  FROM free WHERE stored.name = free.name RETURNING place`

/** Work and checkpoints in the tables `runtime.work` and `runtime.process_managers`; deliveries are work in their own rows. */
export class PostgresWorkStore implements WorkStore {
  readonly #pool: Pool
  readonly #ends: WorkEnds
  readonly #moved: Gathered<BareCheckpoint, ReadonlySet<BareCheckpoint>>
  /** Tokens of the claims that the record of a delivery ends, before {@link end}, with their deliveries. */
  readonly #delivering = new Map<bigint, string>()

  constructor(pool: Pool) {
    this.#pool = pool
    this.#ends = new WorkEnds(pool)
    this.#moved = new Gathered((checkpoints) => this.#move(checkpoints), 'ordered')
  }

  async register(processManagers: readonly string[], position: bigint): Promise<void> {
    await this.#pool.query({
      name: 'work/register',
      text: `INSERT INTO runtime.process_managers (name, position, epoch) SELECT unnest($1::text[]), $2, 0
             ON CONFLICT (name) DO NOTHING`,
      values: [processManagers, String(position)],
    })
  }

  async takeOver(processManager: string, epoch: number): Promise<bigint> {
    const result = await this.#pool.query<{ position: string }>({
      name: 'work/take-over',
      text: `INSERT INTO runtime.process_managers AS stored (name, position, epoch) VALUES ($1, 0, $2)
             ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, problem = NULL
               WHERE stored.epoch <= excluded.epoch
             RETURNING position`,
      values: [processManager, epoch],
    })
    const row = result.rows[0]
    if (!row) throw new CheckpointMoved(processManager)
    return BigInt(row.position)
  }

  async advance(processManager: string, from: Checkpoint, to: bigint, changes: WorkChanges) {
    const isBare = isEmpty(changes)
    const bare = { processManager, from, to }
    if (isBare && (await this.#moved.ask(bare)).has(bare)) return new Map()
    // it is locked, which the statement of its own waits for, or it belongs to another owner
    const checkpoint = [String(to), processManager, String(from.position), from.epoch]
    // one statement, so that nothing is stored unless the checkpoint moved
    const result = isBare
      ? await this.#pool.query({ name: 'work/move', text: move(1), values: checkpoint })
      : await this.#pool.query({
          name: 'work/advance',
          text: `WITH moved AS (${move(3)}),
                 locked AS MATERIALIZED (SELECT runtime.lock_and_cancel($1, $2) FROM moved),
                 stored AS (${STORE}),
                 ${add(7, 'EXISTS (SELECT 1 FROM moved)')}
                 SELECT leased.* FROM locked LEFT JOIN (${ADDED_LEASED}) AS leased ON true`,
          values: [...changeValues(changes), ...checkpoint, ...addedBy(changes.store)],
        })
    if (result.rowCount === 0) throw new CheckpointMoved(processManager)
    const leased = leasedBy(changes.store, result.rows)
    for (const { token, key } of leased.values()) this.#delivering.set(token, key)
    return leased
  }

  /** @returns those that moved. */
  async #move(checkpoints: readonly BareCheckpoint[]): Promise<ReadonlySet<BareCheckpoint>> {
    const { rows } = await this.#pool.query<{ place: string }>({
      name: 'work/move-all',
      text: MOVE_ALL,
      values: [
        checkpoints.map(({ processManager }) => processManager),
        checkpoints.map(({ from }) => from.epoch),
        checkpoints.map(({ from }) => from.position),
        checkpoints.map(({ to }) => to),
      ],
    })
    return new Set(rows.map(({ place }) => checkpoints[Number(place) - 1]!))
  }

  async setProblem(processManager: string, epoch: number, problem: string): Promise<void> {
    await this.#pool.query({
      name: 'work/set-problem',
      text: 'UPDATE runtime.process_managers SET problem = $3 WHERE name = $1 AND epoch = $2',
      values: [processManager, epoch, shown(problem)],
    })
  }

  async checkpoints(processManagers: readonly string[]) {
    const { rows } = await this.#pool.query<{
      name: string
      position: number | string
      epoch: number
      problem: string | null
      deadLetteredStreams: number
    }>({
      name: 'work/checkpoints',
      text: `SELECT name, position, epoch, problem,
               (SELECT count(*)::int FROM runtime.work WHERE process_manager = name AND kind = $2) AS "deadLetteredStreams"
             FROM runtime.process_managers WHERE name = ANY($1)`,
      values: [processManagers, DEAD_LETTERED_STREAM],
      types: plainTypes,
    })
    return new Map(rows.map(({ name, ...row }) => [name, { ...row, position: BigInt(row.position) }]))
  }

  async makeDue(
    now: number,
    owner: string,
    running: readonly bigint[] | null = null,
  ): Promise<ReadonlySet<bigint>> {
    if (running) {
      const areRunning = new Set(running)
      for (const token of this.#delivering.keys()) if (!areRunning.has(token)) this.#delivering.delete(token)
    }
    const [tokens, deliveries] = [[...this.#delivering.keys()], [...this.#delivering.values()]]
    const { rows } = await this.#pool.query<{ lease_token: string }>({
      name: 'work/make-due',
      text: MAKE_DUE,
      values: [now, owner, running?.map(String), tokens.map(String), deliveries],
    })
    return new Set(rows.map((row) => BigInt(row.lease_token)))
  }

  async claim(request: Parameters<WorkStore['claim']>[0]): Promise<readonly ClaimedWork[]> {
    const { kinds } = request
    const of = (chosen: typeof kinds) => ({ ...request, kinds: chosen })
    const [work, delivering] = await Promise.all([
      this.#claim('work/claim', CLAIM, of(kinds.filter((one) => !isDelivery(one)))),
      this.#claim('webhooks/claim', CLAIM_DELIVERIES, of(kinds.filter(isDelivery))),
    ])
    for (const { token, key } of delivering) this.#delivering.set(BigInt(token), key)
    return [...work, ...delivering]
      .sort((a, b) => a.dueAt - b.dueAt || a.order - b.order)
      .map(({ order: _, token, ...claimed }) => ({ ...claimed, token: BigInt(token) }))
  }

  async #claim(name: string, text: string, request: Parameters<WorkStore['claim']>[0]) {
    if (request.kinds.length === 0) return []
    const values = claimParameters(request)
    return (await this.#pool.query<ClaimedRow>({ name, text, values, types: plainTypes })).rows
  }

  async end(claim: ClaimedWork, end: WorkEnd): Promise<'ended' | 'due' | 'again' | 'lost'> {
    if (!isDelivery(claim)) return this.#ends.end(claim, end)
    this.#delivering.delete(claim.token)
    const statement = endOfDelivery(claim, end)
    if (statement && (await this.#pool.query(statement)).rowCount === 0) return 'lost'
    return end.end === 'interrupted' ? 'due' : 'ended'
  }

  async nextDue(after: number, retriesUntil = Number.MAX_SAFE_INTEGER): Promise<number | null> {
    const { rows } = await this.#pool.query<{ due: number | null }>({
      name: 'work/next-due',
      text: `SELECT LEAST(${NEXT_DELIVERY}, (
               SELECT min(due_at) FROM runtime.work
               WHERE state = 'later' AND due_at > $1 AND (due_at <= $2 OR away_since IS NULL))) AS due`,
      values: [after, retriesUntil],
      types: plainTypes,
    })
    return rows[0]!.due
  }

  async counts(request: Parameters<WorkStore['counts']>[0]): Promise<WorkCounts> {
    const result = await this.#pool.query<WorkCounts>({
      name: 'work/counts',
      text: `SELECT
               count(*) FILTER (WHERE state IN ('due', 'paused') OR state = 'later' AND due_at <= $1)::int AS due,
               count(*) FILTER (WHERE state = 'leased')::int AS leased,
               count(*) FILTER (WHERE state = 'held')::int AS held,
               count(*) FILTER (WHERE state = 'later' AND due_at > $1)::int AS later,
               count(*) FILTER (WHERE state = 'failed')::int AS failed,
               min(due_at) FILTER (WHERE state = 'due' OR state = 'later' AND due_at <= $1) AS "oldestDue"
             FROM (
               SELECT process_manager, kind, state, due_at FROM runtime.work UNION ALL ${COUNTED_DELIVERIES}
             ) AS work
             WHERE $2::text[] IS NULL OR (process_manager, kind) IN (SELECT * FROM unnest($2, $3::text[]))`,
      values: [
        request.now,
        request.kinds?.map(({ processManager }) => processManager) ?? null,
        request.kinds?.map(({ kind }) => kind) ?? null,
      ],
      types: plainTypes,
    })
    return result.rows[0]!
  }

  async countFailed(kinds: readonly KindOfWork[]): Promise<number> {
    const result = await this.#pool.query<{ count: number }>({
      name: 'work/count-failed',
      text: `SELECT count(*)::int AS count FROM runtime.work
             WHERE state = 'failed' AND (process_manager, kind) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
      values: namesOf(kinds),
    })
    return result.rows[0]!.count
  }

  async unknownKinds(known: readonly KindOfWork[]): ReturnType<WorkStore['unknownKinds']> {
    const { rows } = await this.#pool.query<KindOfWork & { readonly count: number }>({
      name: 'work/unknown-kinds',
      // from one kind to the next, by the primary key
      text: `WITH RECURSIVE there AS (
               (SELECT process_manager, kind FROM runtime.work ORDER BY process_manager, kind LIMIT 1)
               UNION ALL
               SELECT next.* FROM there CROSS JOIN LATERAL (
                 SELECT process_manager, kind FROM runtime.work AS work
                 WHERE (work.process_manager, work.kind) > (there.process_manager, there.kind)
                 ORDER BY process_manager, kind LIMIT 1) AS next
             )
             SELECT process_manager AS "processManager", kind, (
               SELECT count(*)::int FROM runtime.work AS work
               WHERE work.process_manager = there.process_manager AND work.kind = there.kind) AS count
             FROM there
             WHERE (process_manager, kind) NOT IN (SELECT * FROM unnest($1::text[], $2::text[]))
             ORDER BY process_manager, kind`,
      values: namesOf(known),
    })
    return rows
  }

  async discard(request: Parameters<WorkStore['discard']>[0]): Promise<number> {
    const chosen = 'process_manager = $1 AND kind = $2 AND ($3::text IS NULL OR key = $3)'
    const values = [request.processManager, request.kind, request.key]
    if (request.dryRun) return this.#count(chosen, values)
    return (await this.#pool.query(`DELETE FROM runtime.work WHERE ${chosen}`, values)).rowCount!
  }

  async keysOf(processManager: string, kind: string): Promise<readonly string[]> {
    const result = await this.#pool.query<{ key: string }>({
      name: 'work/keys',
      text: `SELECT key FROM runtime.work
             WHERE process_manager = $1 AND kind = $2 ORDER BY stored_order`,
      values: [processManager, kind],
    })
    return result.rows.map((row) => row.key)
  }

  async failed(limit: number): Promise<readonly FailedWork[]> {
    const { rows } = await this.#pool.query<FailedWork>({
      name: 'work/failed',
      text: `SELECT process_manager AS "processManager", kind, key, due_at AS "dueAt", attempts, last_error AS error,
               correlation_id AS "correlationId", tenant_id AS "tenantId"
             FROM runtime.work WHERE state = 'failed' ORDER BY due_at, stored_order LIMIT $1`,
      values: [limit],
      types: plainTypes,
    })
    return rows
  }

  async redrive(request: { key?: WorkKey; dryRun: boolean }): Promise<number> {
    const chosen = `state = 'failed' AND ($1::text IS NULL OR (process_manager, kind, key) = ($1, $2::text, $3::text))`
    const { key } = request
    const values = [key?.processManager ?? null, key?.kind ?? null, key?.key ?? null]
    if (request.dryRun) return this.#count(chosen, values)
    const text = `UPDATE runtime.work SET state = 'due', attempts = 0 WHERE ${chosen}`
    return (await this.#pool.query(text, values)).rowCount!
  }

  async #count(chosen: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await this.#pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM runtime.work WHERE ${chosen}`,
      [...values],
    )
    return rows[0]!.count
  }
}

function namesOf(kinds: readonly KindOfWork[]): [string[], string[]] {
  return [kinds.map(({ processManager }) => processManager), kinds.map(({ kind }) => kind)]
}

function isEmpty(changes: WorkChanges): boolean {
  return changes.store.length === 0 && changes.cancel.length === 0
}

function changeValues(changes: WorkChanges): [string, string] {
  const name = ({ processManager, kind, key }: WorkKey) => ({ process_manager: processManager, kind, key })
  const stored = changes.store.filter((work) => !isDelivery(work))
  const store = stored.map((work) => ({
    ...name(work),
    payload: work.payload,
    concurrency_key: work.concurrencyKey ?? '',
    due_at: work.dueAt,
    state: work.isLater ? 'later' : 'due',
    correlation_id: work.correlationId,
    causation_id: work.causationId,
    tenant_id: work.tenantId,
    environment: work.environment,
    traceparent: work.traceparent,
  }))
  // names of dead-lettered streams may be any
  return [storable(JSON.stringify(store)), storable(JSON.stringify(changes.cancel.map(name)))]
}

import type { Pool } from 'pg'
import {
  type Checkpoint,
  CheckpointMoved,
  type ClaimedWork,
  type FailedWork,
  type WorkChanges,
  type WorkCounts,
  type WorkEnd,
  type WorkKey,
  type WorkStore,
} from '../../application/process-managers/work-store.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isGone } from './owner-session.ts'

interface WorkRow {
  process_manager: string
  kind: string
  key: string
  payload: Record<string, unknown>
  due_at: string
  stored_order: string
  attempts: number
  lease_token: string
  correlation_id: string
  causation_id: string
  tenant_id: string | null
  environment: Environment | null
}

/** Work stored again loses what failed attempts and holds left behind; in a worker's hands it is done once more. */
const store = (condition: string) => `
  INSERT INTO runtime.work AS work
    (process_manager, kind, key, payload, due_at, correlation_id, causation_id, tenant_id, environment)
  SELECT process_manager, kind, key, payload, due_at, correlation_id, causation_id, tenant_id, environment
  FROM jsonb_to_recordset($1::jsonb) AS wanted (process_manager text, kind text, key text, payload jsonb,
    due_at bigint, correlation_id text, causation_id text, tenant_id text, environment text)
  WHERE ${condition}
  ON CONFLICT (process_manager, kind, key) DO UPDATE SET
    payload = excluded.payload, due_at = excluded.due_at,
    correlation_id = excluded.correlation_id, causation_id = excluded.causation_id,
    tenant_id = excluded.tenant_id, environment = excluded.environment,
    state = CASE WHEN work.state = 'leased' THEN 'leased' ELSE 'due' END,
    again = work.state = 'leased',
    attempts = CASE WHEN work.state = 'leased' THEN work.attempts ELSE 0 END,
    not_before = '-infinity', held_at = NULL, last_error = NULL`

const cancel = (condition: string) => `
  DELETE FROM runtime.work AS work
  USING jsonb_to_recordset($2::jsonb) AS unwanted (process_manager text, kind text, key text)
  WHERE work.process_manager = unwanted.process_manager AND work.kind = unwanted.kind
    AND work.key = unwanted.key AND ${condition}`

const move = (first: number) => `
  UPDATE runtime.process_managers SET position = $${first}, problem = NULL
  WHERE name = $${first + 1} AND position = $${first + 2} AND epoch = $${first + 3} RETURNING 1`

/** The claim that four parameters name: process manager, kind, key, token. */
const IS_MINE = (first: number) =>
  `process_manager = $${first} AND kind = $${first + 1} AND key = $${first + 2}
   AND lease_token = $${first + 3} AND state = 'leased'`

const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

/** Not held at a point that a hold is set at. */
const NOT_HELD = (holds: string) => `(held_at IS NULL OR held_at <> ALL(${holds}::text[]))`

/** Work and checkpoints in the tables `runtime.work` and `runtime.process_managers`. */
export class PostgresWorkStore implements WorkStore {
  readonly #pool: Pool
  readonly #leases: Pool

  /** @param leases what claims are renewed through, so that nothing else holds that up; default the same pool. */
  constructor(pool: Pool, leases: Pool = pool) {
    this.#pool = pool
    this.#leases = leases
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

  async advance(processManager: string, from: Checkpoint, to: bigint, changes: WorkChanges): Promise<void> {
    const checkpoint = [String(to), processManager, String(from.position), from.epoch]
    // one statement, so that nothing is stored unless the checkpoint moved
    const result = isEmpty(changes)
      ? await this.#pool.query({ name: 'work/move', text: move(1), values: checkpoint })
      : await this.#pool.query({
          name: 'work/advance',
          text: `WITH moved AS (${move(3)}),
                 stored AS (${store('EXISTS (SELECT 1 FROM moved)')}),
                 cancelled AS (${cancel('EXISTS (SELECT 1 FROM moved)')})
                 SELECT 1 FROM moved`,
          values: [...changeValues(changes), ...checkpoint],
        })
    if (result.rowCount !== 1) throw new CheckpointMoved(processManager)
  }

  async setProblem(processManager: string, epoch: number, problem: string | null): Promise<void> {
    await this.#pool.query({
      name: 'work/set-problem',
      text: 'UPDATE runtime.process_managers SET problem = $3 WHERE name = $1 AND epoch = $2',
      values: [processManager, epoch, problem],
    })
  }

  async checkpoints(processManagers: readonly string[]) {
    const result = await this.#pool.query<{
      name: string
      position: string
      epoch: string
      problem: string | null
    }>({
      name: 'work/checkpoints',
      text: 'SELECT name, position, epoch, problem FROM runtime.process_managers WHERE name = ANY($1)',
      values: [processManagers],
    })
    return new Map(
      result.rows.map(({ name, position, epoch, problem }) => [
        name,
        { position: BigInt(position), epoch: Number(epoch), problem },
      ]),
    )
  }

  async claim(request: Parameters<WorkStore['claim']>[0]): Promise<readonly ClaimedWork[]> {
    const { only } = request
    const result = await this.#pool.query<WorkRow>({
      name: only ? 'work/claim-one' : 'work/claim',
      text: `WITH next AS (
               SELECT process_manager, kind, key FROM runtime.work
               WHERE state <> 'failed' AND due_at <= $1 AND process_manager = ANY($2)
                 AND not_before <= clock_timestamp()
                 AND (lease_until IS NULL OR lease_until <= clock_timestamp()
                   OR ${isGone('lease_owner')} AND NOT ${isGone('$5')})
                 AND ${NOT_HELD('$3')}
                 ${only ? 'AND process_manager = $7 AND kind = $8 AND key = $9' : ''}
               ORDER BY due_at, stored_order LIMIT $4 FOR UPDATE SKIP LOCKED
             )
             UPDATE runtime.work AS work SET
               state = 'leased', lease_owner = $5, lease_token = nextval('runtime.work_claims'),
               lease_until = clock_timestamp() + $6 * interval '1 millisecond',
               attempts = attempts + 1, held_at = NULL, again = false
             FROM next
             WHERE work.process_manager = next.process_manager AND work.kind = next.kind
               AND work.key = next.key
             RETURNING work.*`,
      values: [
        request.now,
        request.processManagers,
        request.holds,
        request.limit,
        request.owner,
        request.leaseMs,
        ...(only ? [only.processManager, only.kind, only.key] : []),
      ],
    })
    return result.rows
      .sort((a, b) => Number(a.due_at) - Number(b.due_at) || Number(a.stored_order) - Number(b.stored_order))
      .map((row) => ({
        processManager: row.process_manager,
        kind: row.kind,
        key: row.key,
        payload: row.payload,
        dueAt: Number(row.due_at),
        attempt: row.attempts,
        token: BigInt(row.lease_token),
        correlationId: row.correlation_id,
        causationId: row.causation_id,
        tenantId: row.tenant_id,
        environment: row.environment,
      }))
  }

  async renew(tokens: readonly bigint[], leaseMs: number): Promise<ReadonlySet<bigint>> {
    const result = await this.#leases.query<{ lease_token: string }>({
      name: 'work/renew',
      text: `UPDATE runtime.work SET lease_until = clock_timestamp() + $2 * interval '1 millisecond'
             WHERE lease_token = ANY($1::bigint[]) AND state = 'leased' RETURNING lease_token`,
      values: [tokens.map(String), leaseMs],
    })
    return new Set(result.rows.map((row) => BigInt(row.lease_token)))
  }

  async end(claim: ClaimedWork, end: WorkEnd): Promise<'ended' | 'due' | 'lost'> {
    const { processManager, kind, key, token } = claim
    const mine = [processManager, kind, key, String(token)]
    const isMine = IS_MINE(1)
    if (end.end === 'done') {
      const gone = await this.#done(mine, end.changes ?? NO_CHANGES)
      if (gone) return 'ended'
      // a statement of its own: it must see an intent that came while the deletion waited for the row
      const kept = await this.#pool.query({
        name: 'work/done-again',
        text: `UPDATE runtime.work SET ${FREED}, state = 'due', attempts = 0 WHERE ${isMine}`,
        values: mine,
      })
      return kept.rowCount === 1 ? 'due' : 'lost'
    }
    const { name, set, values } = ENDS[end.end](end as never)
    const result = await this.#pool.query<{ stored_again: boolean }>({
      name: `work/${name}`,
      text: `WITH mine AS (SELECT again AS stored_again FROM runtime.work WHERE ${isMine} FOR UPDATE)
             UPDATE runtime.work SET ${FREED}, ${set} FROM mine WHERE ${isMine} RETURNING stored_again`,
      values: [...mine, ...values],
    })
    const row = result.rows[0]
    if (!row) return 'lost'
    return row.stored_again || end.end === 'interrupted' ? 'due' : 'ended'
  }

  /** One statement, so that whoever lost the claim stores nothing either. */
  async #done(claim: readonly string[], changes: WorkChanges): Promise<boolean> {
    const gone = (first: number) =>
      `DELETE FROM runtime.work WHERE ${IS_MINE(first)} AND NOT again RETURNING 1`
    const result = isEmpty(changes)
      ? await this.#pool.query({ name: 'work/done', text: gone(1), values: [...claim] })
      : await this.#pool.query({
          name: 'work/done-with',
          text: `WITH gone AS (${gone(3)}),
                 stored AS (${store('EXISTS (SELECT 1 FROM gone)')}),
                 cancelled AS (${cancel('EXISTS (SELECT 1 FROM gone)')})
                 SELECT 1 FROM gone`,
          values: [...changeValues(changes), ...claim],
        })
    return result.rowCount === 1
  }

  async releaseAll(processManagers: readonly string[]): Promise<number> {
    const result = await this.#pool.query({
      name: 'work/release-all',
      text: `UPDATE runtime.work SET ${FREED}, state = 'due' WHERE state = 'leased' AND process_manager = ANY($1)`,
      values: [processManagers],
    })
    return result.rowCount ?? 0
  }

  async nextDue(after: number): Promise<number | null> {
    const result = await this.#pool.query<{ due_at: string | null }>({
      name: 'work/next-due',
      text: `SELECT min(due_at) AS due_at FROM runtime.work WHERE state <> 'failed' AND due_at > $1`,
      values: [after],
    })
    const due = result.rows[0]?.due_at
    return due === null || due === undefined ? null : Number(due)
  }

  async counts(request: Parameters<WorkStore['counts']>[0]): Promise<WorkCounts> {
    const result = await this.#pool.query<Record<keyof WorkCounts, number>>({
      name: 'work/counts',
      text: `SELECT
               count(*) FILTER (WHERE state = 'due' AND due_at <= $1 AND ${NOT_HELD('$2')})::int AS due,
               count(*) FILTER (WHERE state = 'leased')::int AS leased,
               count(*) FILTER (WHERE state = 'due' AND due_at <= $1 AND NOT ${NOT_HELD('$2')})::int AS held,
               count(*) FILTER (WHERE state = 'due' AND due_at > $1)::int AS later,
               count(*) FILTER (WHERE state = 'failed')::int AS failed
             FROM runtime.work WHERE $3::text[] IS NULL OR process_manager = ANY($3)`,
      values: [request.now, request.holds, request.processManagers ?? null],
    })
    return result.rows[0]!
  }

  async keysOf(processManager: string, kind: string, state?: 'failed'): Promise<readonly string[]> {
    const result = await this.#pool.query<{ key: string }>({
      name: 'work/keys',
      text: `SELECT key FROM runtime.work
             WHERE process_manager = $1 AND kind = $2 AND ($3::text IS NULL OR state = $3) ORDER BY stored_order`,
      values: [processManager, kind, state ?? null],
    })
    return result.rows.map((row) => row.key)
  }

  async failed(limit: number): Promise<readonly FailedWork[]> {
    const result = await this.#pool.query<{
      process_manager: string
      kind: string
      key: string
      due_at: string
      attempts: number
      last_error: string | null
      correlation_id: string
      tenant_id: string | null
    }>({
      name: 'work/failed',
      text: `SELECT process_manager, kind, key, due_at, attempts, last_error, correlation_id, tenant_id
             FROM runtime.work WHERE state = 'failed' ORDER BY due_at, stored_order LIMIT $1`,
      values: [limit],
    })
    return result.rows.map((row) => ({
      processManager: row.process_manager,
      kind: row.kind,
      key: row.key,
      dueAt: Number(row.due_at),
      attempts: row.attempts,
      error: row.last_error,
      correlationId: row.correlation_id,
      tenantId: row.tenant_id,
    }))
  }

  async redrive(request: { key?: WorkKey; dryRun: boolean }): Promise<number> {
    const chosen = `state = 'failed' AND ($1::text IS NULL OR (process_manager, kind, key) = ($1, $2::text, $3::text))`
    const { key } = request
    const values = [key?.processManager ?? null, key?.kind ?? null, key?.key ?? null]
    if (request.dryRun) {
      const result = await this.#pool.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM runtime.work WHERE ${chosen}`,
        values,
      )
      return result.rows[0]!.count
    }
    const result = await this.#pool.query(
      `UPDATE runtime.work SET state = 'due', attempts = 0, not_before = '-infinity' WHERE ${chosen}`,
      values,
    )
    return result.rowCount ?? 0
  }
}

/** A claim given back. */
const FREED = 'again = false, lease_owner = NULL, lease_until = NULL, lease_token = NULL'
/** Work stored again while it was in hands starts afresh, whatever became of what was done before. */
const unlessAgain = (value: string, fresh: string) => `CASE WHEN again THEN ${fresh} ELSE ${value} END`

interface Ended {
  readonly name: string
  readonly set: string
  readonly values: readonly (string | number)[]
}

/** The columns that each way to end a claim sets; their values follow the four that name the claim. */
const ENDS: {
  readonly [End in Exclude<WorkEnd['end'], 'done'>]: (end: Extract<WorkEnd, { end: End }>) => Ended
} = {
  retry: ({ afterMs, why, isTry = true }) => ({
    name: 'retry',
    set: `state = 'due', attempts = ${unlessAgain('attempts - $7::integer', '0')}, last_error = $6,
          not_before = ${unlessAgain(`clock_timestamp() + $5 * interval '1 millisecond'`, `'-infinity'`)}`,
    values: [afterMs, why, isTry ? 0 : 1],
  }),
  held: ({ at }) => ({
    name: 'held',
    set: `state = 'due', attempts = attempts - 1, held_at = ${unlessAgain('$5', 'NULL')}`,
    values: [at],
  }),
  interrupted: () => ({ name: 'interrupted', set: `state = 'due', attempts = attempts - 1`, values: [] }),
  reschedule: ({ at }) => ({
    name: 'reschedule',
    set: `state = 'due', attempts = 0, last_error = NULL, due_at = ${unlessAgain('$5', 'due_at')}`,
    values: [at],
  }),
  failed: ({ why }) => ({
    name: 'fail',
    set: `state = ${unlessAgain(`'failed'`, `'due'`)}, attempts = ${unlessAgain('attempts', '0')},
          last_error = $5`,
    values: [why],
  }),
}

function isEmpty(changes: WorkChanges): boolean {
  return changes.store.length === 0 && changes.cancel.length === 0
}

function changeValues(changes: WorkChanges): [string, string] {
  const name = ({ processManager, kind, key }: WorkKey) => ({ process_manager: processManager, kind, key })
  const store = changes.store.map((work) => ({
    ...name(work),
    payload: work.payload,
    due_at: work.dueAt,
    correlation_id: work.correlationId,
    causation_id: work.causationId,
    tenant_id: work.tenantId,
    environment: work.environment,
  }))
  return [JSON.stringify(store), JSON.stringify(changes.cancel.map(name))]
}

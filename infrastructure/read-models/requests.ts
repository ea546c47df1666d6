import type { Pool, QueryConfig } from 'pg'
import type {
  ProjectionRequest,
  RequestKind,
  RequestOutcome,
  RequestStore,
} from '../../projections/runtime/store.ts'
import type { Database } from '../database/database.ts'
import { run } from './errors.ts'

const REQUEST_EXPIRES_S = 60

/** The statement that answers a request, once. */
export function answerStatement(id: string, outcome: RequestOutcome): QueryConfig {
  return {
    text: 'UPDATE runtime.projection_requests SET outcome = $2 WHERE id = $1 AND outcome IS NULL',
    values: [id, JSON.stringify(outcome)],
  }
}

/** Requests to projections, in `runtime.projection_requests`. */
export class PostgresRequestStore implements RequestStore {
  readonly #database: Database
  readonly #pool: Pool

  /** @param pool for what no caller waits for. */
  constructor(database: Database, pool: Pool) {
    this.#database = database
    this.#pool = pool
  }

  async ask(projection: string, kind: RequestKind, args: Readonly<Record<string, unknown>>): Promise<string> {
    const { rows } = await run<{ id: string }>(this.#database.pool, {
      text: `INSERT INTO runtime.projection_requests (projection, kind, arguments) VALUES ($1, $2, $3) RETURNING id`,
      values: [projection, kind, JSON.stringify(args)],
    })
    return rows[0]!.id
  }

  async open(projections: readonly string[]): Promise<readonly ProjectionRequest[]> {
    const { rows } = await run<ProjectionRequest>(this.#pool, {
      name: 'projections/open-requests',
      text: `SELECT id, projection, kind, arguments FROM runtime.projection_requests
             WHERE outcome IS NULL AND projection = ANY($1)
               AND requested_at > clock_timestamp() - ${REQUEST_EXPIRES_S} * interval '1 second' ORDER BY id`,
      values: [projections],
    })
    return rows
  }

  async answer(id: string, outcome: RequestOutcome): Promise<void> {
    await run(this.#pool, answerStatement(id, outcome))
  }

  async outcome(id: string): Promise<RequestOutcome | null> {
    const { rows } = await run<{ outcome: RequestOutcome | null }>(this.#database.pool, {
      name: 'projections/outcome',
      text: 'SELECT outcome FROM runtime.projection_requests WHERE id = $1',
      values: [id],
    })
    return rows[0]?.outcome ?? null
  }
}

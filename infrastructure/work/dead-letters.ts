import type { Pool } from 'pg'
import { INTEGRATION_EVENTS_NAME } from '../../application/followers/integration-publisher.ts'
import { DEAD_LETTERED_STREAM } from '../../application/followers/work-store.ts'
import type { DeadLetter, DeadLetterScope, DeadLetters } from '../../application/ports/dead-letters.ts'
import type { ListPage, PageRequest } from '../../application/ports/read-database.ts'

/** Process managers by name: so their work is found by its key. */
const FOUND = `
  WITH found AS (
    SELECT projection AS reader, 'projection' AS kind, generation, stream, revision,
           category || ': ' || message AS error, attempts, parked_at AS since
    FROM runtime.parked_streams JOIN runtime.projections USING (projection, generation)
    WHERE role <> 'retired'
    UNION ALL
    SELECT process_manager, CASE process_manager WHEN $4 THEN 'integration_events' ELSE 'process_manager' END,
           NULL, key, (payload ->> 'revision')::integer, last_error, attempts, dead_lettered_at
    FROM runtime.work WHERE process_manager = ANY ($3) AND kind = '${DEAD_LETTERED_STREAM}'
  ), wanted AS (
    SELECT * FROM found WHERE ($1::text IS NULL OR reader = $1) AND ($2::text IS NULL OR kind = $2)
  )`

/** Dead-lettered streams of all readers: those of projections in `runtime.parked_streams`, all others in `runtime.work`. */
export class PostgresDeadLetters implements DeadLetters {
  readonly #pool: Pick<Pool, 'query'>
  readonly #processManagers: readonly string[]

  /** @param processManagers names of all that there are. */
  constructor(pool: Pick<Pool, 'query'>, processManagers: readonly string[]) {
    this.#pool = pool
    this.#processManagers = [...processManagers, INTEGRATION_EVENTS_NAME]
  }

  async list({ reader, kind }: DeadLetterScope, { page, limit }: PageRequest): Promise<ListPage<DeadLetter>> {
    const wanted = [reader, kind, this.#processManagers, INTEGRATION_EVENTS_NAME]
    const [counted, { rows: items }] = await Promise.all([
      this.#pool.query<{ total: number }>({
        name: 'dead-letters/count',
        text: `${FOUND} SELECT count(*)::integer AS total FROM wanted`,
        values: wanted,
      }),
      this.#pool.query<DeadLetter>({
        name: 'dead-letters/list',
        text: `${FOUND} SELECT * FROM wanted ORDER BY since DESC NULLS LAST, reader, stream, generation
               LIMIT $5 OFFSET $6`,
        values: [...wanted, limit, (page - 1) * limit],
      }),
    ])
    return { items, total: counted.rows[0]!.total }
  }
}

import type { Pool } from 'pg'
import { INTEGRATION_EVENTS_NAME } from '../../application/followers/integration-publisher.ts'
import { DEAD_LETTERED_STREAM } from '../../application/followers/work-store.ts'
import type {
  DeadLetter,
  DeadLetterScope,
  DeadLetters,
  LogReader,
} from '../../application/ports/dead-letters.ts'
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
    FROM runtime.work
    WHERE process_manager = ANY ($3::text[] || ARRAY(SELECT name FROM runtime.process_managers)) AND kind = '${DEAD_LETTERED_STREAM}'
  ), wanted AS (
    SELECT * FROM found WHERE ($1::text IS NULL OR reader = $1) AND ($2::text IS NULL OR kind = $2)
  )`

/** Those that the database knows beside the ones of this release. */
const READERS = `
  SELECT name, kind FROM (
    SELECT projection, 'projection' FROM runtime.projections WHERE role <> 'retired'
    UNION SELECT unnest($1::text[]), 'projection'
    UNION SELECT name, CASE name WHEN $3 THEN 'integration_events' ELSE 'process_manager' END
      FROM (SELECT name FROM runtime.process_managers UNION SELECT unnest($2::text[])) AS other
  ) AS reader (name, kind) ORDER BY name COLLATE "C", kind`

/** Dead-lettered streams of all readers: those of projections in `runtime.parked_streams`, all others in `runtime.work`. */
export class PostgresDeadLetters implements DeadLetters {
  readonly #pool: Pick<Pool, 'query'>
  readonly #projections: readonly string[]
  readonly #processManagers: readonly string[]

  /** @param names of all that this release has. */
  constructor(
    pool: Pick<Pool, 'query'>,
    names: { readonly projections: readonly string[]; readonly processManagers: readonly string[] },
  ) {
    this.#pool = pool
    this.#projections = names.projections
    this.#processManagers = [...names.processManagers, INTEGRATION_EVENTS_NAME]
  }

  async readers(): Promise<readonly LogReader[]> {
    const { rows } = await this.#pool.query<LogReader>({
      name: 'dead-letters/readers',
      text: READERS,
      values: [this.#projections, this.#processManagers, INTEGRATION_EVENTS_NAME],
    })
    return rows
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

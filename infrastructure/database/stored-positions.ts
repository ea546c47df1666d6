import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { LOG_START } from '../../application/ports/event-log.ts'
import type { LogIdentity, StoredPositions } from '../../application/ports/stored-positions.ts'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import type { Database } from './database.ts'
import { type LogEngine, OtherEventLog, readBinding, storeBinding } from './log-binding.ts'
import { schemaName } from './projection-store.ts'

/** Sessions of a service that has just ended are gone by then. */
const WAIT_MS = 3_000
const CHUNK = 50_000

/** A service works on the database; the message is one clear line. */
export class DatabaseInUse extends Error {
  override readonly name = 'DatabaseInUse'
}

/** A place where a position is stored: a column, or the member `position` of a jsonb column. */
interface Place {
  readonly table: string
  readonly column: string
  readonly isJson: boolean
}

const column = (table: string, name: string): Place => ({ table, column: name, isJson: false })
const json = (table: string, name: string): Place => ({ table, column: name, isJson: true })

/** Everything in `runtime` that holds a position of the log. */
export const RUNTIME_PLACES: readonly Place[] = [
  column('runtime.projections', 'position'),
  json('runtime.projections', 'failure'),
  json('runtime.projections', 'comparison'),
  column('runtime.parked_events', 'position'),
  column('runtime.process_managers', 'position'),
]

/** The positions that a database of the service stores: in `runtime`, and in read models of every generation. */
export class PostgresStoredPositions implements StoredPositions {
  readonly name: string
  readonly #database: Database
  readonly #from: LogEngine
  readonly #to: LogEngine
  readonly #tables: readonly TableDefinition[]

  /** @param options.tables tables of the read models in the code; older generations do not say which columns count. */
  constructor(
    database: Database,
    options: {
      readonly from: LogEngine
      readonly to: LogEngine
      readonly tables: readonly TableDefinition[]
    },
  ) {
    this.name = `PostgreSQL at ${database.name}`
    this.#database = database
    this.#from = options.from
    this.#to = options.to
    this.#tables = options.tables
  }

  async follows(source: LogIdentity, target: LogIdentity): Promise<'source' | 'target' | 'either'> {
    const bound = await readBinding(this.#database.pool)
    const is = (engine: LogEngine, log: LogIdentity) =>
      bound?.engine === engine &&
      log.firstEventId !== null &&
      bound.firstEventId === log.firstEventId &&
      bound.firstPosition === log.firstPosition
    const [isSource, isTarget] = [is(this.#from, source), is(this.#to, target)]
    if (isSource && isTarget) return 'either'
    if (isSource) return 'source'
    if (isTarget) return 'target'
    // bound to a log that was empty then, or to none: right only for what has not got beyond its start
    if (bound?.firstEventId == null) {
      if (bound?.engine === this.#from) return 'source'
      if ((await this.read()).every((position) => position === LOG_START)) return 'source'
    }
    throw new OtherEventLog(
      `${this.name}: its checkpoints follow another log than the one that is copied; ` +
        'name the database that belongs to it with --checkpoints-of, or none',
    )
  }

  async read(): Promise<BigInt64Array> {
    await this.#refuseWhileInUse(this.#database.pool)
    const places = await this.#places(this.#database.pool)
    // reads whole tables, which may take longer than a request
    const { rows } = await this.#database.withOwner((client) =>
      client.query<[string]>({
        text: `SELECT DISTINCT position FROM (${places.map(selectFrom).join(' UNION ALL ')}) AS stored (position)
                WHERE position IS NOT NULL ORDER BY position`,
        rowMode: 'array',
      }),
    )
    return BigInt64Array.from(rows, ([position]) => BigInt(position))
  }

  async replace(before: BigInt64Array, after: BigInt64Array, log: LogIdentity): Promise<void> {
    await this.#database.withOwner(async (client) => {
      await client.query('BEGIN')
      try {
        const places = await this.#places(client)
        const tables = [...new Set(places.map(({ table }) => table))]
        await client.query(`LOCK TABLE ${tables.join(', ')}, runtime.log_binding IN EXCLUSIVE MODE`)
        await this.#refuseWhileInUse(client)
        await client.query(
          'CREATE TEMPORARY TABLE moved (before bigint PRIMARY KEY, after bigint NOT NULL) ON COMMIT DROP',
        )
        for (let at = 0; at < before.length; at += CHUNK) {
          await client.query('INSERT INTO moved SELECT * FROM unnest($1::bigint[], $2::bigint[])', [
            [...before.subarray(at, at + CHUNK)].map(String),
            [...after.subarray(at, at + CHUNK)].map(String),
          ])
        }
        await client.query('ANALYZE moved')
        for (const place of places) await replaceIn(client, place)
        // in positions per second, of which the other log has another number
        await client.query('UPDATE runtime.projections SET rate = 0')
        await storeBinding(client, { engine: this.#to, ...log })
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  async #places(db: Pick<pg.ClientBase, 'query'>): Promise<readonly Place[]> {
    const { rows } = await db.query<{
      projection: string
      generation: number
      tables: readonly TableDefinition[]
    }>('SELECT projection, generation, tables FROM runtime.projections ORDER BY 1, 2')
    const ofReadModels = rows.flatMap(({ projection, generation, tables }) =>
      tables.flatMap((table) => {
        const today = this.#tables.find(({ name }) => name === table.name)
        const columns = new Set([...(table.positions ?? []), ...(today?.positions ?? [])])
        return [...columns]
          .filter((name) => name in table.columns)
          .map((name) =>
            column(`${quoted(schemaName({ projection, generation }))}.${quoted(table.name)}`, name),
          )
      }),
    )
    return [...RUNTIME_PLACES, ...ofReadModels]
  }

  /** A service on EventStoreDB holds nothing in its log; its sessions here give it away. @throws DatabaseInUse */
  async #refuseWhileInUse(db: Pick<pg.ClientBase, 'query'>): Promise<void> {
    for (const deadline = performance.now() + WAIT_MS; ; ) {
      const { rows } = await db.query<{ sessions: number }>(
        `SELECT count(*)::int AS sessions FROM pg_stat_activity
          WHERE datname = current_database() AND application_name IN ('compstream', 'compstream background', 'compstream leases', 'compstream listener')`,
      )
      if (rows[0]!.sessions === 0) return
      if (performance.now() > deadline) {
        throw new DatabaseInUse(`${this.name} is in use by a service: stop every service on it first`)
      }
      await delay(100)
    }
  }
}

function selectFrom({ table, column: name, isJson }: Place): string {
  return `SELECT ${isJson ? `(${name} ->> 'position')::bigint` : quoted(name)} FROM ${table}`
}

async function replaceIn(client: pg.Client, { table, column: name, isJson }: Place): Promise<void> {
  await client.query(
    isJson
      ? `UPDATE ${table} AS stored SET ${name} = jsonb_set(${name}, '{position}', to_jsonb(moved.after))
           FROM moved WHERE (stored.${name} ->> 'position')::bigint = moved.before`
      : `UPDATE ${table} AS stored SET ${quoted(name)} = moved.after
           FROM moved WHERE stored.${quoted(name)} = moved.before`,
  )
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

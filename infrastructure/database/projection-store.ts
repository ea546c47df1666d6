import type { ClientBase, Pool, QueryConfig } from 'pg'
import type { Row, TableDefinition } from '../../projections/runtime/projection.ts'
import {
  type Comparison,
  type Failure,
  type GenerationRecord,
  type GenerationRef,
  type PageOfChanges,
  type ParkedStream,
  type ProjectionRequest,
  type ProjectionStore,
  ProjectionStoreError,
  type RequestKind,
  type RequestOutcome,
  shapeOf,
} from '../../projections/runtime/projection-store.ts'
import { DatabaseUnavailable, endClient, orUnavailable } from './connection.ts'
import { type Database, STATEMENT_LIMIT_MS } from './database.ts'
import { plainTypes } from './plain-types.ts'
import { rowsAsJson } from './rows-as-json.ts'
import { grantSchemaToServiceRole } from './service-role.ts'

/** Readers that hold a view longer than this make a switch step back and try again. */
const VIEW_LOCK_MS = 500
const REQUEST_EXPIRES_S = 60
/** What somebody waits for is given up like any request, although it shares the connections of what nobody waits for. */
const WAITED_FOR = { query_timeout: STATEMENT_LIMIT_MS.request }

/**
 * Projections in PostgreSQL. Each generation has a schema of its own; `read_model.<table>` are views
 * on the live one. A page is written by one statement that moves the checkpoint and, only if that
 * hit, changes the rows: one round trip, one transaction.
 */
export class PostgresProjectionStore implements ProjectionStore {
  readonly #database: Database
  readonly #pool: Pool
  readonly #texts = new Map<string, string>()

  /** @param pool what pages are fetched and written through, default the database's pool for such. */
  constructor(database: Database, pool: Pool = database.background) {
    this.#database = database
    this.#pool = pool
  }

  async generations(): Promise<readonly GenerationRecord[]> {
    const { rows } = await this.#run<GenerationRow>({
      ...WAITED_FOR,
      name: 'projections/generations',
      text: `${SELECT_GENERATION} ORDER BY projection, generation`,
    })
    return rows.map(generationRecord)
  }

  async claim(projection: string, epoch: number): Promise<readonly GenerationRecord[]> {
    try {
      return await this.#database.transaction(async (client) => {
        await client.query('UPDATE runtime.projections SET epoch = $2 WHERE projection = $1 AND epoch < $2', [
          projection,
          epoch,
        ])
        const { rows } = await client.query<GenerationRow>(
          `${SELECT_GENERATION} WHERE projection = $1 ORDER BY generation`,
          [projection],
        )
        if (rows.some((row) => Number(row.epoch) !== epoch)) throw fenced()
        return rows.map(generationRecord)
      }, this.#pool)
    } catch (error) {
      throw classified(error)
    }
  }

  async positions(projections: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
    const { rows } = await this.#run<{ projection: string; position: string }>(
      {
        name: 'projections/positions',
        text: `SELECT projection, position FROM runtime.projections WHERE role = 'live' AND projection = ANY($1)`,
        values: [projections],
      },
      this.#database.pool,
    )
    return new Map(rows.map((row) => [row.projection, BigInt(row.position)]))
  }

  async create(
    generation: GenerationRef & { version: number; role: 'live' | 'shadow'; autoSwitch: boolean },
    epoch: number,
  ): Promise<void> {
    const schema = schemaOf(generation)
    await this.#asOwner(async (client) => {
      // left over when an earlier attempt lost its owner half way
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await client.query(`CREATE SCHEMA ${schema}`)
      for (const table of generation.tables) {
        for (const statement of tableStatements(schema, table)) await client.query(statement)
      }
      if (this.#database.serviceRole) await grantSchemaToServiceRole(client, schemaName(generation))
      const inserted = await client.query(
        `INSERT INTO runtime.projections (projection, generation, version, role, state, epoch, shape, tables, auto_switch)
         SELECT $1, $2, $3, $4, 'booting', $5, $6, $7, $8
         WHERE NOT EXISTS (SELECT FROM runtime.projections WHERE projection = $1 AND epoch > $5)`,
        [
          generation.projection,
          generation.generation,
          generation.version,
          generation.role,
          epoch,
          shapeOf(generation.tables),
          JSON.stringify(generation.tables),
          generation.autoSwitch,
        ],
      )
      if (inserted.rowCount !== 1) throw fenced()
      if (generation.role === 'live') await defineViews(client, [], generation)
    })
  }

  async drop(generation: GenerationRef, epoch: number): Promise<void> {
    await this.#asOwner(async (client) => {
      await client.query(`SET LOCAL lock_timeout = ${VIEW_LOCK_MS}`)
      const deleted = await client.query(
        `DELETE FROM runtime.projections
         WHERE projection = $1 AND generation = $2 AND epoch = $3 AND role <> 'live'`,
        [generation.projection, generation.generation, epoch],
      )
      if (deleted.rowCount !== 1) throw fenced()
      await client.query(`DROP SCHEMA IF EXISTS ${schemaOf(generation)} CASCADE`)
    })
  }

  async fetch(
    generation: GenerationRef,
    tableName: string,
    keys: readonly (readonly unknown[])[],
  ): Promise<readonly Row[]> {
    const name = statementName(generation, `fetch/${tableName}`)
    let text = this.#texts.get(name)
    const table = generation.tables.find((one) => one.name === tableName)!
    if (!text) {
      const wanted = table.key.map((column) => `${quoted(column)} ${table.columns[column]}`).join(', ')
      const columns = Object.keys(table.columns).map((column) => `t.${quoted(column)}`)
      const match = table.key.map((column) => `t.${quoted(column)} = k.${quoted(column)}`)
      text = `SELECT ${columns.join(', ')} FROM json_to_recordset($1::json) AS k(${wanted})
              JOIN ${schemaOf(generation)}.${quoted(tableName)} AS t ON ${match.join(' AND ')}`
      this.#texts.set(name, text)
    }
    const wanted = keys.map((key) =>
      Object.fromEntries(table.key.map((column, index) => [column, jsonKey(key[index])])),
    )
    const { rows } = await this.#run<Row>({
      name,
      text,
      values: [JSON.stringify(wanted)],
      types: plainTypes,
    })
    return rows
  }

  async write(generation: GenerationRef, page: PageOfChanges): Promise<void> {
    const { name, text } = this.#writeStatement(generation, page)
    const values: unknown[] = [
      generation.projection,
      generation.generation,
      page.epoch,
      page.from,
      page.to,
      page.rate,
    ]
    for (const changes of page.tables) {
      if (changes.put.length > 0) values.push(await rowsAsJson(changes.put))
      if (changes.removed.length > 0) values.push(await rowsAsJson(changes.removed))
    }
    if (page.park.length > 0) values.push(await rowsAsJson(page.park.map(parkedRow)))
    if (page.unpark.length > 0) values.push(page.unpark)
    const { rows } = await this.#run<{ moved: string }>({ name, text, values })
    if (Number(rows[0]?.moved) !== 1) throw fenced()
  }

  /** One statement per combination of what a page touches, so that each stays prepared. */
  #writeStatement(generation: GenerationRef, page: PageOfChanges): { name: string; text: string } {
    let touched = ''
    for (const { table, put, removed } of page.tables) {
      const index = generation.tables.findIndex((one) => one.name === table)
      if (put.length > 0) touched += `p${index}`
      if (removed.length > 0) touched += `r${index}`
    }
    if (page.park.length > 0) touched += 'k'
    if (page.unpark.length > 0) touched += 'u'
    const name = statementName(generation, `write/${touched}`)
    const known = this.#texts.get(name)
    if (known) return { name, text: known }

    let parameter = 6
    const next = () => {
      parameter += 1
      return `$${parameter}`
    }
    const schema = schemaOf(generation)
    const parts = [
      `moved AS (
         UPDATE runtime.projections SET position = $5, rate = $6, updated_at = clock_timestamp()
         WHERE projection = $1 AND generation = $2 AND epoch = $3 AND position = $4 RETURNING 1)`,
    ]
    for (const changes of page.tables) {
      const table = generation.tables.find((one) => one.name === changes.table)!
      if (changes.put.length > 0) parts.push(upsert(schema, table, next()))
      if (changes.removed.length > 0) parts.push(removal(schema, table, next()))
    }
    if (page.park.length > 0) {
      parts.push(`parked AS (
        INSERT INTO runtime.parked_events AS p
          (projection, generation, stream, position, revision, type, category, message, attempts)
        SELECT $1, $2, r.* FROM json_to_recordset(${next()}::json)
          AS r(stream text, position bigint, revision integer, type text, category text, message text, attempts integer)
        WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (projection, generation, stream) DO UPDATE SET
          position = excluded.position, revision = excluded.revision, type = excluded.type,
          category = excluded.category, message = excluded.message, attempts = excluded.attempts)`)
    }
    if (page.unpark.length > 0) {
      parts.push(`unparked AS (
        DELETE FROM runtime.parked_events WHERE projection = $1 AND generation = $2
          AND stream = ANY(${next()}) AND EXISTS (SELECT FROM moved))`)
    }
    // not waiting for the disk is safe here: what a crash takes back is rows and checkpoint together,
    // and the log has the events
    const text = `WITH ${parts.join(',\n')}
      SELECT count(*) AS moved, set_config('synchronous_commit', 'off', true) FROM moved`
    this.#texts.set(name, text)
    return { name, text }
  }

  async position(generation: GenerationRef, epoch: number): Promise<bigint> {
    const { rows } = await this.#run<{ position: string }>({
      name: 'projections/position',
      text: `SELECT position FROM runtime.projections WHERE projection = $1 AND generation = $2 AND epoch = $3`,
      values: [generation.projection, generation.generation, epoch],
    })
    if (!rows[0]) throw fenced()
    return BigInt(rows[0].position)
  }

  async parked(generation: GenerationRef): Promise<readonly ParkedStream[]> {
    const { rows } = await this.#run<ParkedRow>({
      ...WAITED_FOR,
      name: 'projections/parked',
      text: `SELECT stream, position, revision, type, category, message, attempts, parked_at
             FROM runtime.parked_events WHERE projection = $1 AND generation = $2 ORDER BY position`,
      values: [generation.projection, generation.generation],
      types: plainTypes,
    })
    return rows.map(({ parked_at, position, ...row }) => ({
      ...row,
      position: BigInt(position),
      parkedAt: parked_at,
    }))
  }

  async note(
    generation: GenerationRef,
    epoch: number,
    changes: {
      state?: GenerationRecord['state']
      failure?: Failure | null
      comparison?: Comparison | null
      autoSwitch?: boolean
      role?: 'shadow' | 'retired'
    },
  ): Promise<void> {
    const values: unknown[] = [generation.projection, generation.generation, epoch]
    const sets: string[] = []
    const set = (column: string, value: unknown) => sets.push(`${column} = $${values.push(value)}`)
    if (changes.state !== undefined) set('state', changes.state)
    if (changes.role !== undefined) set('role', changes.role)
    if (changes.autoSwitch !== undefined) set('auto_switch', changes.autoSwitch)
    if (changes.failure !== undefined) set('failure', changes.failure && failureJson(changes.failure))
    if (changes.comparison !== undefined) {
      set('comparison', changes.comparison && JSON.stringify(changes.comparison))
    }
    if (sets.length === 0) return
    const result = await this.#run({
      text: `UPDATE runtime.projections SET ${sets.join(', ')}, updated_at = clock_timestamp()
             WHERE projection = $1 AND generation = $2 AND epoch = $3`,
      values,
    })
    if (result.rowCount !== 1) throw fenced()
  }

  async detach(knownProjections: readonly string[]): Promise<void> {
    await this.#run({
      text: `UPDATE runtime.projections AS p SET state = 'detached', updated_at = clock_timestamp()
             WHERE NOT projection = ANY($1) AND state <> 'detached' AND NOT EXISTS (
               SELECT FROM runtime.leases AS l
               WHERE l.name = 'projection:' || p.projection AND l.owner <> '' AND l.expires_at > clock_timestamp())`,
      values: [knownProjections],
    })
  }

  async compare(live: GenerationRef, shadow: GenerationRef, pinned: () => void): Promise<Comparison> {
    try {
      const client = await this.#database.connect({
        purpose: 'comparison',
        statementMs: STATEMENT_LIMIT_MS.long,
      })
      try {
        // the end of the session ends its transaction
        return await compareIn(client, live, shadow, pinned)
      } finally {
        await endClient(client)
      }
    } catch (error) {
      throw classified(error)
    }
  }

  async switchTo(
    from: GenerationRef,
    to: GenerationRef,
    epoch: number,
    options: {
      rolledBackFrom: number | null
      answer?: { id: string; outcome: RequestOutcome } | undefined
    },
  ): Promise<void> {
    await this.#asOwner(async (client) => {
      await client.query(`SET LOCAL lock_timeout = ${VIEW_LOCK_MS}`)
      const retired = await client.query(
        `UPDATE runtime.projections SET role = 'retired', updated_at = clock_timestamp()
         WHERE projection = $1 AND generation = $2 AND epoch = $3 AND role = 'live'`,
        [from.projection, from.generation, epoch],
      )
      const live = await client.query(
        `UPDATE runtime.projections SET role = 'live', auto_switch = false, rolled_back_from = $4, updated_at = clock_timestamp()
         WHERE projection = $1 AND generation = $2 AND epoch = $3 AND role <> 'live'`,
        [to.projection, to.generation, epoch, options.rolledBackFrom],
      )
      if (retired.rowCount !== 1 || live.rowCount !== 1) throw fenced()
      await defineViews(client, from.tables, to)
      if (options.answer) await client.query(answerStatement(options.answer.id, options.answer.outcome))
    })
  }

  async ask(projection: string, kind: RequestKind, args: Readonly<Record<string, unknown>>): Promise<string> {
    const { rows } = await this.#run<{ id: string }>(
      {
        text: `INSERT INTO runtime.projection_requests (projection, kind, arguments) VALUES ($1, $2, $3) RETURNING id`,
        values: [projection, kind, JSON.stringify(args)],
      },
      this.#database.pool,
    )
    return rows[0]!.id
  }

  async openRequests(projections: readonly string[]): Promise<readonly ProjectionRequest[]> {
    const { rows } = await this.#run<ProjectionRequest & { expired: boolean }>({
      name: 'projections/open-requests',
      text: `SELECT id, projection, kind, arguments,
               requested_at < clock_timestamp() - ${REQUEST_EXPIRES_S} * interval '1 second' AS expired
             FROM runtime.projection_requests WHERE outcome IS NULL AND projection = ANY($1) ORDER BY id`,
      values: [projections],
    })
    for (const { id, expired } of rows) {
      if (expired)
        await this.answer(id, { ok: false, kind: 'expired', message: 'nobody took the request up in time' })
    }
    return rows.filter((row) => !row.expired)
  }

  async answer(id: string, outcome: RequestOutcome): Promise<void> {
    await this.#run(answerStatement(id, outcome))
  }

  async outcome(id: string): Promise<RequestOutcome | null> {
    const { rows } = await this.#run<{ outcome: RequestOutcome | null }>(
      {
        name: 'projections/outcome',
        text: 'SELECT outcome FROM runtime.projection_requests WHERE id = $1',
        values: [id],
      },
      this.#database.pool,
    )
    return rows[0]?.outcome ?? null
  }

  /** @param pool that of requests for what a caller waits for. */
  async #run<R extends object>(
    query: QueryConfig,
    pool = this.#pool,
  ): Promise<{ rows: R[]; rowCount: number | null }> {
    try {
      return await pool.query<R>(query)
    } catch (error) {
      throw classified(error)
    }
  }

  /** Definitions belong to the owner of the schemas; the service's own role reads and writes rows only. */
  async #asOwner(work: (client: ClientBase) => Promise<void>): Promise<void> {
    try {
      await this.#database.withOwner(async (client) => {
        await client.query('BEGIN')
        // the connection is closed after an error, which rolls back
        await work(client)
        await client.query('COMMIT')
      })
    } catch (error) {
      throw classified(error)
    }
  }
}

// ---- statements

function answerStatement(id: string, outcome: RequestOutcome): QueryConfig {
  return {
    text: 'UPDATE runtime.projection_requests SET outcome = $2 WHERE id = $1 AND outcome IS NULL',
    values: [id, JSON.stringify(outcome)],
  }
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

function schemaOf(generation: GenerationRef): string {
  return quoted(schemaName(generation))
}

/** The schema of a generation: `rm_<projection>_g<generation>`. */
export function schemaName(generation: Pick<GenerationRef, 'projection' | 'generation'>): string {
  return `rm_${generation.projection.replaceAll('-', '_')}_g${generation.generation}`
}

function statementName(generation: GenerationRef, what: string): string {
  return `${generation.projection}/${generation.generation}/${what}`
}

function tableStatements(schema: string, table: TableDefinition): readonly string[] {
  const columns = Object.entries(table.columns).map(
    ([column, type]) => `${quoted(column)} ${type}${type === 'text' ? ' COLLATE "C"' : ''}`,
  )
  const key = table.key.map(quoted).join(', ')
  const name = `${schema}.${quoted(table.name)}`
  // room on each page, so that updates of unindexed columns need not touch the indexes
  const create = `CREATE TABLE ${name} (${columns.join(', ')}, PRIMARY KEY (${key})) WITH (fillfactor = 80)`
  const indexes = (table.indexes ?? []).map((entries) => {
    const list = entries.map((entry) => {
      const [column, order] = entry.split(' ')
      return order === 'desc' ? `${quoted(column!)} DESC` : quoted(column!)
    })
    return `CREATE INDEX ON ${name} (${list.join(', ')})`
  })
  return [create, ...indexes]
}

function upsert(schema: string, table: TableDefinition, parameter: string): string {
  const columns = Object.keys(table.columns)
  const list = columns.map(quoted).join(', ')
  const types = columns.map((column) => `${quoted(column)} ${table.columns[column]}`).join(', ')
  const sets = columns
    .filter((column) => !table.key.includes(column))
    .map((column) => `${quoted(column)} = excluded.${quoted(column)}`)
  return `${quoted(`put ${table.name}`)} AS (
    INSERT INTO ${schema}.${quoted(table.name)} (${list})
    SELECT ${list} FROM json_to_recordset(${parameter}::json) AS r(${types}) WHERE EXISTS (SELECT FROM moved)
    ON CONFLICT (${table.key.map(quoted).join(', ')})
    DO ${sets.length > 0 ? `UPDATE SET ${sets.join(', ')}` : 'NOTHING'})`
}

function removal(schema: string, table: TableDefinition, parameter: string): string {
  const types = table.key.map((column) => `${quoted(column)} ${table.columns[column]}`).join(', ')
  const match = table.key.map((column) => `t.${quoted(column)} = r.${quoted(column)}`).join(' AND ')
  return `${quoted(`remove ${table.name}`)} AS (
    DELETE FROM ${schema}.${quoted(table.name)} AS t USING json_to_recordset(${parameter}::json) AS r(${types})
    WHERE ${match} AND EXISTS (SELECT FROM moved))`
}

/** Points the views at a generation; a view keeps its identity where its columns stay the same. */
async function defineViews(
  client: ClientBase,
  before: readonly TableDefinition[],
  generation: GenerationRef,
): Promise<void> {
  const schema = schemaOf(generation)
  for (const table of before) {
    const same = generation.tables.find((one) => one.name === table.name)
    if (!same || columnList(same) !== columnList(table)) {
      await client.query(`DROP VIEW IF EXISTS read_model.${quoted(table.name)}`)
    }
  }
  for (const table of generation.tables) {
    const columns = Object.keys(table.columns).sort().map(quoted).join(', ')
    await client.query(
      `CREATE OR REPLACE VIEW read_model.${quoted(table.name)} AS SELECT ${columns} FROM ${schema}.${quoted(table.name)}`,
    )
  }
}

function columnList(table: TableDefinition): string {
  return JSON.stringify(Object.entries(table.columns).sort(([a], [b]) => (a < b ? -1 : 1)))
}

async function compareIn(
  client: ClientBase,
  live: GenerationRef,
  shadow: GenerationRef,
  pinned: () => void,
): Promise<Comparison> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const { rows } = await client.query<{ position: string }>(
    `SELECT position FROM runtime.projections WHERE projection = $1 AND generation IN ($2, $3)`,
    [live.projection, live.generation, shadow.generation],
  )
  pinned()
  if (rows.length !== 2 || rows[0]!.position !== rows[1]!.position) {
    throw new ProjectionStoreError('transient', 'the generations do not stand at one position')
  }
  const tables: Comparison['tables'][number][] = []
  for (const one of live.tables) {
    const other = shadow.tables.find((table) => table.name === one.name)
    if (!other) continue
    const columns = Object.keys(one.columns)
      .filter((column) => one.columns[column] === other.columns[column])
      .sort()
    const [a, b] = [
      await digest(client, live, one.name, columns),
      await digest(client, shadow, one.name, columns),
    ]
    tables.push({ table: one.name, equal: a.rows === b.rows && a.hash === b.hash, live: a, shadow: b })
  }
  return {
    position: Number(rows[0]!.position),
    equal: tables.every((table) => table.equal),
    tables,
  }
}

/** Number of rows and a hash over them that does not depend on their order. */
async function digest(
  client: ClientBase,
  generation: GenerationRef,
  table: string,
  columns: readonly string[],
): Promise<{ rows: number; hash: string }> {
  const { rows } = await client.query<{ rows: string; hash: string }>(
    `SELECT count(*) AS rows,
       concat(coalesce(bit_xor(h), 0)::text, ':', coalesce(sum(h::numeric), 0)::text) AS hash
     FROM (SELECT hashtextextended(row(${columns.map(quoted).join(', ')})::text, 0) AS h
           FROM ${schemaOf(generation)}.${quoted(table)}) AS hashes`,
  )
  return { rows: Number(rows[0]!.rows), hash: rows[0]!.hash }
}

// ---- rows

interface GenerationRow {
  projection: string
  generation: number
  version: number
  role: GenerationRecord['role']
  state: GenerationRecord['state']
  position: string
  epoch: string
  rate: number
  shape: string
  tables: readonly TableDefinition[]
  auto_switch: boolean
  rolled_back_from: number | null
  failure: (Omit<Failure, 'position'> & { position: number | null }) | null
  comparison: Comparison | null
  parked_streams: number
}

interface ParkedRow extends Omit<ParkedStream, 'position' | 'parkedAt'> {
  position: number
  parked_at: string
}

const SELECT_GENERATION = `
  SELECT projection, generation, version, role, state, position, epoch, rate, shape, tables, auto_switch,
    rolled_back_from, failure, comparison,
    (SELECT count(*)::integer FROM runtime.parked_events AS e
     WHERE e.projection = g.projection AND e.generation = g.generation) AS parked_streams
  FROM runtime.projections AS g`

function generationRecord(row: GenerationRow): GenerationRecord {
  const { auto_switch, rolled_back_from, parked_streams, position, epoch, failure, ...same } = row
  return {
    ...same,
    position: BigInt(position),
    epoch: Number(epoch),
    autoSwitch: auto_switch,
    rolledBackFrom: rolled_back_from,
    parkedStreams: parked_streams,
    failure: failure && { ...failure, position: failure.position === null ? null : BigInt(failure.position) },
  }
}

function failureJson(failure: Failure): string {
  return JSON.stringify({
    ...failure,
    position: failure.position === null ? null : Number(failure.position),
  })
}

function parkedRow(parked: ParkedStream): Row {
  const { parkedAt: _, position, ...row } = parked
  return { ...row, position: String(position) }
}

function jsonKey(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

// ---- errors

function fenced(): ProjectionStoreError {
  return new ProjectionStoreError('fenced', 'another owner has taken over')
}

/** SQLSTATEs that pass by themselves although the server is there: rollback, locks, interventions, I/O. */
const TRANSIENT = /^(40|57|58|55P03|XX000)/
/** Classes that the values of a row are to blame for. */
const DATA = /^(22|23)/

interface DatabaseFault {
  readonly code?: string
  readonly routine?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
}

/**
 * Sorts an error of the driver. A server that is away passes by itself; it is the cause then, by which interfaces know
 * it. The server's own message is left out of data errors, because it quotes the value.
 */
function classified(error: unknown): ProjectionStoreError {
  if (error instanceof ProjectionStoreError) return error
  const told = orUnavailable('the read models', error)
  const isAway = told instanceof DatabaseUnavailable
  const fault = isAway ? told.cause : error
  const { code, routine, table, column, constraint } = (fault ?? {}) as DatabaseFault
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
  if (sqlState === null && !(error instanceof TypeError)) {
    return new ProjectionStoreError('transient', `database unreachable (${code ?? 'connection lost'})`, told)
  }
  const where = [
    table && `table ${table}`,
    column && `column ${column}`,
    constraint && `constraint ${constraint}`,
    routine && `in ${routine}`,
  ].filter(Boolean)
  const message = `SQLSTATE ${sqlState ?? 'unknown'}${where.length > 0 ? ` (${where.join(', ')})` : ''}`
  if (isAway) return new ProjectionStoreError('transient', message, told)
  if (sqlState && DATA.test(sqlState)) return new ProjectionStoreError('data', message)
  if (sqlState && TRANSIENT.test(sqlState)) return new ProjectionStoreError('transient', message, error)
  return new ProjectionStoreError('fatal', message, error)
}

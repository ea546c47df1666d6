import type { Pool } from 'pg'
import { storable } from '../../application/commands/storable-text.ts'
import type { Row, TableDefinition } from '../../projections/runtime/projection.ts'
import type {
  DeadLetteredStream,
  GenerationRef,
  PageOfChanges,
  PageStore,
} from '../../projections/runtime/store.ts'
import { plainTypes } from '../database/plain-types.ts'
import { Gathered } from '../gathered.ts'
import { fenced, run, WAITED_FOR } from './errors.ts'
import { rowsAsColumns } from './rows-as-columns.ts'
import { rowsAsJson } from './rows-as-json.ts'
import { quoted, schemaOf } from './tables.ts'

/** A checkpoint that moves over events that changed nothing. */
interface BareCheckpoint {
  readonly generation: GenerationRef
  readonly page: PageOfChanges
}

/**
 * Rows of generations. A page is written by one statement that moves the checkpoint and, only if that hit, changes the
 * rows: one round trip, one transaction.
 */
export class PostgresPageStore implements PageStore {
  readonly #pool: Pool
  readonly #texts = new Map<string, string>()
  readonly #moved: Gathered<BareCheckpoint, ReadonlySet<BareCheckpoint>>

  constructor(pool: Pool) {
    this.#pool = pool
    this.#moved = new Gathered((checkpoints) => this.#move(checkpoints), 'ordered')
  }

  async fetch(
    generation: GenerationRef,
    tableName: string,
    keys: readonly (readonly unknown[])[],
  ): Promise<readonly Row[]> {
    const name = statementName(generation, `fetch/${tableName}`)
    let text = this.#texts.get(name)
    const table = tableOf(generation, tableName)
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
    const { rows } = await run<Row>(this.#pool, {
      name,
      text,
      values: [storable(JSON.stringify(wanted))],
      types: plainTypes,
    })
    return rows
  }

  async write(generation: GenerationRef, page: PageOfChanges): Promise<void> {
    const isBare = page.tables.length + page.deadLetter.length + page.redriven.length === 0
    const checkpoint = { generation, page }
    if (isBare && (await this.#moved.ask(checkpoint)).has(checkpoint)) return
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
      const { columns } = tableOf(generation, changes.table)
      if (changes.put.length > 0) values.push(...(await rowsAsColumns(changes.put, columns)))
      if (changes.removed.length > 0) values.push(await rowsAsJson(changes.removed))
    }
    if (page.deadLetter.length > 0) values.push(await rowsAsJson(page.deadLetter.map(deadLetteredRow)))
    if (page.redriven.length > 0) values.push(page.redriven)
    const { rows } = await run<{ moved: string }>(this.#pool, { name, text, values })
    if (Number(rows[0]?.moved) !== 1) throw fenced()
  }

  /**
   * Moves bare checkpoints of one moment, each by compare-and-set as in {@link write}. What did not move is locked, or
   * belongs to another owner: a statement of its own waits for it, or says so.
   * @returns those that moved.
   */
  async #move(checkpoints: readonly BareCheckpoint[]): Promise<ReadonlySet<BareCheckpoint>> {
    const { rows } = await run<{ place: string }>(this.#pool, {
      name: 'projections/move',
      text: MOVE,
      values: [
        checkpoints.map(({ generation }) => generation.projection),
        checkpoints.map(({ generation }) => generation.generation),
        checkpoints.map(({ page }) => page.epoch),
        checkpoints.map(({ page }) => page.from),
        checkpoints.map(({ page }) => page.to),
        checkpoints.map(({ page }) => page.rate),
      ],
    })
    return new Set(rows.map(({ place }) => checkpoints[Number(place) - 1]!))
  }

  /** One statement per combination of what a page touches, so that each stays prepared. */
  #writeStatement(generation: GenerationRef, page: PageOfChanges): { name: string; text: string } {
    let touched = ''
    for (const { table, put, removed } of page.tables) {
      const index = generation.tables.findIndex((one) => one.name === table)
      if (put.length > 0) touched += `p${index}`
      if (removed.length > 0) touched += `r${index}`
    }
    if (page.deadLetter.length > 0) touched += 'k'
    if (page.redriven.length > 0) touched += 'u'
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
      const table = tableOf(generation, changes.table)
      if (changes.put.length > 0) parts.push(upsert(schema, table, next))
      if (changes.removed.length > 0) parts.push(removal(schema, table, next()))
    }
    if (page.deadLetter.length > 0) {
      parts.push(`parked AS (
        INSERT INTO runtime.parked_streams AS p
          (projection, generation, stream, position, revision, type, category, message, attempts)
        SELECT $1, $2, r.* FROM json_to_recordset(${next()}::json)
          AS r(stream text, position bigint, revision integer, type text, category text, message text, attempts integer)
        WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (projection, generation, stream) DO UPDATE SET
          position = excluded.position, revision = excluded.revision, type = excluded.type,
          category = excluded.category, message = excluded.message, attempts = excluded.attempts)`)
    }
    if (page.redriven.length > 0) {
      parts.push(`unparked AS (
        DELETE FROM runtime.parked_streams WHERE projection = $1 AND generation = $2
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
    const { rows } = await run<{ position: string }>(this.#pool, {
      name: 'projections/position',
      text: `SELECT position FROM runtime.projections WHERE projection = $1 AND generation = $2 AND epoch = $3`,
      values: [generation.projection, generation.generation, epoch],
    })
    if (!rows[0]) throw fenced()
    return BigInt(rows[0].position)
  }

  async deadLettered(generation: GenerationRef): Promise<readonly DeadLetteredStream[]> {
    const { rows } = await run<DeadLetteredRow>(this.#pool, {
      ...WAITED_FOR,
      name: 'projections/parked',
      text: `SELECT stream, position, revision, type, category, message, attempts, parked_at
             FROM runtime.parked_streams WHERE projection = $1 AND generation = $2 ORDER BY position`,
      values: [generation.projection, generation.generation],
      types: plainTypes,
    })
    return rows.map(({ parked_at, position, ...row }) => ({
      ...row,
      position: BigInt(position),
      deadLetteredAt: parked_at,
    }))
  }
}

function tableOf({ tables }: GenerationRef, name: string): TableDefinition {
  return tables.find((one) => one.name === name)!
}

function statementName(generation: GenerationRef, what: string): string {
  return `${generation.projection}/${generation.generation}/${what}`
}

/** What somebody else has locked is passed over: nobody waits for another's lock. A crash takes back what the log has. */
const MOVE = `
  WITH free AS MATERIALIZED (
    SELECT projection, generation, wanted.to, wanted.rate, wanted.place
    FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[])
        WITH ORDINALITY AS wanted (projection, generation, epoch, "from", "to", rate, place)
      JOIN runtime.projections AS stored USING (projection, generation, epoch)
    WHERE stored.position = wanted.from AND set_config('synchronous_commit', 'off', true) IS NOT NULL
    FOR NO KEY UPDATE OF stored SKIP LOCKED
  )
  UPDATE runtime.projections AS stored SET position = free.to, rate = free.rate, updated_at = clock_timestamp()
  FROM free WHERE stored.projection = free.projection AND stored.generation = free.generation
  RETURNING place`

/** Rows come column by column: taking JSON of them apart would cost more than all else. */
function upsert(schema: string, table: TableDefinition, next: () => string): string {
  const columns = Object.keys(table.columns)
  const list = columns.map(quoted).join(', ')
  const arrays = columns.map(() => `${next()}::text[]`).join(', ')
  const values = columns.map((column) => `r.${quoted(column)}::${table.columns[column]}`).join(', ')
  const sets = columns
    .filter((column) => !table.key.includes(column))
    .map((column) => `${quoted(column)} = excluded.${quoted(column)}`)
  return `${quoted(`put ${table.name}`)} AS (
    INSERT INTO ${schema}.${quoted(table.name)} (${list})
    SELECT ${values} FROM unnest(${arrays}) AS r(${list}) WHERE EXISTS (SELECT FROM moved)
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

interface DeadLetteredRow extends Omit<DeadLetteredStream, 'position' | 'deadLetteredAt'> {
  position: number
  parked_at: string
}

function deadLetteredRow(deadLettered: DeadLetteredStream): Row {
  const { deadLetteredAt: _, position, ...row } = deadLettered
  return { ...row, position: String(position) }
}

function jsonKey(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

import type { ClientBase, Pool } from 'pg'
import type { Failure } from '../../projections/runtime/failures.ts'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import {
  type Comparison,
  type GenerationRecord,
  type GenerationRef,
  type GenerationStore,
  type RequestOutcome,
  shapeOf,
} from '../../projections/runtime/store.ts'
import { endClient } from '../database/connection.ts'
import { type Database, STATEMENT_LIMIT_MS } from '../database/database.ts'
import { grantSchemaToServiceRole } from '../database/service-role.ts'
import { inTransaction } from '../database/transaction.ts'
import { Gathered } from '../gathered.ts'
import { compareIn } from './comparison.ts'
import { classified, fenced, run, WAITED_FOR } from './errors.ts'
import { answerStatement } from './requests.ts'
import { defineViews, schemaName, schemaOf, tableStatements } from './tables.ts'

/** Readers that hold a view longer than this make a switch step back and try again. */
const VIEW_LOCK_MS = 500

/** Generations of projections, in `runtime.projections` and a schema each. */
export class PostgresGenerationStore implements GenerationStore {
  readonly #database: Database
  readonly #pool: Pool
  /** Every projection that stands by asks for them, all at the same moments. */
  readonly #all: Gathered<null, readonly GenerationRecord[]>

  constructor(database: Database, pool: Pool) {
    this.#database = database
    this.#pool = pool
    this.#all = new Gathered(() => this.#look())
  }

  all(): Promise<readonly GenerationRecord[]> {
    return this.#all.ask(null)
  }

  async #look(): Promise<readonly GenerationRecord[]> {
    const { rows } = await run<GenerationRow>(this.#pool, {
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
    const { rows } = await run<{ projection: string; position: string }>(this.#database.pool, {
      name: 'projections/positions',
      text: `SELECT projection, position FROM runtime.projections WHERE role = 'live' AND projection = ANY($1)`,
      values: [projections],
    })
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
    const { state, role, autoSwitch, failure, comparison } = changes
    for (const [column, value] of Object.entries({
      state,
      role,
      auto_switch: autoSwitch,
      failure,
      comparison,
    })) {
      if (value !== undefined) set(column, value)
    }
    if (sets.length === 0) return
    const result = await run(this.#pool, {
      text: `UPDATE runtime.projections SET ${sets.join(', ')}, updated_at = clock_timestamp()
             WHERE projection = $1 AND generation = $2 AND epoch = $3`,
      values,
    })
    if (result.rowCount !== 1) throw fenced()
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
        `UPDATE runtime.projections SET role = 'retired', comparison = NULL, updated_at = clock_timestamp()
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

  /** Definitions belong to the owner of the schemas; the service's own role reads and writes rows only. */
  async #asOwner(work: (client: ClientBase) => Promise<void>): Promise<void> {
    try {
      await this.#database.withOwner((client) => inTransaction(client, () => work(client)))
    } catch (error) {
      throw classified(error)
    }
  }
}

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
  failure: Failure | null
  comparison: Comparison | null
  parked_streams: number
}

const SELECT_GENERATION = `
  SELECT projection, generation, version, role, state, position, epoch, rate, shape, tables, auto_switch,
    rolled_back_from, failure, comparison,
    (SELECT count(*)::integer FROM runtime.parked_streams AS e
     WHERE e.projection = g.projection AND e.generation = g.generation) AS parked_streams
  FROM runtime.projections AS g`

function generationRecord(row: GenerationRow): GenerationRecord {
  const { auto_switch, rolled_back_from, parked_streams, position, epoch, ...same } = row
  return {
    ...same,
    position: BigInt(position),
    epoch: Number(epoch),
    autoSwitch: auto_switch,
    rolledBackFrom: rolled_back_from,
    deadLetteredStreams: parked_streams,
  }
}

import type { ClientBase } from 'pg'
import { ProjectionStoreError } from '../../projections/runtime/failures.ts'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import type { Comparison, GenerationRef } from '../../projections/runtime/store.ts'
import { differingRows } from './differing-rows.ts'
import { quoted, schemaOf } from './tables.ts'

/** Rows that are shown of all tables together. */
const SHOWN_ROWS = 20

/** Compares two generations in one snapshot, in a session of its own: its end ends the transaction. */
export async function compareIn(
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
  let limit = SHOWN_ROWS
  for (const one of live.tables) {
    const other = shadow.tables.find((table) => table.name === one.name)
    if (!other) continue
    const columns = Object.keys(one.columns)
      .filter((column) => one.columns[column] === other.columns[column])
      .sort()
    const [a, b] = [await digest(client, live, one, columns), await digest(client, shadow, one, columns)]
    const equal = a.rows === b.rows && a.hash === b.hash
    const differing = equal ? null : await differingRows(client, { live, shadow, one, other, columns, limit })
    limit -= differing?.differences.length ?? 0
    tables.push({ table: one.name, equal, live: a, shadow: b, ...differing })
  }
  return {
    position: Number(rows[0]!.position),
    equal: tables.every((table) => table.equal),
    tables,
  }
}

/**
 * Number of rows and a hash over them that does not depend on their order. Rows are hashed by their values: texts of them
 * would cost three times as much.
 */
async function digest(
  client: ClientBase,
  generation: GenerationRef,
  table: TableDefinition,
  columns: readonly string[],
): Promise<{ rows: number; hash: string }> {
  // jsonb has a hash that tells neither order nor pairs: its text does
  const values = columns.map((column) =>
    table.columns[column] === 'jsonb' ? `${quoted(column)}::text` : quoted(column),
  )
  // hashes of rows are sums over their columns: hashed once more, values that rows have exchanged are told as well
  const { rows } = await client.query<{ rows: string; hash: string }>(
    `SELECT count(*) AS rows,
       concat(coalesce(bit_xor(h), 0)::text, ':', coalesce(sum(h::numeric), 0)::text) AS hash
     FROM (SELECT hashtextextended(hash_record_extended(row(${values.join(', ')}), 0)::text, 0) AS h
           FROM ${schemaOf(generation)}.${quoted(table.name)}) AS hashes`,
  )
  return { rows: Number(rows[0]!.rows), hash: rows[0]!.hash }
}

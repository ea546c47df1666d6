import type { ClientBase } from 'pg'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import type { GenerationRef } from '../../projections/runtime/store.ts'

export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

export function schemaOf(generation: GenerationRef): string {
  return quoted(schemaName(generation))
}

/** The schema of a generation: `rm_<projection>_g<generation>`. */
export function schemaName(generation: Pick<GenerationRef, 'projection' | 'generation'>): string {
  return `rm_${generation.projection.replaceAll('-', '_')}_g${generation.generation}`
}

/** The statements that create a table of a generation. */
export function tableStatements(schema: string, table: TableDefinition): readonly string[] {
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

/** Points the views at a generation; a view keeps its identity where its columns stay the same. */
export async function defineViews(
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

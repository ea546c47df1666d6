import { storable } from '../../application/commands/storable-text.ts'
import { TimeSlice } from '../../application/commands/time-slices.ts'
import type { Row, TableDefinition } from '../../projections/runtime/projection.ts'
import { BinaryArray } from '../database/binary-arrays.ts'

/** Rows that are encoded between two looks at the time. */
const ROWS_AT_ONCE = 50

/**
 * Rows as one array of texts for each column, in PostgreSQL's binary format; a page may hold tens of thousands, so
 * others have their turn in between. What stands in no text of the database is replaced, instead of dead-lettering the
 * stream.
 * @param rows not changed before this resolves.
 */
export async function rowsAsColumns(
  rows: readonly Row[],
  columns: TableDefinition['columns'],
): Promise<readonly Buffer[]> {
  const arrays = Object.entries(columns).map(([name, type]) => ({
    name,
    isJson: type === 'jsonb',
    array: new BinaryArray('text'),
  }))
  const slice = new TimeSlice()
  for (const [index, row] of rows.entries()) {
    for (const { name, isJson, array } of arrays) {
      const value = row[name]
      if (value === null || value === undefined) array.addNull()
      else if (isJson) array.addText(storable(JSON.stringify(value)))
      else array.addText(typeof value === 'string' ? whole(value) : String(value))
    }
    if (index % ROWS_AT_ONCE !== ROWS_AT_ONCE - 1) continue
    const pause = slice.over()
    if (pause) await pause
  }
  return arrays.map(({ array }) => array.encoded())
}

/** Half of a surrogate pair is replaced where a text becomes UTF-8. */
function whole(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
}

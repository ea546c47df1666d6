import { storable } from '../../application/commands/storable-text.ts'
import { TimeSlice } from '../../application/commands/time-slices.ts'

/** Rows that become text between two looks at the time. */
const ROWS_AT_ONCE = 50

/**
 * Rows as JSON that PostgreSQL takes, in UTF-8; a page may hold tens of thousands, so others have their turn in
 * between. What stands in no text of the database is replaced, instead of dead-lettering the stream.
 * @param rows not changed before this resolves.
 */
export async function rowsAsJson(rows: readonly unknown[]): Promise<Buffer> {
  const slice = new TimeSlice()
  const parts: Buffer[] = []
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    const some = JSON.stringify(rows.slice(from, from + ROWS_AT_ONCE))
    parts.push(Buffer.from(`${from === 0 ? '[' : ','}${storable(some).slice(1, -1)}`))
    const pause = slice.over()
    if (pause) await pause
  }
  parts.push(Buffer.from(parts.length === 0 ? '[]' : ']'))
  return Buffer.concat(parts)
}

import type pg from 'pg'
import type { Carried } from '../../application/ports/moved-database.ts'

/** A row as PostgreSQL writes it, by column. */
export type Row = Record<string, string | null>

interface CarriedTable {
  /** Default `runtime`. */
  readonly schema?: string
  readonly name: string
  readonly order: string
  /** Columns that the other database fills by itself. */
  readonly without?: readonly string[]
  /** What becomes of a row on its way. */
  readonly carry?: (row: Row) => Row
  /** Rows that are in memory together, default {@link ROWS_AT_ONCE}; fewer where a row may be large. */
  readonly rowsAtOnce?: number
}

/** Some rows of a table, in order. */
export interface CarriedRows {
  /** `schema.name`. */
  readonly table: string
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
}

const ROWS_AT_ONCE = 500

/** A lease given back. */
const FREED = { lease_owner: null, lease_until: null, lease_token: null }

/** Everything beside the log that does not derive from it; work and deliveries in the order in which they were stored. */
const TABLES: readonly CarriedTable[] = [
  { name: 'data_keys', order: 'subject' },
  { name: 'secrets', order: 'ref', rowsAtOnce: 20 },
  { name: 'erasures', order: 'one' },
  { name: 'last_used', order: 'credential_id' },
  { name: 'outbox', order: 'seq', without: ['seq'] },
  { name: 'bank_archive', order: 'ref, part', rowsAtOnce: 1 },
  // the tree itself is made anew: it has positions of the log
  { name: 'log_checkpoints', order: 'size' },
  {
    name: 'work',
    order: 'stored_order',
    without: ['stored_order', 'away_since'],
    // no lease is held where no service runs, the other database numbers its claims afresh, and has no holds
    carry: (row) =>
      row.state === 'leased' || row.state === 'held'
        ? {
            ...row,
            state: row.again === 't' ? 'later' : 'due',
            again: 'f',
            held_at: null,
            ...FREED,
          }
        : row,
  },
  // leases are numbered afresh, too
  { name: 'process_managers', order: 'name', carry: (row) => ({ ...row, epoch: '0' }) },
  { schema: 'webhooks', name: 'events', order: 'created_at' },
  {
    schema: 'webhooks',
    name: 'deliveries',
    order: 'seq',
    without: ['seq'],
    carry: (row) => (row.state === 'leased' ? { ...row, state: 'due', ...FREED } : row),
  },
  { schema: 'webhooks', name: 'health', order: 'subscription_id' },
]

/** The names of all of them, `schema.name`. */
export const CARRIED_TABLES: readonly string[] = TABLES.map(nameOf)

/**
 * Puts what a database holds beside the log in the place of what another one holds.
 * @param from in a transaction of its own; what it sees is carried.
 * @param to in a transaction that the caller ends.
 */
export async function carryTables(from: pg.ClientBase, to: pg.ClientBase): Promise<Carried> {
  return carriedOf(await storeTables(to, readTables(from)))
}

/** What a move tells of the rows that were carried. @param rows by table. */
export function carriedOf(rows: Readonly<Record<string, number>>): Carried {
  return {
    data_keys: rows['runtime.data_keys']!,
    secrets: rows['runtime.secrets']!,
    work: rows['runtime.work']!,
    last_uses: rows['runtime.last_used']!,
    webhook_deliveries: rows['webhooks.deliveries']!,
  }
}

/**
 * Reads what a database holds beside the log, table by table; of one without rows comes one batch without rows.
 * @param from in a transaction of its own; what it sees is read.
 */
export async function* readTables(from: pg.ClientBase): AsyncGenerator<CarriedRows> {
  for (const table of TABLES) yield* readTable(from, table)
}

async function* readTable(from: pg.ClientBase, given: CarriedTable): AsyncGenerator<CarriedRows> {
  const { order, without = [], carry = (row) => row, rowsAtOnce = ROWS_AT_ONCE } = given
  const table = nameOf(given)
  const columns = (await columnsOf(from, table))
    .map(({ name }) => name)
    .filter((one) => !without.includes(one))
  const texts = columns.map((column) => `${column}::text AS ${column}`).join(', ')
  await from.query(`DECLARE carried NO SCROLL CURSOR FOR SELECT ${texts} FROM ${table} ORDER BY ${order}`)
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await from.query<Row>(`FETCH ${rowsAtOnce} FROM carried`)
    if (rows.length > 0 || isFirst) yield { table, columns, rows: rows.map(carry) }
    if (rows.length < rowsAtOnce) break
  }
  await from.query('CLOSE carried')
}

/**
 * Stores what {@link readTables} has read in the place of what the tables hold.
 * @param to in a transaction that the caller ends.
 * @returns how many rows, by table.
 */
export async function storeTables(
  to: pg.ClientBase,
  batches: AsyncIterable<CarriedRows>,
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  let types = new Map<string, string>()
  for await (const { table, columns, rows } of batches) {
    if (counts[table] === undefined) {
      counts[table] = 0
      await to.query(`DELETE FROM ${table}`)
      types = new Map((await columnsOf(to, table)).map(({ name, type }) => [name, type]))
    }
    const typed = columns.map((column) => `given.${column}::${types.get(column)}`).join(', ')
    const parameters = columns.map((_, index) => `$${index + 1}::text[]`).join(', ')
    const list = columns.join(', ')
    await to.query(
      `INSERT INTO ${table} (${list})
       SELECT ${typed} FROM unnest(${parameters}) WITH ORDINALITY AS given (${list}, place) ORDER BY place`,
      columns.map((column) => rows.map((row) => row[column])),
    )
    counts[table] += rows.length
  }
  return counts
}

async function columnsOf(db: pg.ClientBase, table: string): Promise<{ name: string; type: string }[]> {
  const { rows } = await db.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [table],
  )
  return rows
}

function nameOf({ schema = 'runtime', name }: CarriedTable): string {
  return `${schema}.${name}`
}

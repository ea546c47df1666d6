import type pg from 'pg'
import type { Carried } from '../../application/ports/moved-database.ts'

/** A row as PostgreSQL writes it, by column. */
type Row = Record<string, string | null>

interface CarriedTable {
  /** Default `runtime`. */
  readonly schema?: string
  readonly name: string
  readonly order: string
  /** Columns that the other database fills by itself. */
  readonly without?: readonly string[]
  /** What becomes of a row on its way. */
  readonly carry?: (row: Row) => Row
}

const ROWS_AT_ONCE = 2_000

/** A lease given back. */
const FREED = { lease_owner: null, lease_until: null, lease_token: null }

/** Everything beside the log that does not derive from it; work and deliveries in the order in which they were stored. */
const TABLES: readonly CarriedTable[] = [
  { name: 'data_keys', order: 'subject' },
  { name: 'secrets', order: 'ref' },
  { name: 'erasures', order: 'one' },
  { name: 'last_used', order: 'credential_id' },
  { name: 'outbox', order: 'seq', without: ['seq'] },
  { name: 'bank_archive', order: 'ref, part' },
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

/**
 * Puts what a database holds beside the log in the place of what another one holds.
 * @param from in a transaction of its own; what it sees is carried.
 * @param to in a transaction that the caller ends.
 */
export async function carryTables(from: pg.ClientBase, to: pg.ClientBase): Promise<Carried> {
  const rows: Record<string, number> = {}
  for (const table of TABLES) rows[table.name] = await carryTable(from, to, table)
  return {
    data_keys: rows.data_keys!,
    secrets: rows.secrets!,
    work: rows.work!,
    last_uses: rows.last_used!,
    webhook_deliveries: rows.deliveries!,
  }
}

/** @returns how many rows. */
async function carryTable(
  from: pg.ClientBase,
  to: pg.ClientBase,
  { schema = 'runtime', name, order, without = [], carry = (row) => row }: CarriedTable,
): Promise<number> {
  const table = `${schema}.${name}`
  const { rows: columns } = await from.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND NOT attname = ANY ($2::text[])
      ORDER BY attnum`,
    [table, without],
  )
  const names = columns.map((column) => column.name)
  const texts = names.map((column) => `${column}::text AS ${column}`).join(', ')
  const typed = columns.map((column) => `given.${column.name}::${column.type}`).join(', ')
  const parameters = names.map((_, index) => `$${index + 1}::text[]`).join(', ')
  const list = names.join(', ')
  await to.query(`DELETE FROM ${table}`)
  await from.query(`DECLARE carried NO SCROLL CURSOR FOR SELECT ${texts} FROM ${table} ORDER BY ${order}`)
  let total = 0
  for (;;) {
    const { rows } = await from.query<Row>(`FETCH ${ROWS_AT_ONCE} FROM carried`)
    if (rows.length === 0) break
    const carried = rows.map(carry)
    await to.query(
      `INSERT INTO ${table} (${list})
       SELECT ${typed} FROM unnest(${parameters}) WITH ORDINALITY AS given (${list}, place) ORDER BY place`,
      names.map((column) => carried.map((row) => row[column])),
    )
    total += rows.length
  }
  await from.query('CLOSE carried')
  return total
}

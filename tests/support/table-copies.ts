import pg from 'pg'

/** Rows of a table as PostgreSQL writes them. */
interface TableCopy {
  readonly table: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly (string | null)[])[]
}

/** Runs `work` with a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Copies tables in one snapshot, as one `pg_dump --data-only` with several `--table` does. */
export function copyTables(url: string, tables: readonly string[]): Promise<TableCopy[]> {
  return withClient(url, async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const copies: TableCopy[] = []
    for (const table of tables) copies.push(await copyOf(client, table))
    await client.query('COMMIT')
    return copies
  })
}

/** Writes copies into tables that are empty. */
export function writeTables(url: string, copies: readonly TableCopy[]): Promise<void> {
  return withClient(url, async (client) => {
    await client.query('BEGIN')
    for (const copy of copies) await write(client, copy)
    await client.query('COMMIT')
  })
}

async function copyOf(client: pg.Client, table: string): Promise<TableCopy> {
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`,
    [table],
  )
  const list = columns.map(({ name }) => `${name}::text`).join(', ')
  const text = `SELECT ${list} FROM ${table}`
  const { rows } = await client.query<(string | null)[]>({ text, rowMode: 'array' })
  return { table, columns, rows }
}

async function write(client: pg.Client, { table, columns, rows }: TableCopy): Promise<void> {
  const arrays = columns.map((_, index) => `$${index + 1}::text[]`).join(', ')
  const names = columns.map(({ name }) => name).join(', ')
  const values = columns.map(({ name, type }) => `given.${name}::${type}`).join(', ')
  await client.query(
    `INSERT INTO ${table} (${names}) OVERRIDING SYSTEM VALUE
     SELECT ${values} FROM unnest(${arrays}) AS given (${names})`,
    columns.map((_, index) => rows.map((row) => row[index])),
  )
}

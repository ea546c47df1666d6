import { hash, randomUUID } from 'node:crypto'
import pg from 'pg'

/** What the machine and the server can do, without an event store around it. */

/** A row of the event log's table: position, revision, event id, stream, type, data, metadata. */
export type EventRow = readonly [string, number, string, string, string, string, string]

/** Makes a table like the event log's, with the same columns, constraints and indexes. @returns its name. */
export async function createPlainTable(url: string): Promise<string> {
  const client = await connect(url)
  const table = `plain_${randomUUID().replaceAll('-', '')}`
  await client.query(`CREATE TABLE ${table} (LIKE event_log.events INCLUDING ALL)`)
  await client.end()
  return table
}

/** Fills such a table by multi-row INSERTs through one prepared statement on each of `connections`. */
export interface PlainWriter {
  insert(rows: readonly EventRow[]): Promise<void>
  close(): Promise<void>
}

export async function openPlainWriter(
  url: string,
  table: string,
  options: { rowsPerInsert: number; connections: number },
): Promise<PlainWriter> {
  const clients = await Promise.all(Array.from({ length: options.connections }, () => connect(url)))
  const values = (rows: number) =>
    Array.from(
      { length: rows },
      (_, row) => `(${Array.from({ length: 7 }, (_, n) => `$${row * 7 + n + 1}`)})`,
    )
  const columns = 'position, revision, event_id, stream, type, data, metadata'
  const text = `INSERT INTO ${table} (${columns}) VALUES ${values(options.rowsPerInsert).join(', ')}`
  return {
    async insert(rows) {
      let next = 0
      await Promise.all(
        clients.map(async (client) => {
          while (next < rows.length) {
            const batch = rows.slice(next, next + options.rowsPerInsert)
            next += options.rowsPerInsert
            await client.query({ name: 'insert', text, values: batch.flat() })
          }
        }),
      )
    },
    async close() {
      await Promise.all(clients.map((client) => client.end()))
    },
  }
}

/**
 * Reads the whole log in pages and parses the JSON of every event, the least a projection has to do; or hashes it, the least
 * a verification has to do.
 * @returns events read.
 */
export async function readLog(
  url: string,
  pageSize: number,
  each: 'parse' | 'hash' = 'parse',
): Promise<number> {
  const client = await connect(url)
  let after = '0'
  let count = 0
  let bytes = 0
  for (;;) {
    const { rows } = await client.query<{ position: string; data: string; metadata: string }>({
      name: 'page',
      text: `SELECT position, revision, event_id, stream, type, data, metadata FROM event_log.events
              WHERE position > $1 ORDER BY position LIMIT $2`,
      values: [after, pageSize],
      types: jsonAsText,
    })
    for (const { data, metadata } of rows) {
      if (each === 'hash') bytes += hash('sha256', data + metadata, 'hex').length
      else bytes += Object.keys(JSON.parse(data)).length + Object.keys(JSON.parse(metadata)).length
    }
    count += rows.length
    if (rows.length < pageSize) break
    after = rows.at(-1)!.position
  }
  await client.end()
  if (count > 0 && bytes === 0) throw new Error('the events were empty')
  return count
}

// parsed once, by the loop above
const jsonAsText: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: string) =>
    oid === pg.types.builtins.JSON
      ? (text: string) => text
      : (pg.types.getTypeParser as (oid: number, format?: string) => (value: string) => unknown)(oid, format),
}

/** Copies payroll rows into one table, committed durably. @returns milliseconds. */
export async function copyRows(
  url: string,
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<number> {
  const client = await connect(url)
  const table = `copied_${randomUUID().replaceAll('-', '')}`
  await client.query(
    `CREATE TABLE ${table} (n integer PRIMARY KEY, employee_id text, first_name text, last_name text,
                            class_code text, state text, gross_wages numeric)`,
  )
  const started = performance.now()
  const names = ['employee_id', 'first_name', 'last_name', 'class_code', 'state', 'gross_wages']
  const lines = rows.map((row, n) => `${[n + 1, ...names.map((name) => row[name] ?? '\\N')].join('\t')}\n`)
  await copyIn(client, `COPY ${table} FROM STDIN`, Buffer.from(lines.join('')))
  const elapsed = performance.now() - started
  await client.query(`DROP TABLE ${table}`)
  await client.end()
  return elapsed
}

/** The parts of pg's wire connection that COPY needs. */
interface CopyConnection {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

/** COPY FROM STDIN in one piece, through the extension point that pg has for queries of one's own. */
function copyIn(client: pg.Client, text: string, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const copy = {
      submit(connection: CopyConnection) {
        connection.query(text)
      },
      handleCopyInResponse(connection: CopyConnection) {
        connection.sendCopyFromChunk(data)
        connection.endCopyFrom()
      },
      handleCommandComplete() {},
      handleReadyForQuery: () => resolve(),
      handleError: (error: Error) => reject(error),
    }
    client.query(copy as unknown as pg.Submittable)
  })
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  return client
}

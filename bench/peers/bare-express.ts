import express from 'express'
import pg from 'pg'
import { idOf } from '../timesheets.ts'

/** A file status as the core API answers it. */
const STATUS = {
  status: 'NORMALIZED',
  created_at: '2026-08-14T16:20:31.402Z',
  updated_at: '2026-08-14T16:20:31.417Z',
  employee_count: 3,
  employer_id: idOf('employer'),
  period: { start: '2026-08-01', end: '2026-08-15' },
  phase_1: { status: 'complete', green_rows: 3, red_rows: 0 },
  phase_2: { status: 'complete', processed_rows: 3 },
  phase_3: { status: 'complete', total_premium_cents: 41_733, processed_rows: 3 },
}

/** The ids that the table below holds. */
export const KNOWN_FILES = Array.from({ length: 1000 }, (_, n) => idOf(`file ${n}`))

/** The answer of a tool that finds nothing wrong, about as long as ours. */
const TOOL_ANSWER = {
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text: JSON.stringify({ success: true, data: STATUS }) }] },
}

/**
 * What Express and PostgreSQL do on this machine with nothing around them: one indexed prepared read, a page that is
 * ready after such a read, one insert, or parsing the body and answering, per request. No authentication, no rules, no events; like ours without ETags.
 */
export async function serveBareExpress(url: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  await pool.query(`
    CREATE TABLE IF NOT EXISTS bare_files (file_id text PRIMARY KEY, status jsonb NOT NULL);
    CREATE TABLE IF NOT EXISTS bare_reports (report_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body jsonb NOT NULL);
    TRUNCATE bare_files, bare_reports`)
  await pool.query('INSERT INTO bare_files SELECT * FROM unnest($1::text[], $2::jsonb[])', [
    KNOWN_FILES,
    KNOWN_FILES.map(() => JSON.stringify(STATUS)),
  ])
  const read = async (fileId: unknown) => {
    const { rows } = await pool.query({
      name: 'read',
      text: 'SELECT file_id, status FROM bare_files WHERE file_id = $1',
      values: [fileId],
    })
    return { file_id: rows[0].file_id, ...rows[0].status }
  }
  const app = express().disable('x-powered-by').disable('etag').use(express.json())
  app.get('/read/:id', async (request, response) => {
    response.json(await read(request.params.id))
  })
  let page = ''
  app.put('/page', express.text({ type: 'text/html', limit: '1mb' }), (request, response) => {
    page = request.body
    response.sendStatus(204)
  })
  app.get('/page/:id', async (request, response) => {
    await read(request.params.id)
    response.type('html').send(page)
  })
  app.post('/answer', (request, response) => {
    response.json({ ...TOOL_ANSWER, id: request.body.id })
  })
  app.post('/insert', async (request, response) => {
    const { rows } = await pool.query({
      name: 'insert',
      text: 'INSERT INTO bare_reports (body) VALUES ($1) RETURNING report_id',
      values: [JSON.stringify(request.body)],
    })
    response.status(202).json({ success: true, report_id: rows[0].report_id })
  })
  const server = app.listen(0, '127.0.0.1', () => {
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    process.stdout.write(`${JSON.stringify({ bareExpress: `http://127.0.0.1:${port}` })}\n`)
  })
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
    pool.end().then(() => process.exit(0))
  })
}

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { withClient } from './table-copies.ts'

const run = promisify(execFile)

/** Whether pg_dump and pg_restore are there, and not older than the server. */
export async function postgresToolsFit(): Promise<boolean> {
  const { rows } = await withClient(inject('postgresUrl'), (client) =>
    client.query<{ major: number }>("SELECT current_setting('server_version_num')::int / 10000 AS major"),
  )
  for (const tool of ['pg_dump', 'pg_restore']) {
    const { stdout } = await run(tool, ['--version']).catch(() => ({ stdout: '' }))
    if (Number(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1] ?? 0) < rows[0]!.major) return false
  }
  return true
}

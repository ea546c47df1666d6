import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { migrate } from '../../infrastructure/database/migrate.ts'
import { startEmbeddedPostgres } from '../../infrastructure/embedded-postgres/embedded-postgres.ts'

/** A cluster that nobody has stored anything in; a copy takes a tenth of the time that a first start takes to make one. */
export interface PreparedData {
  readonly path: string
  remove(): Promise<void>
}

/** Makes a cluster with an empty database, migrated, as the first start of a service does. */
export async function prepareData(): Promise<PreparedData> {
  const path = await mkdtemp(join(tmpdir(), 'compstream-prepared-'))
  const server = await startEmbeddedPostgres({ dataDir: path, durable: false })
  try {
    await migrate({ url: server.url })
    const client = new pg.Client(server.url)
    await client.connect()
    // copies need not carry what a service never connects to
    await client.query('UPDATE pg_database SET datistemplate = false')
    for (const name of ['postgres', 'template0', 'template1']) await client.query(`DROP DATABASE ${name}`)
    await client.end()
  } finally {
    await server.stop()
  }
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

/** Puts a copy, with a master key of its own, into a data directory that has neither yet. */
export async function copyPreparedData(preparedDir: string, dataDir: string): Promise<void> {
  if (['postgres', 'master-key'].some((name) => existsSync(join(dataDir, name)))) return
  await mkdir(dataDir, { recursive: true })
  // unlike Node.js, it keeps the owner
  const from = ['postgres', 'postgres-password'].map((name) => join(preparedDir, name))
  await promisify(execFile)('cp', ['-a', ...from, dataDir])
  const key = randomBytes(32).toString('base64')
  await writeFile(join(dataDir, 'master-key'), key, { mode: 0o600, flag: 'wx' })
}

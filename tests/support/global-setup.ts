import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../infrastructure/database/embedded-postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Superuser url of the test server; tests create databases of their own in it. */
    postgresUrl: string
    /** Name of the migrated database that test databases are copied from; made when first needed. */
    postgresTemplate: string
  }
}

/** One PostgreSQL server for all test files: TEST_DATABASE_URL when set, else the embedded one in a new directory. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const template = `compstream_template_${randomBytes(6).toString('hex')}`
  project.provide('postgresTemplate', template)
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    project.provide('postgresUrl', given)
    return async () => {
      const client = new pg.Client(given)
      await client.connect()
      await client.query(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`)
      await client.end()
    }
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-test-'))
  const server = await startEmbeddedPostgres({ dataDir, durable: false })
  project.provide('postgresUrl', server.url)
  return async () => {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

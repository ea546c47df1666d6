import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../infrastructure/embedded-postgres/embedded-postgres.ts'
import type * as Descriptions from '../../interfaces/descriptions.ts'
import type { OpenApi } from '../../interfaces/endpoints/openapi.ts'
import type { DescribedApi } from './described-hosts.ts'
import { openSharedServices } from './shared-services.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Superuser url of the test server; tests create databases of their own in it. */
    postgresUrl: string
    /** Name of the migrated database that test databases are copied from, whose names begin so; made when first needed. */
    postgresTemplate: string
    /** Where suites ask for the service that they share, see shared-services.ts. */
    sharedServices: string
  }
}

interface Server {
  readonly url: string
  readonly template: string
  readonly sharedServices: string
  stop(): Promise<void>
}

/** This module is loaded once for each project; the server is common to all. */
const common = globalThis as {
  compstreamTestServer?: { starting: Promise<Server>; users: number }
  compstreamDescriptions?: Promise<Readonly<Record<DescribedApi, OpenApi>>>
}

/**
 * One PostgreSQL server for all test files: TEST_DATABASE_URL when set, else the embedded one in a new directory. And
 * services for those that can share one.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  common.compstreamTestServer ??= { starting: start(), users: 0 }
  const shared = common.compstreamTestServer
  shared.users += 1
  common.compstreamDescriptions ??= describe()
  const [server, descriptions] = await Promise.all([shared.starting, common.compstreamDescriptions])
  project.provide('descriptions', descriptions)
  project.provide('postgresTemplate', server.template)
  project.provide('postgresUrl', server.url)
  project.provide('sharedServices', server.sharedServices)
  return async () => {
    shared.users -= 1
    if (shared.users > 0) return
    delete common.compstreamTestServer
    await server.stop()
  }
}

/** The documents of all APIs. What they are made of is bundled: module by module, every worker waits for it for seconds. */
async function describe(): Promise<Readonly<Record<DescribedApi, OpenApi>>> {
  const outfile = resolve(`node_modules/.cache/descriptions-${process.pid}.mjs`)
  await build({
    entryPoints: ['interfaces/descriptions.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  try {
    const { descriptions } = (await import(pathToFileURL(outfile).href)) as typeof Descriptions
    return descriptions()
  } finally {
    await rm(outfile)
  }
}

async function start(): Promise<Server> {
  const template = `compstream_template_${randomBytes(6).toString('hex')}`
  const postgres = await startPostgres(template)
  const services = await openSharedServices(postgres.url)
  return {
    url: postgres.url,
    template,
    sharedServices: services.url,
    async stop() {
      await services.stop()
      await postgres.stop()
    },
  }
}

async function startPostgres(template: string): Promise<Pick<Server, 'url' | 'stop'>> {
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    const stop = async () => {
      const client = new pg.Client(given)
      await client.connect()
      const { rows } = await client.query<{ datname: string }>(
        'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
        [template],
      )
      for (const { datname } of rows) await client.query(`DROP DATABASE ${datname} WITH (FORCE)`)
      await client.end()
    }
    return { url: given, stop }
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-test-'))
  // several suites at once, each with processes of up to 21 sessions
  const server = await startEmbeddedPostgres({ dataDir, durable: false, maxConnections: 500 })
  const stop = async () => {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  return { url: server.url, stop }
}

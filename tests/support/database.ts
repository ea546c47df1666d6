import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { migrate } from '../../infrastructure/database/migrate.ts'
import { EmptiedDatabases } from './emptied-databases.ts'
import { eventStoreOf, stopServersOf } from './installation.ts'

export interface TestDatabase {
  /** Superuser url. */
  readonly url: string
  readonly name: string
  /** Drops or empties the database, which nobody may use any more, and ends the servers that belong to it. */
  drop(): Promise<void>
}

const emptied = new EmptiedDatabases()

/**
 * An empty database, migrated unless told otherwise, and its empty log; a migrated one may be one that another suite of
 * this worker has used, emptied. Each test file uses its own.
 */
export async function createTestDatabase(options: { migrate?: boolean } = {}): Promise<TestDatabase> {
  const isMigrated = options.migrate ?? true
  const used = isMigrated ? emptied.take() : undefined
  const name = used ?? `${inject('postgresTemplate')}_${randomBytes(6).toString('hex')}`
  const url = urlOf(name)
  const creating = used === undefined ? create(name, isMigrated) : undefined
  // the server of its log takes seconds to start
  await Promise.all([creating, eventStoreOf(url)])
  let isThere = true
  return {
    url,
    name,
    async drop() {
      if (!isThere) return
      isThere = false
      await stopServersOf(url)
      await withServer(async (server) => {
        const isLeft = await untilLeft(server, name)
        if (isMigrated && isLeft && (await emptied.giveBack(name, url))) return
        await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      })
    },
  }
}

async function create(name: string, isMigrated: boolean): Promise<void> {
  await withServer(async (server) => {
    if (isMigrated) await ensureTemplate(server)
    const template = isMigrated ? inject('postgresTemplate') : `template0 ENCODING 'UTF8'`
    await server.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  })
  if (isMigrated) await emptied.know(name, urlOf(name))
}

/** How often is looked whether everybody has left a database, and for how long between, in milliseconds. */
const LOOKS = { most: 100, pauseMs: 10 } as const

/**
 * A pool has ended before the server has heard of it: who is thrown out then takes it for a failure. Waits a second at the
 * most. @returns whether nobody is connected.
 */
async function untilLeft(server: pg.Client, database: string): Promise<boolean> {
  for (let look = 0; look < LOOKS.most; look += 1) {
    const { rowCount } = await server.query(
      `SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
      [database],
    )
    if (rowCount === 0) return true
    await delay(LOOKS.pauseMs)
  }
  return false
}

/** The url of another database on the test server. */
export function urlOf(database: string): string {
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${database}`
  return url.toString()
}

/** How many sessions of a connection's database wait for a lock; other databases of the server are other suites'. */
export async function sessionsThatWait(db: Pick<pg.ClientBase, 'query'>): Promise<number> {
  // within a transaction the server shows sessions as they were at the first look
  await db.query('SELECT pg_stat_clear_snapshot()')
  const { rows } = await db.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`,
  )
  return rows[0]!.count
}

/** Runs `work` with a superuser connection to the test server's own database. */
export async function withServer<T>(work: (server: pg.Client) => Promise<T>): Promise<T> {
  const server = new pg.Client(inject('postgresUrl'))
  await server.connect()
  try {
    return await work(server)
  } finally {
    await server.end()
  }
}

/** The first test file that needs it migrates the template; the others wait for it. */
async function ensureTemplate(server: pg.Client): Promise<void> {
  const template = inject('postgresTemplate')
  await server.query("SELECT pg_advisory_lock(hashtext('compstream test template'))")
  try {
    const { rowCount } = await server.query('SELECT 1 FROM pg_database WHERE datname = $1', [template])
    if (rowCount === 1) return
    const draft = `${template}_draft`
    await server.query(`DROP DATABASE IF EXISTS ${draft} WITH (FORCE)`)
    await server.query(`CREATE DATABASE ${draft} TEMPLATE template0 ENCODING 'UTF8'`)
    await migrate({ url: urlOf(draft) })
    await server.query(`ALTER DATABASE ${draft} RENAME TO ${template}`)
  } finally {
    await server.query("SELECT pg_advisory_unlock(hashtext('compstream test template'))")
  }
}
